"""Values for slots: what was found, as a property's schema wants it, or nothing where it does not fit."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

from intent.entities.properties import types_of
from intent.rules import compile_pattern
from models.entity import Found

_NUMERIC = frozenset({"amount", "quantity", "number"})
_LIMITS: dict[str, Callable[[float, float], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}


def value_for(found: Found, schemas: tuple[Mapping[str, Any], ...]) -> Any | None:
    """The value as one of the schemas wants it; None if none of them can take it.

    >>> value_for(Found("number", 3.0, "3", 0, 1), ({"type": "integer"},))
    3
    """
    for schema in schemas:
        types = types_of(schema)
        candidates: list[int | float | str | None] = [_number(found, schema, types)] if found.kind in _NUMERIC else []
        if not types or "string" in types:
            candidates += [text for text in _texts(found, schema) if _fits_string(text, schema)]
        for value in candidates:
            if value is not None and _is_admitted(value, schema):
                return value
    return None


def matches(pattern: str, text: str) -> bool:
    """Whether a schema's pattern matches all of a text; one that RE2 cannot compile matches nothing."""
    compiled = _compiled(pattern)
    return compiled is not None and compiled.fullmatch(text) is not None


def _number(found: Found, schema: Mapping[str, Any], types: tuple[str, ...]) -> int | float | None:
    value = found.value
    if isinstance(value, str) or not isfinite(value):
        return None
    if not types or "number" in types or "integer" in types:
        is_whole = value == int(value)
        if "integer" in types and "number" not in types and not is_whole:
            return None
        return (int(value) if is_whole else value) if _within(value, schema) else None
    return None


def _within(value: float, schema: Mapping[str, Any]) -> bool:
    for keyword, holds in _LIMITS.items():
        bound = schema.get(keyword)
        if isinstance(bound, int | float) and not isinstance(bound, bool) and not holds(value, bound):
            return False
    step = schema.get("multipleOf")
    if not isinstance(step, int | float) or isinstance(step, bool) or step <= 0:
        return True
    return abs(value / step - round(value / step)) < 1e-9


def _texts(found: Found, schema: Mapping[str, Any]) -> list[str]:
    """Forms of the value as a string, the preferred one first."""
    if found.kind != "date" or found.resolved is None:
        return [str(found.value), found.text] if found.kind not in _NUMERIC else [found.text, str(found.value)]
    wanted, has_time = schema.get("format"), "T" in found.resolved
    if wanted == "date":
        return [found.resolved[:10]]
    if wanted == "time":
        return [found.resolved[11:]] if has_time else []
    if wanted == "date-time":
        return [found.resolved] if has_time else []
    return [found.resolved, found.text]


def _fits_string(text: str, schema: Mapping[str, Any]) -> bool:
    shortest, longest, pattern = (schema.get(key) for key in ("minLength", "maxLength", "pattern"))
    if isinstance(shortest, int | float) and len(text) < shortest:
        return False
    if isinstance(longest, int | float) and len(text) > longest:
        return False
    if schema.get("format") == "uri" and "://" not in text:
        return False
    return not isinstance(pattern, str) or matches(pattern, text)


def _is_admitted(value: Any, schema: Mapping[str, Any]) -> bool:
    options = schema.get("enum")
    if "const" in schema:
        options = [schema["const"]]
    # True == 1 in Python, not in JSON
    return not isinstance(options, list) or any(
        value == option and isinstance(option, bool) == isinstance(value, bool) for option in options
    )


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any | None:
    # compile_pattern ignores case, a schema does not
    try:
        return compile_pattern(f"(?-i:{pattern})")
    except ValueError:
        return None
