"""Eligibility: which of the permitted capabilities can take this request; the rest leave with a stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.candidate import Stage
from models.decision import SkippedVersion
from models.errors import FieldProblem, InvalidPayloadError
from models.request import RouteRequest
from router.schemas import payload_problems
from router.snapshot import Entry
from router.versions import admits


@dataclass(slots=True)
class Eligible:
    """The outcome of the checks.

    Attributes:
        entries: those that may be ranked.
        excluded: the others, with the first stage that took each out.
        skipped: agents that no version serves because of the version range.
    """

    entries: list[Entry] = field(default_factory=list)
    excluded: list[tuple[Entry, Stage]] = field(default_factory=list)
    skipped: list[SkippedVersion] = field(default_factory=list)


def serving(permitted: Sequence[Entry], wanted: str | None) -> tuple[list[Entry], list[Entry]]:
    """The newest version of each agent that the range admits, and for agents without one their newest version.

    Args:
        permitted: enabled capabilities of one intent.
        wanted: a version range; None admits all.

    Returns:
        (serving, passed over because of the version), both in the order given.
    """
    if len(permitted) == 1 and wanted is None:
        return list(permitted), []
    newest: dict[tuple[str, str], Entry] = {}
    admitted: dict[tuple[str, str], Entry] = {}
    for entry in permitted:
        agent = (entry.card.namespace, entry.card.agent_id)
        if agent not in newest or _is_newer(entry, newest[agent]):
            newest[agent] = entry
        if wanted is not None and not admits(wanted, entry.card.version):
            continue
        if agent not in admitted or _is_newer(entry, admitted[agent]):
            admitted[agent] = entry
    return list(admitted.values()), [entry for agent, entry in newest.items() if agent not in admitted]


def _is_newer(one: Entry, other: Entry) -> bool:
    """As the scorer orders versions: by precedence, then by the build, so that the order of registration is nothing."""
    return bool(one.version.precedence_key > other.version.precedence_key)


def _declared_ms(entry: Entry) -> float:
    return entry.card.timeout_ms


def check(
    permitted: Sequence[Entry],
    request: RouteRequest,
    remaining_ms: float,
    timeout_ms: Callable[[Entry], float] = _declared_ms,
) -> Eligible:
    """Apply version, exclusion, payload, cost level, quality and deadline, in this order.

    Args:
        permitted: the capabilities the request may reach.
        request: the request.
        remaining_ms: what an agent's call may take (SPEC R5).
        timeout_ms: suggested timeout of an entry.

    Raises:
        InvalidPayloadError: the payload fits no permitted capability's input schema.
    """
    result = Eligible()
    chosen, passed_over = serving(permitted, request.version)
    for entry in passed_over:
        result.excluded.append((entry, Stage.VERSION))
        result.skipped.append(_skipped(entry, request.version or ""))
    unfit = _unfit(chosen, request.payload)
    for entry in chosen:
        stage = _stage(entry, request, unfit)
        if stage is None and timeout_ms(entry) > remaining_ms:
            stage = Stage.DEADLINE
        if stage is None:
            result.entries.append(entry)
        else:
            result.excluded.append((entry, stage))
    return result


def _stage(entry: Entry, request: RouteRequest, unfit: frozenset[int]) -> Stage | None:
    capability = entry.capability
    if entry.card.agent_id in request.exclude:
        return Stage.EXCLUDED
    if entry.number in unfit:
        return Stage.PAYLOAD
    if request.max_cost_level is not None and capability.cost_level > request.max_cost_level:
        return Stage.MAX_COST_LEVEL
    if request.min_quality is not None and capability.quality < request.min_quality:
        return Stage.MIN_QUALITY
    return None


def _unfit(entries: Sequence[Entry], payload: Any) -> frozenset[int]:
    """Numbers of the entries whose input schema refuses the payload; a missing payload is not an invalid one."""
    if payload is None or not entries:
        return frozenset()
    # agents of one intent mostly have the same schema, which is compiled once
    is_unfit: dict[int, bool] = {}
    for entry in entries:
        if entry.validator is not None and id(entry.validator) not in is_unfit:
            is_unfit[id(entry.validator)] = bool(payload_problems(entry.validator, payload, limit=1))
    unfit = frozenset(entry.number for entry in entries if is_unfit.get(id(entry.validator), False))
    if len(unfit) == len(entries):
        raise InvalidPayloadError("the payload fits no capability that may take this request", _told(entries, payload))
    return unfit


def _told(entries: Sequence[Entry], payload: Any) -> tuple[FieldProblem, ...]:
    """What is wrong for the capability that the payload comes nearest to; of several, the one of most quality."""
    told = [
        (payload_problems(entry.validator, payload), -entry.capability.quality, entry.number)
        for entry in entries
        if entry.validator is not None
    ]
    return min(told, key=lambda each: (len(each[0]), *each[1:]))[0]


def _skipped(entry: Entry, wanted: str) -> SkippedVersion:
    return SkippedVersion(agent_id=entry.card.agent_id, version=entry.card.version, wanted=wanted)
