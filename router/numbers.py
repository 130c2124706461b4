"""Numbers of a JSON value as contracts take them."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from math import isfinite
from typing import Any

from models.errors import FieldProblem, InvalidRequestError
from router.field_problems import path_text
from router.model_walk import FieldPath

EXACT = frozenset({"constraints", "payload"})
"""The fields of a RouteRequest whose numbers stay as they came."""


def plain(value: Any, exact: Collection[str] = ()) -> Any:
    """The value with 2.0 as the integer 2 (to JSON Schema they are one) and a long decimal as its nearest float.

    Args:
        value: what `router.wire.loads` gave.
        exact: fields of the outermost object that stay as they are.

    Raises:
        InvalidRequestError: numbers are beyond what a float can hold.

    >>> plain({"limit": 2.0, "payload": {"amount": 2.0}}, {"payload"})
    {'limit': 2, 'payload': {'amount': 2.0}}
    """
    problems: list[FieldProblem] = []
    if isinstance(value, dict):
        value = {name: each if name in exact else _plain(each, (name,), problems) for name, each in value.items()}
    else:
        value = _plain(value, (), problems)
    if problems:
        raise InvalidRequestError(str(problems[0]), problems)
    return value


def _plain(value: Any, path: FieldPath, problems: list[FieldProblem]) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each, (*path, name), problems) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, (*path, place), problems) for place, each in enumerate(value)]
    number = float(value) if isinstance(value, Decimal) else value
    if not isinstance(number, float):
        return value
    if not isfinite(number):
        problems.append(FieldProblem(path_text(path), "the number is too large"))
        return value
    return int(number) if number.is_integer() else number
