"""The nested form of a card (`agent`, `capabilities`, `reach`, `governance`), turned into the flat one.

What an agent is stands under `agent`, how to get at it under `reach`, how it may be used under `governance`; what is
both (`_EITHER`) is accepted in both. Units may be left out of names: `timeout: 2s` is `timeout_ms: 2000`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from models.card import Probe, RateLimit, Retry
from models.contract import Contract
from router.field_problems import shown, unknown_field
from router.model_walk import FieldPath

_EITHER = (
    "max_inflight",
    "max_retries",
    "retry",
    "rate_limit",
    "idempotent",
    "depends_on",
    "backup_agent_id",
    "fallback",
)
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "agent": ("agent_id", "namespace", "version", "display_name", "description", "owner", "labels", "a2a"),
    "reach": ("endpoint", "protocol", "timeout_ms", "heartbeat_s", "probe", *_EITHER),
    "governance": ("weight", "warmup_s", "enabled", "allowed_sources", "allowed_callers", "price", *_EITHER),
}
"""The fields of an AgentCard by the section they stand in; `capabilities` is a section of its own."""

_PARTS: Mapping[str, type[Contract]] = {"retry": Retry, "probe": Probe, "rate_limit": RateLimit}
_DURATION = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(ms|s|m|h)\s*")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


@dataclass(frozen=True, slots=True)
class FlatCard:
    """A card in the flat form and where it came from.

    Attributes:
        card: the fields of an AgentCard, not validated.
        origins: path in the flat card → path in the nested one, where they differ.
        problems: (path in the nested card, message).
    """

    card: dict[str, Any] = field(default_factory=dict)
    origins: dict[FieldPath, FieldPath] = field(default_factory=dict)
    problems: list[tuple[FieldPath, str]] = field(default_factory=list)

    def origin(self, path: FieldPath) -> FieldPath:
        """The path in the nested card of a path in the flat one."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]] + path[length:]
        return path


def flatten(nested: Mapping[str, Any]) -> FlatCard:
    """The flat form of a nested card.

    Args:
        nested: its sections.

    Returns:
        The card; what is misplaced or unknown is among its problems and left out.

    >>> flatten({"agent": {"name": "desk"}, "reach": {"timeout": "1.5s"}}).card
    {'agent_id': 'desk', 'timeout_ms': 1500}
    """
    flat = FlatCard()
    for name, section in nested.items():
        if name == "capabilities":
            flat.card[name] = section
        elif name not in SECTIONS:
            flat.problems.append(((name,), _misplaced(name, "", (*SECTIONS, "capabilities"))))
        elif isinstance(section, dict):
            _take_section(flat, name, section)
        else:
            flat.problems.append(((name,), f"expected a mapping, got {shown(section)}"))
    if "agent" not in nested:
        flat.problems.append((("agent",), "required section is missing"))
    elif "agent_id" not in flat.card and isinstance(nested["agent"], dict):
        flat.problems.append((("agent", "name"), "required field is missing"))
    return flat


def duration(text: str, unit: str) -> int | float:
    """A duration in `unit`, whole if it is a whole number.

    Args:
        text: a number with ms, s, m or h.
        unit: "ms" or "s".

    Raises:
        ValueError: it is no duration.

    >>> duration("2m", "s"), duration("1.5s", "ms"), duration("500ms", "s")
    (120, 1500, 0.5)
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text[:60]}' is no duration such as 500ms, 15s, 2m or 1h")
    length = Fraction(match[1]) * _UNIT_MS[match[2]] / _UNIT_MS[unit]
    return int(length) if length.denominator == 1 else float(length)


def _take_section(flat: FlatCard, section: str, values: Mapping[str, Any]) -> None:
    names = _names(SECTIONS[section])
    if section == "agent":
        names["name"] = "agent_id"
    for name, value in values.items():
        path = (section, name)
        if name not in names:
            flat.problems.append((path, _misplaced(name, section, names)))
            continue
        target = names[name]
        if target in flat.card:
            there = ".".join(map(str, flat.origins[(target,)]))
            flat.problems.append((path, f"stands here a second time; the first is {there}"))
            continue
        flat.origins[(target,)] = path
        flat.card[target] = _part(flat, target, path, value) if target in _PARTS else _plain(flat, target, path, value)


def _part(flat: FlatCard, target: str, path: FieldPath, value: Any) -> Any:
    """A mapping inside a section, whose names may lack their units as well; pydantic judges the rest."""
    if not isinstance(value, dict):
        return value
    names = _names(_PARTS[target].model_fields)
    part: dict[str, Any] = {}
    for name, inner in value.items():
        field_name = names[name] if name in names else str(name)
        flat.origins[(target, field_name)] = (*path, name)
        if field_name in part:
            flat.problems.append(((*path, name), f"stands here a second time, as {field_name} and without its unit"))
        part[field_name] = _plain(flat, field_name, (*path, name), inner)
    return part


def _plain(flat: FlatCard, target: str, path: FieldPath, value: Any) -> Any:
    stem, _, unit = target.rpartition("_")
    if not stem or unit not in ("ms", "s") or not isinstance(value, str):
        return value
    try:
        return duration(value, unit)
    except ValueError as error:
        flat.problems.append((path, str(error)))
        return 1


def _names(fields: Iterable[str]) -> dict[str, str]:
    """Every name a field goes by, with and without its unit → its own name."""
    names: dict[str, str] = {}
    for own in fields:
        stem, _, unit = own.rpartition("_")
        if unit in ("ms", "s"):
            names[stem] = own
        names[own] = own
    return names


def _misplaced(name: str, section: str, known: Iterable[str]) -> str:
    homes = [each for each, fields in SECTIONS.items() if each != section and name in _names(fields)]
    return f"belongs under {' or '.join(homes)}" if homes else unknown_field(name, known)
