"""Selection: from the eligible capabilities to a ranking, a choice and its explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from models.candidate import Candidate, Stage, WhyNot
from models.card import AgentKey
from models.decision import Reason
from models.policy import NamespacePolicy
from models.request import Preference, RouteRequest
from router.draw import draw_of
from router.explore import thompson, with_floor
from router.learned import Learned
from router.scorer import (
    Blend,
    Choice,
    Contender,
    Scored,
    choose,
    contributions,
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
        contenders: as they were scored, in the order in which they came; quality is the posterior's mean where
            `learned` says so.
        learned: what the learner said of them; None where nothing is learned.
    """

    ranked: list[Scored]
    entries: list[Entry]
    choice: Choice
    blend: Blend
    reason: Reason
    wished: bool
    contenders: list[Contender]
    learned: Learned | None

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
    learned: Learned | None = None,
    costs_usd: Sequence[float | None] = (),
) -> Selection:
    """Rank the eligible capabilities of one intent and choose.

    Args:
        entries: at least one; one per agent.
        similarity: the confidence in the intent, which they share.
        request: for the token budget.
        blend: the parameters of the formula.
        seed: the decision's; draw 0 is for the near-equals, the next ones for exploration.
        standings: live figures by the number of the entry; None takes those of agents of which nothing is known.
        wish: the agent that gets it if it is among them; None leaves it to the formula.
        learned: posteriors of the quality of `entries`; None takes the declared quality.
        costs_usd: observed cost of each entry's calls, None where none was; empty where none is known of any.
    """
    contenders = contenders_of(entries, similarity, request, standings, learned, costs_usd)
    return choose_among(entries, contenders, blend, seed, wish=wish, learned=learned)


def choose_among(
    entries: Sequence[Entry],
    contenders: list[Contender],
    blend: Blend,
    seed: int,
    *,
    wish: str | None = None,
    learned: Learned | None = None,
) -> Selection:
    """As `select`, with the contenders, one for each entry, made already."""
    by_agent = {(entry.card.namespace, entry.card.agent_id): entry for entry in entries}
    wished = wish is not None and any(entry.card.agent_id == wish for entry in entries)
    if learned is not None and learned.draws and len(entries) > 1 and not wished:
        ranked, choice = thompson(contenders, blend, learned, seed)
    else:
        ranked = order(score(contenders, blend))
        if wished:
            place = next(n for n, scored in enumerate(ranked) if scored.contender.agent_id == wish)
            choice = Choice(place, 1.0, (*[0.0] * place, 1.0), n_shared=1)
        elif learned is not None and learned.floor > 0 and len(entries) > 1:
            choice = with_floor(ranked, blend, learned.floor, seed)
        else:
            choice = choose(ranked, blend, draw_of(seed))
    why = Reason.SELECTED if wished else reason(ranked, choice, blend)
    ordered = [by_agent[scored.contender.namespace, scored.contender.agent_id] for scored in ranked]
    return Selection(ranked, ordered, choice, blend, why, wished, contenders, learned)


def contenders_of(
    entries: Sequence[Entry],
    similarity: float,
    request: RouteRequest,
    standings: Mapping[int, Standing] | None,
    learned: Learned | None,
    costs_usd: Sequence[float | None] = (),
) -> list[Contender]:
    """The entries as the formula sees them, in their order; arguments as in `select`."""
    qualities = None if learned is None or learned.mode == "observe" else learned.means
    observed = costs_usd or [None] * len(entries)
    # dollars where all have them: a cost level and a price cannot be compared
    priced = all(
        entry.card.price is not None or cost is not None for entry, cost in zip(entries, observed, strict=True)
    )
    return [
        _contender(
            entry,
            entry.fresh if standings is None else standings[entry.number],
            similarity,
            entry.capability.quality if qualities is None else qualities[place],
            _cost(entry, observed[place], request) if priced else float(entry.capability.cost_level),
        )
        for place, entry in enumerate(entries)
    ]


def explain(selection: Selection, excluded: Sequence[tuple[Entry, Stage]], limit: int) -> list[Candidate]:
    """All candidates with features, contributions and what the losers lacked; then the excluded ones."""
    predicted = _predicted(selection)
    listed = [
        _candidate(entry, scored, selection, place, predicted.get(entry.agent))
        for place, (entry, scored) in enumerate(zip(selection.entries, selection.ranked[:limit], strict=False))
    ]
    return listed + left_out(excluded, limit - len(listed))


def left_out(excluded: Sequence[tuple[Entry, Stage]], limit: int) -> list[Candidate]:
    """Those that never came to be ranked."""
    return [Candidate.of(**_identity(entry), excluded=stage) for entry, stage in excluded[: max(limit, 0)]]


def _candidate(entry: Entry, scored: Scored, selection: Selection, place: int, predicted: float | None) -> Candidate:
    choice = selection.choice
    if place == choice.index:
        missing = None
    elif selection.wished:
        missing = WhyNot(changes=[], text="the caller wished for another agent")
    else:
        missing = why_not(selection.ranked, place, choice, selection.blend)
    shares = choice.propensities
    return Candidate.of(
        **_identity(entry),
        predicted=predicted,
        features=features(scored),
        contributions=contributions(scored, selection.blend),
        merit=scored.merit,
        utility=scored.utility,
        propensity=shares[place] if place < len(shares) else 0.0,
        why_not=missing,
    )


def _predicted(selection: Selection) -> dict[AgentKey, float]:
    """What success heads said, of the agents that have one."""
    learned = selection.learned
    if learned is None or learned.heads is None:
        return {}
    said = zip(selection.contenders, learned.heads.said, strict=True)
    return {contender.key: each.predicted for contender, each in said if each is not None}


def _identity(entry: Entry) -> dict[str, Any]:
    return {
        "agent_id": entry.card.agent_id,
        "namespace": entry.card.namespace,
        "version": entry.card.version,
        "intent": entry.capability.intent,
        "cost_level": entry.capability.cost_level,
    }


def _contender(entry: Entry, standing: Standing, similarity: float, quality: float, cost: float) -> Contender:
    card = entry.card
    return Contender(
        agent_id=card.agent_id,
        namespace=card.namespace,
        version=card.version,
        similarity=similarity,
        quality=quality,
        health=standing.health,
        load=standing.load,
        cost=cost,
        latency_ms=standing.latency_ms,
        share_weight=standing.share_weight,
    )


def _cost(entry: Entry, observed_usd: float | None, request: RouteRequest) -> float:
    """What calls were seen to cost, else the expected price of the call."""
    price = entry.card.price
    if observed_usd is not None or price is None:
        return observed_usd or 0.0
    n_tokens = _USUAL_TOKENS if request.budget_tokens is None else request.budget_tokens
    return price.per_call_usd + price.per_1k_tokens_usd * n_tokens / 1000
