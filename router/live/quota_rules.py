"""QuotaRules: which windows a call counts in, by the quotas of the policy and the rate limit of the card."""

from __future__ import annotations

from collections.abc import Sequence

from models.card import AgentCard, AgentKey
from models.live_policy import Quota
from router.live.asker import Asker
from router.live.quotas import Claim

MAX_CLAIMED = 50_000
"""So many callers, and pairs of a caller and an agent, have their claims kept; beyond that all are made anew."""


class QuotaRules:
    """The quotas of one policy.

    >>> rules = QuotaRules([Quota(per_caller=True, max_calls=100), Quota(agent="a", max_calls=5, window_ms=1000)])
    >>> [claim.max_calls for _, claim in rules.own(Asker("shop", "default"))]
    [100]
    >>> [claim.max_calls for claim in rules.of_agent(Asker("shop", "default"), AgentCard(agent_id="a"))]
    [5]
    """

    def __init__(self, quotas: Sequence[Quota]) -> None:
        # named by what it says, so that windows outlive a change of other rules
        named = [(quota, quota.model_dump_json()) for quota in quotas]
        self._own = [each for each in named if not each[0].is_of_agent]
        self._of_agent = [each for each in named if each[0].is_of_agent]
        self._by_name = {name: quota for quota, name in named}
        self._own_of: dict[tuple[str, str], list[tuple[Quota, Claim]]] = {}
        self._claims: dict[tuple[str, str, AgentKey], tuple[AgentCard, list[Claim]]] = {}

    def own(self, asker: Asker) -> list[tuple[Quota, Claim]]:
        """The caller's own quotas, whichever agent it gets."""
        if not self._own:
            return []
        where = (asker.caller, asker.namespace)
        found = self._own_of.get(where)
        if found is None:
            if len(self._own_of) >= MAX_CLAIMED:
                self._own_of.clear()
            found = [(quota, _claim(quota, name, asker, None)) for quota, name in self._own if _holds(quota, asker)]
            self._own_of[where] = found
        return found

    def quota_of(self, claim: Claim) -> Quota | None:
        """The quota that a claim is made of; None for the rate limit of a card."""
        return self._by_name.get(str(claim.key[0]))

    def limits(self, card: AgentCard) -> bool:
        """False where no call of this agent counts anywhere but in its caller's own quotas."""
        return card.rate_limit is not None or bool(self._of_agent)

    def of_agent(self, asker: Asker, card: AgentCard) -> Sequence[Claim]:
        """The quotas of an agent, or of this caller at this agent."""
        if not self.limits(card):
            return ()
        where = (asker.caller, asker.namespace, card.key)
        known = self._claims.get(where)
        if known is not None and known[0] is card:
            return known[1]
        if len(self._claims) >= MAX_CLAIMED:
            self._claims.clear()
        claims = self._of(asker, card)
        self._claims[where] = (card, claims)
        return claims

    def _of(self, asker: Asker, card: AgentCard) -> list[Claim]:
        claims = [
            _claim(quota, name, asker, card)
            for quota, name in self._of_agent
            if _holds(quota, asker) and quota.agent in (None, card.agent_id)
        ]
        limit = card.rate_limit
        if limit is not None:
            key = ("rate_limit", card.namespace, card.agent_id)
            claims.append(Claim(key, limit.window_ms, limit.max_calls, None))
        return claims


def _holds(quota: Quota, asker: Asker) -> bool:
    return quota.namespace in (None, asker.namespace) and quota.caller in (None, asker.caller)


def _claim(quota: Quota, name: str, asker: Asker, card: AgentCard | None) -> Claim:
    caller = asker.caller if quota.is_of_caller else None
    agent = None if card is None else (card.namespace, card.agent_id)
    return Claim((name, caller, agent), quota.window_ms, quota.max_calls, quota.max_tokens)
