"""Comparing a decision that was made again with the record of the first one: which part differs, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from models.decision import RouteDecision
from router.case import Case
from router.replayed import DifferentError
from router.sealed_inputs import contender_row
from router.sealed_record import SealedRecord
from router.wire import dumps, loads

_RANKING = ("reason", "target", "utility", "propensity", "candidates")
_MASKED = frozenset({"text", "entities", "constraints", "idempotency_key"})
"""Fields of an answer that follow from the text of the request, or are kept in another form where that is not kept."""

_COLUMNS = ("quality", "cost", "health", "load", "share_weight", "latency_ms")
_LONGEST = 200


def check_ranking(case: Case, record: SealedRecord) -> None:
    """What was ranked is what was sealed.

    Raises:
        DifferentError: naming the agent and the figure.
    """
    selection, inputs = case.selection, record.inputs
    if selection is None:
        return
    learns = selection.learned is not None and selection.learned.mode != "observe"
    for entry, contender, sealed in zip(
        case.eligible.entries, selection.contenders, inputs.get("contenders", ()), strict=False
    ):
        row = contender_row(entry, contender)
        for name, now, then in zip(_COLUMNS, row[1:], sealed[1:], strict=True):
            if now != then:
                part = "live" if name not in ("quality", "cost") else "weights" if learns else "cards"
                raise DifferentError(part, f"{name} of {row[0]} is {now}, was {then}")
    shares = dict(zip([entry.number for entry in selection.entries], selection.choice.propensities, strict=False))
    found = [shares.get(entry.number, 0.0) for entry in case.eligible.entries]
    if found != inputs["propensities"]:
        raise DifferentError("draws", f"propensities are {found}, were {inputs['propensities']}")


def check_left_out(case: Case, record: SealedRecord, *, has_text: bool) -> None:
    """Those that were taken out are those that were sealed.

    Raises:
        DifferentError: naming the first one that is not.
    """
    found = [["/".join(entry.agent), str(stage)] for entry, stage in case.eligible.excluded]
    sealed = record.inputs.get("left_out", [])
    found = found[: len(sealed)] if record.is_partial else found
    if not has_text:  # a payload that is not kept takes nobody out in its turn
        found, sealed = sorted(found), sorted(sealed)
    if found != sealed:
        first = next((each for each in [*found, *sealed] if each not in found or each not in sealed), sealed[0])
        raise DifferentError("ranking", f"{first[0]} was taken out otherwise: {found} now, {sealed} then")


def check_answer(decision: RouteDecision, record: SealedRecord, *, has_text: bool) -> None:
    """The answer is the one on record, byte for byte where the request is kept.

    Raises:
        DifferentError: naming the first field that differs, and its part.
    """
    body = dumps(decision)
    if body == record.row.answer.encode() and _columns(decision, record):
        return
    try:
        stored = loads(record.row.answer.encode())
    except ValueError:
        raise DifferentError("answer", "the answer on record is no JSON") from None
    found = loads(body)
    for names, part in ((_RANKING, "ranking"), (("plan",), "plan"), (tuple(found), "answer")):
        for name in names:
            if name not in stored:  # a later release has added it
                continue
            for path, now, then in _differences(name, found.get(name), stored.get(name), masked=not has_text):
                raise DifferentError(part, f"{path} is {_short(now)}, was {_short(then)}")
    if not _columns(decision, record):
        raise DifferentError("answer", "the columns of the record do not say what its answer says")


def _columns(decision: RouteDecision, record: SealedRecord) -> bool:
    row, request = record.row, record.request
    return (
        row.action == decision.action
        and row.reason == decision.reason
        and row.intent == (None if decision.intent is None else decision.intent.name)
        and row.agent_id == (None if decision.target is None else decision.target.agent_id)
        and row.namespace == request.namespace
        and row.session_id == request.caller.session_id
        and row.asker == (request.caller.agent_id or row.caller)
    )


def _differences(path: str, now: Any, then: Any, *, masked: bool) -> Iterator[tuple[str, Any, Any]]:
    """(path, now, then) of all that differs; a field that a later release has added is no difference."""
    if masked and path.rpartition(".")[2] in _MASKED:
        return
    if isinstance(now, Mapping) and isinstance(then, Mapping):
        for name in then:
            yield from _differences(f"{path}.{name}", now.get(name), then[name], masked=masked)
    elif isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        for number, (one, other) in enumerate(zip(now, then, strict=True)):
            yield from _differences(f"{path}.{number}", one, other, masked=masked)
    elif now != then:
        yield path, now, then


def _short(value: Any) -> str:
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
