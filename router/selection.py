"""Selection: from the eligible capabilities to a ranking, a choice and its explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from models.candidate import Candidate, Stage, WhyNot
from models.decision import Reason
from models.policy import NamespacePolicy
from models.request import Preference, RouteRequest
from router.scorer import (
    Blend,
    Choice,
    Contender,
    Scored,
    choose,
    contributions,
    draw_of,
    features,
    order,
    reason,
    score,
)
from router.snapshot import Entry
from router.standing import Standing
from router.why_not import why_not

_USUAL_TOKENS = 1000
"""What a call is taken to need where the request names no token budget."""


class Selection(NamedTuple):
    """A ranking and the one that was chosen.

    Attributes:
        ranked: best first.
        entries: the capability of each, in the same order.
        wished: whether the choice is the caller's wish, which outranks utility.
    """

    ranked: list[Scored]
    entries: list[Entry]
    choice: Choice
    blend: Blend
    reason: Reason
    wished: bool

    @property
    def chosen(self) -> Entry:
        """The capability that was chosen."""
        return self.entries[self.choice.index]

    @property
    def utility(self) -> float:
        """Its utility."""
        return self.ranked[self.choice.index].utility


def preference_of(request: RouteRequest, said: Preference | None, policy: NamespacePolicy) -> Preference:
    """The caller's preference, else what the sentence asks for, else the policy's; `auto` leaves it to the others."""
    if request.preference not in (None, "auto"):
        return request.preference
    return said or policy.preference


def select(
    entries: Sequence[Entry],
    similarity: float,
    request: RouteRequest,
    blend: Blend,
    seed: int,
    *,
    standings: Mapping[int, Standing] | None = None,
    wish: str | None = None,
) -> Selection:
    """Rank the eligible capabilities of one intent and choose.

    Args:
        entries: at least one; one per agent.
        similarity: the confidence in the intent, which they share.
        request: for the token budget.
        blend: the parameters of the formula.
        seed: the decision's; draw 0 is for the near-equals.
        standings: live figures by the number of the entry; None takes those of agents of which nothing is known.
        wish: the agent that gets it if it is among them; None leaves it to the formula.
    """
    priced = all(entry.card.price is not None for entry in entries)
    contenders = [
        _contender(entry, entry.fresh if standings is None else standings[entry.number], similarity, request, priced)
        for entry in entries
    ]
    by_agent = {(entry.card.namespace, entry.card.agent_id): entry for entry in entries}
    ranked = order(score(contenders, blend))
    ordered = [by_agent[scored.contender.namespace, scored.contender.agent_id] for scored in ranked]
    wished = _place_of(wish, ordered)
    if wished is not None:
        return Selection(ranked, ordered, Choice(wished, 1.0, (1.0,)), blend, Reason.SELECTED, True)
    choice = choose(ranked, blend, draw_of(seed))
    return Selection(ranked, ordered, choice, blend, reason(ranked, choice, blend), False)


def explain(selection: Selection, excluded: Sequence[tuple[Entry, Stage]], limit: int) -> list[Candidate]:
    """All candidates with features, contributions and what the losers lacked; then the excluded ones."""
    listed = [
        _candidate(selection.entries[place], scored, selection, place)
        for place, scored in enumerate(selection.ranked[:limit])
    ]
    return listed + left_out(excluded, limit - len(listed))


def left_out(excluded: Sequence[tuple[Entry, Stage]], limit: int) -> list[Candidate]:
    """Those that never came to be ranked."""
    return [Candidate.of(**_identity(entry), excluded=stage) for entry, stage in excluded[: max(limit, 0)]]


def _candidate(entry: Entry, scored: Scored, selection: Selection, place: int) -> Candidate:
    choice = selection.choice
    if place == choice.index:
        missing = None
    elif selection.wished:
        missing = WhyNot(changes=[], text="the caller wished for another agent")
    else:
        missing = why_not(selection.ranked, place, choice, selection.blend)
    near = choice.propensities
    propensity = choice.propensity if place == choice.index else near[place] if place < len(near) else 0.0
    return Candidate.of(
        **_identity(entry),
        features=features(scored),
        contributions=contributions(scored, selection.blend),
        merit=scored.merit,
        utility=scored.utility,
        propensity=0.0 if selection.wished and place != choice.index else propensity,
        why_not=missing,
    )


def _identity(entry: Entry) -> dict[str, Any]:
    return {
        "agent_id": entry.card.agent_id,
        "namespace": entry.card.namespace,
        "version": entry.card.version,
        "intent": entry.capability.intent,
        "cost_level": entry.capability.cost_level,
    }


def _contender(entry: Entry, standing: Standing, similarity: float, request: RouteRequest, priced: bool) -> Contender:
    card = entry.card
    return Contender(
        agent_id=card.agent_id,
        namespace=card.namespace,
        version=card.version,
        similarity=similarity,
        quality=entry.capability.quality,
        health=standing.health,
        load=standing.load,
        cost=_cost_usd(entry, request) if priced else float(entry.capability.cost_level),
        latency_ms=standing.latency_ms,
        share_weight=standing.share_weight,
    )


def _cost_usd(entry: Entry, request: RouteRequest) -> float:
    """Expected price of the call; comparable only where every contender has a price."""
    price = entry.card.price
    if price is None:
        return 0.0
    n_tokens = _USUAL_TOKENS if request.budget_tokens is None else request.budget_tokens
    return price.per_call_usd + price.per_1k_tokens_usd * n_tokens / 1000


def _place_of(wish: str | None, ordered: Sequence[Entry]) -> int | None:
    if wish is None:
        return None
    return next((place for place, entry in enumerate(ordered) if entry.card.agent_id == wish), None)
