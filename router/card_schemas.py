"""The schemas of cards: names resolved, inline ones checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.card import AgentCard
from models.errors import FieldProblem
from router.field_problems import closest, path_text, shown
from router.model_walk import FieldPath
from router.schemas import BUILT_IN, check_schema

_SIDES = ("input_schema", "output_schema")


def check_card(card: AgentCard) -> tuple[FieldProblem, ...]:
    """What is wrong with the inline schemas of a card that is valid otherwise."""
    return tuple(
        FieldProblem(path_text(("capabilities", number, side)), message)
        for number, capability in enumerate(card.capabilities)
        for side in _SIDES
        if (schema := getattr(capability, side)) is not None and (message := check_schema(schema)) is not None
    )


def check_definition(name: str, schema: Any) -> str | None:
    """What is wrong with an entry of a `schemas:` section; None if nothing is."""
    if name in BUILT_IN:
        return f"'{name}' is built in; choose another name"
    if not isinstance(schema, dict):
        return f"expected a JSON Schema, got {shown(schema)}"
    return check_schema(schema)


def resolve_schemas(
    card: Mapping[str, Any], named: Mapping[str, dict[str, Any] | None]
) -> tuple[dict[str, Any], list[tuple[FieldPath, str]]]:
    """A card in the flat form with the schemas in the place of their names.

    Args:
        card: not validated; what is not as it should be is left for the validation.
        named: the `schemas:` sections; None for a name whose schema is faulty, which is told elsewhere.

    Returns:
        The card, and (path, message) of unknown names and faulty schemas, which are left out of it.
    """
    problems: list[tuple[FieldPath, str]] = []
    capabilities = card.get("capabilities")
    if not isinstance(capabilities, list):
        return dict(card), problems
    resolved = []
    for number, capability in enumerate(capabilities):
        changed = capability
        for side in _SIDES:
            if not isinstance(capability, dict) or not isinstance(capability.get(side), str | dict):
                continue
            schema, message = _resolved(capability[side], named)
            changed = {**changed, side: schema}
            if message is not None:
                problems.append((("capabilities", number, side), message))
        resolved.append(changed)
    return {**card, "capabilities": resolved}, problems


def _resolved(
    schema: str | dict[str, Any], named: Mapping[str, dict[str, Any] | None]
) -> tuple[str | dict[str, Any] | None, str | None]:
    if isinstance(schema, dict):
        message = check_schema(schema)
        return (None, message) if message else (schema, None)
    if schema in named:
        return named[schema], None
    if schema in BUILT_IN:
        return schema, None
    known = [*named, *BUILT_IN]
    meant = closest(schema, known)
    hint = f"; did you mean '{meant}'?" if meant else ""
    return None, f"unknown schema '{schema[:60]}'; known are {', '.join(known[:50])}{hint}"
