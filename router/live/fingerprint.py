"""Fingerprint: what makes two requests, or two steps of a trace, the same by meaning."""

from __future__ import annotations

import re
from decimal import Decimal
from hashlib import sha256
from math import isfinite
from typing import Any

import orjson

# A text in which no number can have a second spelling: integers of 64 bits, and decimals with neither a trailing zero
# nor an exponent, are written in one way. Strings may look like such numbers; that only costs time.
_MAY_HAVE_TWINS = re.compile(rb"\.0(?!\d)|\de[-+]?\d")

_LEAST_INT = -(1 << 63)
_MOST_INT = (1 << 64) - 1


def fingerprint(namespace: str, intent: str | None, utterance: str | None, payload: Any) -> str:
    """The same for requests that say the same, whatever the order of keys and the spelling of numbers.

    Args:
        namespace: of the request.
        intent: as requested; None where only an utterance was given.
        utterance: as it came; None where only an intent was given.
        payload: a JSON value as `router.wire.loads` gives it; None where none was given.

    Returns:
        64 hexadecimal digits (SHA-256).

    >>> one = fingerprint("default", "refund", None, {"order": 1, "amount": 10.0})
    >>> one == fingerprint("default", "refund", None, {"amount": 10, "order": 1})
    True
    """
    return sha256(canonical(["request", namespace, intent, utterance, payload])).hexdigest()


def business_key(namespace: str, intent: str, payload: Any, trace_id: str, step_index: int | None) -> str:
    """The idempotency key of a step's work (SPEC G2): one meaning has one key, whoever does the work and how often.

    Args:
        namespace: of the request.
        intent: that is to be served.
        payload: a JSON value as `router.wire.loads` gives it; None where none was given.
        trace_id: the same work asked for in another trace is meant to be done again.
        step_index: of the trace; None where the caller counts none: equal payloads of a trace are then one step.

    Returns:
        64 hexadecimal digits (SHA-256), never those of a `fingerprint`.
    """
    return sha256(canonical(["step", namespace, intent, payload, trace_id, step_index])).hexdigest()


def canonical(value: Any) -> bytes:
    """The one text of a JSON value: keys sorted, no spaces, numbers by what they are and never rounded.

    >>> canonical({"b": Decimal("2.50"), "a": [1e2, -0.0]}), canonical(Decimal("1e400"))
    (b'{"a":[100,0],"b":2.5}', b'1e400')

    Raises:
        TypeError: it is no JSON value.
    """
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        if _MAY_HAVE_TWINS.search(text) is None:
            return text
    except TypeError:
        pass  # integers of more than 64 bits and Decimals, or no JSON value: the second attempt tells
    return orjson.dumps(_settled(value), option=orjson.OPT_SORT_KEYS)


def _settled(value: Any) -> Any:
    """The value with each number in the one form that stands for all that equal it."""
    if isinstance(value, dict):
        return {key: _settled(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_settled(item) for item in value]
    if isinstance(value, float):
        if not value.is_integer():
            return value
        # a float means the shortest decimal that gives it, as it does on the wire: from 1e16 on that has zeros at its
        # end which the binary number has not
        return int(value) if -1e16 < value < 1e16 else _number(Decimal(repr(value)))
    if isinstance(value, Decimal) and value.is_finite():
        return _number(value)
    if isinstance(value, int):
        return value if _LEAST_INT <= value <= _MOST_INT else _number(Decimal(value))
    return value


def _number(number: Decimal) -> Any:
    sign, places, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, places)).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return 0
    exponent += len(digits) - len(significant)
    if exponent >= 0 and len(significant) + exponent <= 20:
        whole = int(number)
        if _LEAST_INT <= whole <= _MOST_INT:
            return whole
    if exponent < 0:
        near = float(number)
        if isfinite(near) and Decimal(repr(near)) == number:
            return near
    return orjson.Fragment(f"{'-' if sign else ''}{significant}e{exponent}".encode())
