"""JSON Schema 2020-12 for payloads: the built-in schemas, compiling, and answers in plain words.

Schemas come from operators and payloads from anywhere, so nothing is ever fetched, patterns match in linear time, and
every JSON value gets an answer: what the validator cannot take (it would raise, or run out of stack) does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from itertools import islice
from types import MappingProxyType
from typing import Any, NoReturn

import jsonschema_rs

from models.errors import FieldProblem
from router.field_problems import path_text

BUILT_IN: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "text": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "none": {"type": "object", "additionalProperties": False},
    }
)
"""The schemas that can be named without being defined."""

Validator = jsonschema_rs.Draft202012Validator

MAX_PAYLOAD_DEPTH = 200
MAX_DIGITS = 4000
_MAX_BITS = int(MAX_DIGITS * math.log2(10))
# the validator makes all errors before it yields one: 12 µs each
_MAX_NODES_FOR_ALL_ERRORS = 2000
_MAX_MESSAGE_CHARS = 300


def resolve(name_or_schema: str | dict[str, Any]) -> dict[str, Any]:
    """The schema itself, or the built-in one of that name.

    Raises:
        ValueError: no schema of that name is built in.

    >>> resolve("none")
    {'type': 'object', 'additionalProperties': False}
    """
    if isinstance(name_or_schema, dict):
        return name_or_schema
    if name_or_schema not in BUILT_IN:
        raise ValueError(f"no built-in schema {name_or_schema!r}; there are {', '.join(BUILT_IN)}")
    return BUILT_IN[name_or_schema]


def compile_schema(schema: str | dict[str, Any]) -> Validator:
    """A validator of the schema; `format` is an annotation only, as 2020-12 has it.

    Args:
        schema: a schema or the name of a built-in one.

    Raises:
        ValueError: it is no JSON Schema 2020-12, refers to one outside itself, or has a pattern that cannot be matched
            in linear time (look-around, back-references).

    >>> compile_schema("text").is_valid({"text": "hello"})
    True
    """
    return Validator(
        resolve(schema), retriever=_refuse, validate_formats=False, pattern_options=jsonschema_rs.RegexOptions()
    )


def check_schema(schema: str | dict[str, Any]) -> str | None:
    """What is wrong with a schema; None if nothing is.

    >>> check_schema({"properties": {"id": {"type": "text"}}})
    "properties.id.type: 'text' is none of the types array, boolean, integer, null, number, object, string"
    """
    try:
        compile_schema(schema)
    except jsonschema_rs.ValidationError as error:
        return _schema_message(error)
    except ValueError as error:
        return _short(str(error))
    return None


def payload_problems(
    validator: Validator, payload: Any, limit: int = 10, root: str = "payload"
) -> tuple[FieldProblem, ...]:
    """Where and why a payload does not fit; empty if it does.

    Args:
        validator: of `compile_schema`.
        payload: any JSON value.
        limit: at most so many problems; of a very large payload only the first one is told.
        root: name of the payload in paths.

    >>> payload_problems(compile_schema("text"), {})
    (FieldProblem(path='payload.text', message='required field is missing', line=None),)
    """
    n_nodes, obstacle = _survey(payload)
    if obstacle is not None:
        return (FieldProblem(root, obstacle),)
    try:
        if validator.is_valid(payload):
            return ()
        if n_nodes > _MAX_NODES_FOR_ALL_ERRORS:
            return tuple(_first_problems(validator, payload, root))[:limit]
        found = [problem for error in validator.iter_errors(payload) for problem in _problems(error, root)]
        return tuple(islice(dict.fromkeys(found), limit))
    except ValueError as error:  # a lone surrogate
        return (FieldProblem(root, _short(f"cannot be checked: {error}")),)


def _refuse(uri: str) -> NoReturn:
    raise ValueError("schemas are never fetched, put it under $defs")


def _survey(payload: Any) -> tuple[int, str | None]:
    """(number of values, what in them the validator cannot take)."""
    n_nodes = 0
    pending: list[tuple[Any, int]] = [(payload, 1)]
    while pending:
        value, depth = pending.pop()
        n_nodes += 1
        if isinstance(value, dict):
            children = value.values()
        elif isinstance(value, list | tuple):
            children = value  # type: ignore[assignment]
        else:
            if isinstance(value, int | float | Decimal) and not _is_checkable(value):
                return n_nodes, f"a number that is not finite or has more than {MAX_DIGITS} digits cannot be checked"
            continue
        if depth > MAX_PAYLOAD_DEPTH:
            return n_nodes, f"nested deeper than {MAX_PAYLOAD_DEPTH} levels"
        pending += [(child, depth + 1) for child in children]
    return n_nodes, None


def _is_checkable(number: int | float | Decimal) -> bool:
    if isinstance(number, int):
        return number.bit_length() <= _MAX_BITS
    if isinstance(number, float):
        return math.isfinite(number)
    return number.is_finite() and len(number.as_tuple().digits) <= MAX_DIGITS


def _first_problems(validator: Validator, payload: Any, root: str) -> list[FieldProblem]:
    try:
        validator.validate(payload)
    except jsonschema_rs.ValidationError as error:
        return _problems(error, root)
    return []


def _problems(error: jsonschema_rs.ValidationError, root: str) -> list[FieldProblem]:
    kind, path = error.kind, tuple(error.instance_path)
    if kind.name == "required":
        return [FieldProblem(path_text((*path, kind.value), root), "required field is missing")]
    if kind.name in ("additionalProperties", "unevaluatedProperties"):
        return [FieldProblem(path_text((*path, name), root), "unknown field") for name in kind.value]
    if kind.name == "falseSchema":
        holds_fields = error.schema_path[-1:] == ["additionalProperties"]
        return [FieldProblem(path_text(path, root), "no fields are allowed here" if holds_fields else "is not allowed")]
    return [FieldProblem(path_text(path, root), _short(error.message))]


def _schema_message(error: jsonschema_rs.ValidationError) -> str:
    path, value = tuple(error.instance_path), error.instance
    message = error.message
    if path and path[-1] == "type" and isinstance(value, str):
        message = f"'{value}' is none of the types array, boolean, integer, null, number, object, string"
    elif error.kind.name == "format":
        message = f"{value!r} is no pattern that can be matched in linear time (no look-around, no back-references)"
    return _short(f"{path_text(path)}: {message}" if path else message)


def _short(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE_CHARS else f"{message[: _MAX_MESSAGE_CHARS - 1]}…"
