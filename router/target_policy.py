"""TargetPolicy: what a policy would have made of a recorded decision, by the product's own formula and draws.

What was read, who was eligible, live figures and posteriors are taken as they were recorded; of the policy that is
evaluated count the agents and permissions of intents, agents that are switched off, namespaces that may be reached,
the preference, exponents and weights of the formula, and how learning explores.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from models.card import AgentCard, AgentKey, Capability, Risk
from models.policy import AgentPolicy, NamespacePolicy, Policy
from models.request import Preference, RouteRequest
from router.draw import draw_of
from router.explore import thompson, with_floor
from router.learned import Learned
from router.logged_decision import Logged
from router.scorer import Blend, Choice, Contender, Scored, choose, order, score
from router.selection import preference_of
from router.success import without_heads

_AS_THE_CARD = AgentPolicy()
_RISKS: tuple[Risk, ...] = ("low", "normal", "high")


class Chances(NamedTuple):
    """What a policy makes of a decision.

    Attributes:
        shares: propensity of each contender, in their order; all 0 where it would choose nobody.
        choice: place of the one that it would choose with the recorded seed; None where it would choose nobody.
    """

    shares: tuple[float, ...]
    choice: int | None


class TargetPolicy:
    """A policy that is evaluated on records.

    Args:
        policy: the policy.
        cards: as they are registered now: what they declare of quality and risk is not in the records.
        deciding: policies that made the records, by digest; of one that is not there, exponents that were learned and
            weights of agents are taken to be as in this one.
    """

    def __init__(
        self, policy: Policy, cards: Sequence[AgentCard] = (), deciding: Mapping[str, Policy] | None = None
    ) -> None:
        self.policy = policy
        self._deciding = deciding or {}
        self._met: dict[str, Policy] = {}
        self._cards = {card.key: card for card in cards}
        self._declared: dict[tuple[AgentKey, str], Capability] = {
            (card.key, capability.intent): capability for card in cards for capability in card.capabilities
        }

    def chances(self, logged: Logged) -> Chances | None:
        """What it makes of a recorded decision.

        None where it goes by declared quality, the record holds what was learned instead, and the card is gone.
        """
        holds = self.policy.of(logged.entry.namespace)
        was = self._deciding.get(logged.policy or "")
        if was is not None and logged.policy is not None:
            self._met[logged.policy] = was
        places = [place for place in range(len(logged.contenders)) if self._allows(logged, place, holds)]
        nobody = (0.0,) * len(logged.contenders)
        if not places:
            return Chances(nobody, None)
        if logged.is_wish and logged.chosen in places:
            return Chances(_spread(nobody, [logged.chosen], [1.0]), logged.chosen)
        learned = self._learned(logged, places, holds)
        contenders = self._contenders(logged, places, learned)
        if contenders is None:
            return None
        if was is not None:
            contenders = [self._weighed(each, was) for each in contenders]
        ranked, choice = decided(contenders, self._blend(logged, holds, learned, was), learned, logged.seed)
        by_rank = [places[_place_of(scored, contenders)] for scored in ranked]
        return Chances(_spread(nobody, by_rank, choice.propensities), by_rank[choice.index])

    def unseen(self, offered: Collection[tuple[str, str, str]]) -> list[str]:
        """Agents that it admits, where those that made the records asked about did not: nothing is known of them.

        Args:
            offered: (namespace, intent, agent id) of all that were an option.
        """
        asked = {(namespace, intent) for namespace, intent, _ in offered}
        found = set()
        for (agent, intent), _ in self._declared.items():
            place = (agent[0], intent, agent[1])
            if place[:2] not in asked or place in offered or not self._cards[agent].enabled:
                continue
            if admits(self.policy, *place) and self._is_news(place):
                found.add(f"{agent[1]} ({intent})")
        return sorted(found)

    def _is_news(self, place: tuple[str, str, str]) -> bool:
        """Whether some policy that decided did not admit an agent; none being known, whether this one names it."""
        if self._met:
            return not all(admits(was, *place) for was in self._met.values())
        namespace, intent, agent_id = place
        said = self.policy.of(namespace).intents.get(intent)
        return said is not None and said.agents is not None and agent_id in said.agents

    def _allows(self, logged: Logged, place: int, holds: NamespacePolicy) -> bool:
        contender, entry = logged.contenders[place], logged.entry
        if contender.namespace != entry.namespace and contender.namespace not in holds.cross_namespaces:
            return False
        if not admits(self.policy, contender.namespace, entry.intent, contender.agent_id):
            return False
        said = self.policy.of(contender.namespace).intents.get(entry.intent)
        if said is None or logged.permissions is None:
            return True
        return logged.permissions.issuperset(said.required_permissions)

    def _weighed(self, contender: Contender, was: Policy) -> Contender:
        """With its share of near-equals as this policy weighs it: live figures scale the weight, and stay."""
        new, old = (policy.agents.get(contender.agent_id, _AS_THE_CARD) for policy in (self.policy, was))
        card = self._cards.get(contender.key)
        if new.weight == old.weight or card is None:
            return contender
        before = card.weight if old.weight is None else old.weight
        after = card.weight if new.weight is None else new.weight
        if before <= 0:
            return contender._replace(share_weight=after)
        return contender._replace(share_weight=contender.share_weight * after / before)

    def _blend(self, logged: Logged, holds: NamespacePolicy, learned: Learned | None, was: Policy | None) -> Blend:
        blend = Blend.of(holds, _preference(logged, holds))
        if not (self.policy.learning.exponents and _is_used(learned) and _is_used(logged.learned)):
            return blend
        if was is not None:
            begins_alike = was.of(logged.entry.namespace).weights == holds.weights
            if not (was.learning.exponents and begins_alike):
                return blend
        # those of the policy are only where learning begins; what it came to is in the record
        return Blend(*logged.blend[:4], *blend[4:])

    def _learned(self, logged: Logged, places: Sequence[int], holds: NamespacePolicy) -> Learned | None:
        """The recorded posteriors as this policy uses them; None where it does not."""
        rules, known = self.policy.learning, logged.learned
        if known is None or rules.mode == "observe":
            return None
        mode, floor = rules.mode, 0.0
        explores = getattr(self.policy.risk, self._risk(logged, places, holds))
        may = explores == "always" or (explores == "explore" and mode == "explore")
        if may and _preference(logged, holds) != "best":
            floor = rules.floor
        elif mode == "explore":
            mode = "exploit"
        if not rules.heads:
            known = without_heads(known)
        alpha, beta = (tuple([of[place] for place in places]) for of in (known.alpha, known.beta))
        return Learned(mode, alpha, beta, floor, rules.temperature, known.version)

    def _risk(self, logged: Logged, places: Sequence[int], holds: NamespacePolicy) -> Risk:
        """The greatest on the cards; of cards that are gone, the least risk with which it was explored as recorded."""
        said = holds.intents.get(logged.entry.intent)
        if said is not None and said.risk is not None:
            return said.risk
        found = [self._declared.get((logged.contenders[place].key, logged.entry.intent)) for place in places]
        risks = [each.risk for each in found if each is not None]
        if len(risks) < len(found):
            known = logged.learned
            explored = known is not None and known.floor > 0
            risks.append("high" if known is None or not explored else "normal" if known.draws else "low")
        return max(risks, key=_RISKS.index)

    def _contenders(self, logged: Logged, places: Sequence[int], learned: Learned | None) -> list[Contender] | None:
        """Those that it allows, with the quality that it goes by."""
        kept = [logged.contenders[place] for place in places]
        if learned is not None:
            return [each._replace(quality=mean) for each, mean in zip(kept, learned.means, strict=True)]
        if not _is_used(logged.learned):
            # what was recorded is what the cards declared
            return kept
        declared = []
        for each in kept:
            capability = self._declared.get((each.key, logged.entry.intent))
            if capability is None:
                return None
            declared.append(each._replace(quality=capability.quality))
        return declared


def admits(policy: Policy, namespace: str, intent: str, agent_id: str) -> bool:
    """Whether a policy lets an agent of a namespace serve an intent."""
    agent = policy.agents.get(agent_id, _AS_THE_CARD)
    # as at registration: what holds for an intent is said by the policy of the agent's namespace
    said = policy.of(namespace).intents.get(intent)
    return agent.enabled is not False and (said is None or said.agents is None or agent_id in said.agents)


def decided(
    contenders: Sequence[Contender], blend: Blend, learned: Learned | None, seed: int
) -> tuple[list[Scored], Choice]:
    """The ranking and the choice of contenders, best first, as `router.selection` makes them."""
    several = learned is not None and len(contenders) > 1
    if learned is not None and several and learned.draws:
        explored = thompson(contenders, blend, learned, seed)
        return explored.ranked, explored.choice
    ranked = order(score(contenders, blend))
    if learned is not None and several and learned.floor > 0:
        return ranked, with_floor(ranked, blend, learned.floor, seed)
    return ranked, choose(ranked, blend, draw_of(seed))


def _preference(logged: Logged, holds: NamespacePolicy) -> Preference:
    return preference_of(_request(logged.asked), logged.said, holds)


@lru_cache(maxsize=4)
def _request(preference: Preference | None) -> RouteRequest:
    return RouteRequest(intent="any", preference=preference)


def _is_used(learned: Learned | None) -> bool:
    return learned is not None and learned.mode != "observe"


def _place_of(scored: Scored, contenders: Sequence[Contender]) -> int:
    # a drawn contender differs from the one it stands for in its quality
    agent = (scored.contender.namespace, scored.contender.agent_id)
    return next(place for place, each in enumerate(contenders) if (each.namespace, each.agent_id) == agent)


def _spread(nobody: tuple[float, ...], places: Sequence[int], shares: Sequence[float]) -> tuple[float, ...]:
    spread = list(nobody)
    for place, share in zip(places, shares, strict=False):
        spread[place] = share
    return tuple(spread)
