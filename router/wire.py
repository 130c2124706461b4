"""JSON on the wire: strict on the way in, exact on the way out.

Numbers keep their value whatever their size: integers are of any size, and a decimal that a binary float cannot hold
comes through as a Decimal.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, NoReturn

import orjson
from pydantic import BaseModel

from models.answer import Answer
from models.contract import Contract
from models.errors import MalformedBodyError

MAX_DEPTH = 100


def loads(body: bytes, *, what: str = "the body") -> Any:
    """The JSON value of a body.

    Args:
        body: UTF-8.
        what: names it in errors; anything but the body is one line, so that errors tell the column alone.

    Raises:
        MalformedBodyError: it is not UTF-8 or not JSON, a key stands twice in an object, a number is NaN or infinite,
            a string has half a surrogate pair, or it is nested more than `MAX_DEPTH` levels deep.
    """
    try:
        text = body.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise MalformedBodyError(f"{what} is not UTF-8: byte {error.start} cannot be read") from None
    if not text or text.isspace():
        raise MalformedBodyError(f"{what} is empty, JSON is needed")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if what == "the body" else f"column {error.colno}"
        raise MalformedBodyError(f"{what} is not JSON: {error.msg.removesuffix(' at')} at {place}") from None
    except RecursionError:
        raise MalformedBodyError(f"{what} is nested more than {MAX_DEPTH} levels deep") from None
    _check(text, value, what)
    return value


def _check(text: str, value: Any, what: str) -> None:
    # A cheap bound first: only a text with that many opening brackets can be that deep.
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise MalformedBodyError(f"{what} is nested more than {MAX_DEPTH} levels deep")
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise MalformedBodyError("a string has half a surrogate pair (\\ud800 to \\udfff alone)") from None


def _depth(value: Any) -> int:
    deepest = 0
    stack = [(value, 1)]
    while stack:
        node, depth = stack.pop()
        children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else None
        if children is not None:
            deepest = max(deepest, depth)
            stack.extend((child, depth + 1) for child in children)
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise MalformedBodyError(f"the key {twice[:100]!r} stands twice in an object")
    return result


def _constant(name: str) -> NoReturn:
    raise MalformedBodyError(f"{name} is not a JSON number")


def _float(text: str) -> float | Decimal:
    number = float(text)
    if len(text) < 16 and "e" not in text and "E" not in text:
        return number
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise MalformedBodyError(f"the number {text[:50]} is beyond what can be kept") from None
    return number if isfinite(number) and exact == Decimal(repr(number)) else exact


def _int(text: str) -> int | Decimal:
    # Python refuses to convert very long digit strings (quadratic time); as a Decimal they keep their value.
    return int(text) if len(text) < 4000 else Decimal(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int)


def dumps(value: Any) -> bytes:
    """A JSON value, a contract or an answer as text; numbers as exact as `loads` took them.

    An answer is right by construction, so it needs none of pydantic's checks, which take three times as long.
    """
    try:
        return orjson.dumps(value, default=_members)
    except TypeError:
        return _exact(value).encode()


def _exact(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = _members(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(key))}:{_exact(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_exact(item) for item in value) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def _members(value: Any) -> dict[str, Any]:
    """What a contract says: of an answer all fields, of what came in the fields that were given."""
    if isinstance(value, Answer):
        return value.members()
    if isinstance(value, Contract):
        given = value.model_fields_set
        return {name: each for name, each in value.__dict__.items() if name in given}
    raise TypeError(f"{type(value).__name__} has no form in JSON")
