"""Sealed inputs: all that a decision was made from, as the JSON text that its record keeps and a replay begins with.

What is large and shared (cards, policy, classifiers) is named by digest and lies in the archive of generations. What
does not come back (live figures, posteriors, the answer of a language model) is written out. Nothing in here is taken
from the decision's result but what others gave to it: a ticket, the ids of its parts, the time that it took.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson

from intent.llm.escalated import Escalated, EscalationStatus
from models.candidate import Stage
from models.decision import RouteDecision
from models.reading import Reading
from router.case import Case
from router.learned import Learned
from router.live.open_decisions import chosen_by_caller
from router.permit import Grants
from router.scorer import Blend, Contender
from router.seals import section_digest
from router.selection import Selection
from router.snapshot import Entry
from router.success import sealed_heads
from router.wire import dumps

FORMAT = 1
"""Of what is sealed; a replay refuses what it does not know."""

MOST = 256
"""So many contenders, and so many that were left out, are sealed; a replay of a larger decision is partial."""

NO_HEADS = "none"
"""Stands for the digest where everything was left to the index."""

BASE = (
    "format",
    "span_id",
    "now_ms",
    "checked_ms",
    "deadline_ms",
    "reserve_ms",
    "elapsed_ms",
    "zone",
    "encoder_id",
    "grants",
    "generations",
)
"""Members that go with the request: its instants, and what its caller might."""

OF_SECTIONS = ("seed", "reading", "blend", "learned", "propensities", "digests")
"""Members that have a section of their own, or tell of those; all that is in neither list is live."""

_NULL = b"null"


def sealed_inputs(case: Case, decision: RouteDecision, request: bytes, zone: str, classifier: str | None) -> bytes:
    """The JSON text of what decided.

    Args:
        case: decided.
        decision: for what others gave to it: ticket, ids of its parts, time.
        request: its JSON text as it is recorded.
        zone: the time zone in which words such as `tomorrow` were understood.
        classifier: digest of the classifiers that read it; None where they are not in the archive.
    """
    facts = case.facts
    reading = _NULL if facts.read is None else orjson.dumps(sealed_reading(facts.read))
    blend, learned, draws, live = _selected(case, decision)
    seed = str(case.seed).encode()
    base = orjson.dumps(_base(case, decision, zone))
    rest = {
        "seed": case.seed,
        "reading": orjson.Fragment(reading),
        "blend": orjson.Fragment(blend),
        "learned": orjson.Fragment(learned),
        "propensities": orjson.Fragment(draws),
        "digests": {
            **case.snapshot.digests,
            "classifier": classifier,
            "request": section_digest(request, base),
            "reading": section_digest(reading),
            "weights": section_digest(blend, learned),
            "live": section_digest(live),
            "draws": section_digest(seed, draws),
        },
    }
    # one object out of three, as the digest of a section is that of its text
    ends = b"}" if live == b"{}" else b"," + live[1:]
    return b"%b,%b%b" % (base[:-1], orjson.dumps(rest)[1:-1], ends)


def _base(case: Case, decision: RouteDecision, zone: str) -> dict[str, Any]:
    snapshot = case.snapshot
    return {
        "format": FORMAT,
        "span_id": case.span_id,
        "now_ms": case.now_ms,
        "checked_ms": case.checked_ms,
        "deadline_ms": case.deadline.at_ms,
        "reserve_ms": case.deadline.reserve_ms,
        "elapsed_ms": decision.elapsed_ms,
        "zone": zone,
        "encoder_id": snapshot.encoder_id,
        "grants": _grants(case.grants),
        "generations": (
            snapshot.cards_generation,
            snapshot.index_generation,
            case.classifier_generation,
            case.weights_version,
            snapshot.policy_generation,
        ),
    }


def sealed_reading(reading: Reading) -> dict[str, Any]:
    """Without its text, which is the request's, normalized, and without the vector, which is the text's."""
    sealed: dict[str, Any] = {
        "language": reading.language,
        "certainty": reading.certainty,
        "intent": reading.intent,
        "confidence": reading.confidence,
        "source": reading.source,
        "alternatives": [(other.intent, other.confidence) for other in reading.alternatives],
        "preference": reading.preference,
        "degraded": reading.degraded,
    }
    if reading.vector is not None:
        sealed["vector"] = True
    if reading.parts:
        sealed["parts"] = [sealed_reading(part) for part in reading.parts]
    return sealed


def _selected(case: Case, decision: RouteDecision) -> tuple[bytes, bytes, bytes, bytes]:
    """JSON texts: the blend, what was learned, propensities, and an object of all that is live."""
    live = _live(case, decision)
    selection = case.selection
    if selection is None:
        return _NULL, _NULL, _NULL, orjson.dumps(live)
    contenders, learned, entries = selection.contenders, selection.learned, case.eligible.entries
    places: Sequence[int] = range(len(contenders))
    if len(contenders) > MOST:
        places = _kept(selection, entries)
        live["n_contenders"] = len(contenders)
        live["refs"] = [max([each.cost for each in contenders]), max([each.latency_ms for each in contenders])]
    shares = dict(zip([entry.number for entry in selection.entries], selection.choice.propensities, strict=False))
    live["contenders"] = [contender_row(entries[place], contenders[place]) for place in places]
    live["similarity"] = contenders[0].similarity
    if case.facts.costs_usd:
        live["costs_usd"] = [case.facts.costs_usd[place] for place in places]
    if case.is_last_resort:
        live["stages"] = [case.standings[entries[place].number].stage for place in places]
    return (
        _blend(selection.blend),
        _NULL if learned is None else orjson.dumps(_learned(learned, places)),
        orjson.dumps([shares.get(entries[place].number, 0.0) for place in places]),
        orjson.dumps(live),
    )


def _kept(selection: Selection, entries: Sequence[Entry]) -> list[int]:
    """Places of those that are sealed: the first of the ranking, the chosen, its backups, the dearest, the slowest."""
    contenders = selection.contenders
    numbers = {entry.number for entry in selection.entries[:MOST]} | {selection.chosen.number}
    everybody = range(len(contenders))
    kept = {place for place in everybody if entries[place].number in numbers}
    backup = selection.chosen.card.backup_agent_id
    kept.update(place for place in everybody if entries[place].card.agent_id == backup)
    kept.add(max(everybody, key=lambda place: contenders[place].cost))
    kept.add(max(everybody, key=lambda place: contenders[place].latency_ms))
    return sorted(kept)


def _live(case: Case, decision: RouteDecision) -> dict[str, Any]:
    """What others gave to the decision, where there is something to tell: mostly there is nothing."""
    facts, excluded = case.facts, case.eligible.excluded
    live: dict[str, Any] = {}
    if case.promotion_id is not None:
        live["promotion_id"] = case.promotion_id
    if case.explain:
        live["explain"] = True
    if case.shadow is not None:
        live["shadow"] = "/".join(case.shadow)
    if case.given_ms is not None:
        live["given_ms"] = case.given_ms
    if facts.part_of is not None:
        live["part_of"] = facts.part_of
    if decision.parts:
        live["parts"] = [part.decision_id for part in decision.parts]
    if facts.goal is not None:
        live["goal"] = facts.goal
    if facts.waiting is not None:
        live["waiting"] = (facts.waiting.agent, facts.waiting.intent)
    if case.lease is not None:
        live["leased"] = True
    if facts.probes:
        live["probes"] = ["/".join(agent) for agent in facts.probes]
    if case.escalated is not None and case.escalated.status is not EscalationStatus.DISABLED:
        live["llm"] = _escalated(case.escalated)
    if excluded:
        live["left_out"] = [("/".join(entry.agent), stage) for entry, stage in excluded[:MOST]]
        if len(excluded) > MOST:
            live["n_left_out"] = len(excluded)
    if timeouts := _timeouts(case):
        live["timeouts_ms"] = timeouts
    if prices := _prices(case, decision):
        live["prices"] = prices
    if case.selection is None:
        _add_refusal(live, case, decision)
    return live


def _add_refusal(live: dict[str, Any], case: Case, decision: RouteDecision) -> None:
    """Why nobody was chosen, where others decided that."""
    if case.facts.n_failures:
        live["n_failures"] = case.facts.n_failures
    if case.facts.is_poison:
        live["is_poison"] = True
    if case.wait_ms is not None:
        live["retry_after_ms"] = case.wait_ms
    if case.over is not None:
        live["over"] = _over(case)
    if decision.queue is not None:
        live["ticket"] = (decision.queue.ticket, decision.queue.url, decision.queue.expires_at)


def _timeouts(case: Case) -> dict[str, int]:
    """Suggested timeouts that are not those of the cards, of the eligible and of those too slow for the deadline."""
    figures = case.facts.figures
    entries = case.eligible.entries
    if case.eligible.excluded:
        late = [entry for entry, stage in case.eligible.excluded[:MOST] if stage is Stage.DEADLINE]
        entries = [*entries, *late]
    known: dict[str, int] = {}
    for entry in entries:
        figure = figures.get(entry.number)
        if figure is not None and figure is not entry.fresh and figure.timeout_ms != entry.card.timeout_ms:
            known["/".join(entry.agent)] = figure.timeout_ms
    return known


def _prices(case: Case, decision: RouteDecision) -> dict[str, tuple[float, float]]:
    """Prices per call and per 1000 tokens, of the agents that are to be called: what a call costs stays what it was."""
    cards, choice = case.snapshot.card_of, case.request.caller_choice
    called = [(each.target.namespace, each.target.agent_id, each.target.version) for each in decision.plan]
    if choice is not None:
        called = [case.shadow or chosen_by_caller(choice, case.request.namespace, cards)]
    priced = [cards[agent] for agent in called if agent in cards]
    return {"/".join(card.key): (p.per_call_usd, p.per_1k_tokens_usd) for card in priced if (p := card.price)}


def _over(case: Case) -> tuple[int, float, str]:
    """Place of the quota in the policy, and what the refusal said."""
    over = case.over
    assert over is not None
    quotas = case.snapshot.policy.quotas
    place = next((place for place, quota in enumerate(quotas) if quota is over.quota), None)
    return (quotas.index(over.quota) if place is None else place, over.retry_after_ms, over.told)


def _escalated(told: Escalated) -> tuple[object, ...]:
    return (told.intent, told.status, told.origin, told.n_tokens, told.detail)


def contender_row(entry: Entry, contender: Contender) -> tuple[object, ...]:
    """Of one contender: agent, quality, cost, health, load, weight among near-equals, latency."""
    _, _, _, _, quality, health, load, cost, latency_ms, share_weight = contender
    return ("/".join(entry.agent), quality, cost, health, load, share_weight, latency_ms)


def _learned(learned: Learned, places: Sequence[int]) -> dict[str, Any]:
    is_whole = len(places) == len(learned.alpha)
    sealed: dict[str, Any] = {
        "mode": learned.mode,
        "floor": learned.floor,
        "temperature": learned.temperature,
        "version": learned.version,
        "alpha": learned.alpha if is_whole else [learned.alpha[place] for place in places],
        "beta": learned.beta if is_whole else [learned.beta[place] for place in places],
    }
    if learned.heads is not None:
        sealed["heads"] = sealed_heads(learned.heads, places)
    return sealed


@lru_cache(maxsize=256)
def _blend(blend: Blend) -> bytes:
    return orjson.dumps(list(blend))


@lru_cache(maxsize=1024)
def _grants(grants: Grants) -> orjson.Fragment:
    """What the caller might at that time, as JSON text; null means all."""
    held = {"permissions": grants.permissions, "namespaces": grants.namespaces, "agent_ids": grants.agent_ids}
    return orjson.Fragment(dumps({name: None if names is None else sorted(names) for name, names in held.items()}))
