"""Learning: what the learner says of the contenders of a case, and what it takes from outcomes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import orjson

from feedback.attribution import Charge
from feedback.learner import Learner
from feedback.lessons import Learnt, Lesson
from feedback.outcome_watch import OutcomeWatch
from feedback.reward import reward
from feedback.share_limit import ShareLimit
from models.card import AgentKey, Risk
from models.events import Row
from models.learning_policy import LearningMode, RiskPolicy
from models.outcome import Outcome
from models.policy import NamespacePolicy, Policy
from models.request import Preference
from router.learned import Learned
from router.live.open_decisions import OpenDecision
from router.scorer import Blend
from router.snapshot import Entry, Snapshot

log = logging.getLogger(__name__)

T = TypeVar("T")

_RISKS: tuple[Risk, ...] = ("low", "normal", "high")


class Advice(NamedTuple):
    """What is known of the contenders of a case.

    Attributes:
        learned: posteriors, in the order of the contenders; None where there are none.
        costs_usd: observed cost of each contender's calls; empty where none is known.
        blend: of the formula, with learned exponents where they hold.
    """

    learned: Learned | None
    costs_usd: tuple[float | None, ...]
    blend: Blend


class Told(NamedTuple):
    """What was learned from an outcome.

    Attributes:
        learnt: JSON text with which it can be taken back; None where that is nothing.
        rows: to be written down.
    """

    learnt: str | None
    rows: Sequence[Row]


_NOTHING = Told(None, ())


class Learning:
    """The learner with the policy that it works by, and its brakes.

    A learner that fails fails no decision and no outcome: the declared quality stands in, and the log says so.

    Attributes:
        learner: what is learned.
        watch: says when outcomes look wrong.
        shares: how fast an agent's share may rise.
        raised_floor: gives the floor of exploration in place of the policy's, while a candidate model needs evidence.
        n_failures: of the learner, since the start.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.watch = OutcomeWatch()
        self.shares = ShareLimit()
        self.raised_floor: Callable[[float], float] = _as_it_is
        self.n_failures = 0

    @property
    def version(self) -> int:
        """Of the weights; 0 where the learner cannot tell."""
        return self._safely(lambda: self.learner.version, 0)

    def follow(self, snapshot: Snapshot) -> None:
        """Take what the cards declare."""
        declared: dict[AgentKey, dict[str, float]] = {}
        for entry in snapshot.entries:
            if entry.flaw is None and entry.card.enabled:
                declared.setdefault(entry.agent, {})[entry.capability.intent] = entry.capability.quality
        self._safely(lambda: self.learner.declare(declared), None)

    def advise(
        self,
        entries: Sequence[Entry],
        intents: Sequence[tuple[str, float]],
        policy: Policy,
        holds: NamespacePolicy,
        preference: Preference,
    ) -> Advice:
        """What is known of the entries.

        Args:
            entries: the contenders, at least one.
            intents: (intent, confidence) of the reading, the one routed by first.
            policy: the whole one.
            holds: that of the request's namespace.
            preference: of the request: `best` explores nothing.
        """
        blend = Blend.of(holds, preference)
        return self._safely(
            lambda: self._advice(entries, intents, policy, holds, preference, blend), Advice(None, (), blend)
        )

    def decided(self, agent: AgentKey, is_expected: bool, policy: Policy) -> None:
        """Note a decision for an agent; `is_expected` is whether its caller posts outcomes at all."""
        self._safely(lambda: self.learner.routed(agent[0]), None)
        if is_expected:
            self.watch.decided(policy.learning.freeze)

    def take(self, opened: OpenDecision, outcome: Outcome, charged: Charge, policy: Policy, at_ms: int) -> Told:
        """Learn from an outcome.

        Args:
            opened: the decision.
            outcome: of one of its attempts.
            charged: to whom; only what an agent is charged with is learned from.
            policy: the whole one.
            at_ms: epoch.
        """
        rules = policy.learning
        step = opened.steps[outcome.attempt - 1]
        worth = reward(outcome, charged, step.slice_ms, rules.reward)
        if worth is None or not opened.intents or not self.watch.trusts(opened.teller):
            return _NOTHING
        lesson = Lesson(
            agent=step.agent,
            intents=opened.intents,
            reward=worth,
            caller=opened.teller,
            # what the formula saw was of the first attempt's agent
            features=opened.features if outcome.attempt == 1 else None,
            cost_usd=outcome.cost_usd,
            at_ms=at_ms,
            base=Blend.of(policy.of(opened.namespace), "auto")[:4],
        )
        return self._safely(lambda: _told(self.learner.learn_one(lesson, rules)), _NOTHING)

    def take_back(self, learnt: str | None, policy: Policy, at_ms: int) -> Sequence[Row]:
        """Undo what was learned from an outcome that is replaced, or charged to another."""
        if learnt is None:
            return ()
        contribution = orjson.loads(learnt)
        return self._safely(lambda: self.learner.unlearn_one(contribution, policy.learning, at_ms).rows, ())

    def due(self, policy: Policy, at_ms: int) -> Sequence[Row]:
        """What changes as time goes by: the evidence on demoted agents decays with the requests that were routed."""
        return self._safely(lambda: self.learner.due(policy.learning, at_ms).rows, ())

    def exponents(self, namespace: str, policy: Policy) -> dict[str, float]:
        """Those of the merit in a namespace, as they hold now."""
        base = Blend.of(policy.of(namespace), "auto")
        now = self._with_exponents(namespace, base, policy)
        return {name: getattr(now, name) for name in ("similarity", "quality", "health", "load")}

    def watched(self, caller: str, is_odd: bool, policy: Policy, at_ms: int) -> Sequence[Row]:
        """Note an outcome; learning stops, or goes on, where outcomes look wrong, or right again.

        Args:
            caller: in whose name it came.
            is_odd: whether it contradicts what was told before, or comes before the attempt that it follows.
            policy: the whole one.
            at_ms: epoch.
        """
        self.watch.told(caller, is_odd, policy.learning.freeze)
        return self._safely(lambda: self._freeze_or_thaw(at_ms), ())

    def _freeze_or_thaw(self, at_ms: int) -> Sequence[Row]:
        reason, frozen = self.watch.reason, self.learner.frozen
        if reason is not None and frozen is None:
            log.warning("learning stops: %s", reason)
            return self.learner.freeze(f"{_BY_ITSELF}{reason}", at_ms).rows
        if reason is None and frozen is not None and frozen.startswith(_BY_ITSELF):
            log.warning("learning goes on: outcomes are as usual again")
            return self.learner.thaw(at_ms).rows
        return ()

    def _advice(
        self,
        entries: Sequence[Entry],
        intents: Sequence[tuple[str, float]],
        policy: Policy,
        holds: NamespacePolicy,
        preference: Preference,
        blend: Blend,
    ) -> Advice:
        learner, rules = self.learner, policy.learning
        agents = [entry.agent for entry in entries]
        posterior = learner.posterior(agents, intents, rules)
        mode: LearningMode = rules.mode
        floor = 0.0
        if mode != "observe":
            explores = _explored(policy.risk, _risk_of(entries, holds))
            if preference != "best" and (explores == "always" or (explores == "explore" and mode == "explore")):
                floor = self.raised_floor(rules.floor)
            elif mode == "explore":
                mode = "exploit"
        blend = self._with_exponents(entries[0].agent[0], blend, policy)
        learned = Learned(mode, posterior.alpha, posterior.beta, floor, rules.temperature, learner.version)
        costs_usd = tuple([learner.cost_of(agent) for agent in agents])
        return Advice(learned, costs_usd if any(cost is not None for cost in costs_usd) else (), blend)

    def _with_exponents(self, namespace: str, blend: Blend, policy: Policy) -> Blend:
        rules = policy.learning
        if rules.mode == "observe" or not rules.exponents:
            return blend
        of = self.learner.exponents(namespace, blend[:4])
        return blend._replace(similarity=of[0], quality=of[1], health=of[2], load=of[3])

    def _safely(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception:
            self.n_failures += 1
            if self.n_failures & (self.n_failures - 1) == 0:  # the first, and then ever fewer: the log has to last
                log.exception("the learner failed, %d times by now; decisions go on without it", self.n_failures)
            return otherwise


_BY_ITSELF = "by itself: "


def _as_it_is(floor: float) -> float:
    return floor


def _told(learnt: Learnt) -> Told:
    added = learnt.contribution
    return Told(None if added is None else orjson.dumps(added).decode(), learnt.rows)


def _explored(risk: RiskPolicy, of: Risk) -> str:
    found: str = getattr(risk, of)
    return found


def _risk_of(entries: Sequence[Entry], holds: NamespacePolicy) -> Risk:
    """Of an intent: what the policy says, else the greatest on the cards."""
    said = holds.intents.get(entries[0].capability.intent)
    if said is not None and said.risk is not None:
        return said.risk
    return max((entry.capability.risk for entry in entries), key=_RISKS.index)
