"""JSON on the wire: strict on the way in, exact on the way out.

Numbers keep their value whatever their size: integers are of any size, and a decimal that a binary float cannot hold
comes through as a Decimal.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, NoReturn

import orjson
from pydantic import BaseModel

from models.decision import RouteDecision
from models.errors import MalformedBodyError
from models.request import RouteRequest

MAX_DEPTH = 100


def loads(body: bytes) -> Any:
    """The JSON value of a body.

    Raises:
        MalformedBodyError: it is not UTF-8 or not JSON, a key stands twice in an object, a number is NaN or infinite,
            a string has half a surrogate pair, or it is nested more than `MAX_DEPTH` levels deep.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedBodyError(f"the body is not UTF-8: byte {error.start} cannot be read") from None
    if not text or text.isspace():
        raise MalformedBodyError("the body is empty, JSON is needed")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise MalformedBodyError(f"the body is not JSON: {what} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise MalformedBodyError(f"the body is nested more than {MAX_DEPTH} levels deep") from None
    _check(text, value)
    return value


def _check(text: str, value: Any) -> None:
    # A cheap bound first: only a text with that many opening brackets can be that deep.
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise MalformedBodyError(f"the body is nested more than {MAX_DEPTH} levels deep")
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
    """A JSON value as text; numbers as exact as `loads` took them."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _exact(value).encode()


def _exact(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(key))}:{_exact(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_exact(item) for item in value) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def dump_decision(decision: RouteDecision) -> bytes:
    """A decision's JSON, its constraints equal to those that came in."""
    return _with_raw(decision, "constraints", decision.constraints)


def dump_request(request: RouteRequest) -> bytes:
    """A request's JSON as it was understood: the fields that were given."""
    text = request.model_dump_json(exclude_unset=True, exclude={"constraints", "payload"}).encode()
    for name in ("constraints", "payload"):
        if name in request.model_fields_set:
            text = _joined(text, name, getattr(request, name))
    return text


def _with_raw(model: BaseModel, name: str, value: Any) -> bytes:
    return _joined(model.__pydantic_serializer__.to_json(model, exclude={name}, by_alias=True), name, value)


def _joined(text: bytes, name: str, value: Any) -> bytes:
    comma = b"" if text == b"{}" else b","
    return text[:-1] + comma + b'"' + name.encode() + b'":' + dumps(value) + b"}"
