"""Bodies and parameters: read with a limit, parsed strictly, every wrong field named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request

from models.errors import BodyTooLargeError, FieldProblem, InvalidRequestError
from router.field_problems import problems_of, unknown_parameter
from router.numbers import plain
from router.wire import loads

T = TypeVar("T", bound=BaseModel)
_DRAINED = 16
_MAX_NAMED = 20
_MAX_NAME_CHARS = 100


async def read_json(request: Request, max_bytes: int, *, if_empty: bytes = b"") -> Any:
    """The JSON value of the request's body.

    Args:
        request: the request.
        max_bytes: the largest body taken.
        if_empty: read in place of no body at all; no JSON unless something is given.

    Raises:
        BodyTooLargeError: it is larger than `max_bytes`.
        MalformedBodyError: it is no JSON that we take.
    """
    drained = _DRAINED * max_bytes
    if _declared(request) > drained:
        raise _too_large(max_bytes)
    chunks: list[bytes] = []
    n_bytes = 0
    # What is too large is read to its end, within bounds: a client in the middle of sending would not hear the refusal.
    async for chunk in request.stream():
        n_bytes += len(chunk)
        if n_bytes > drained:
            break
        if n_bytes <= max_bytes:
            chunks.append(chunk)
    if n_bytes > max_bytes:
        raise _too_large(max_bytes)
    return loads(b"".join(chunks) or if_empty)


def parsed(model: type[T], value: Any, *, exact: Collection[str] = ()) -> T:
    """The value as a contract.

    Args:
        model: the contract.
        value: what `read_json` gave.
        exact: fields whose numbers stay as they came.

    Raises:
        InvalidRequestError: with every wrong field.
    """
    try:
        return model.model_validate(value)
    except ValidationError:
        value = plain(value, exact)  # only what failed pays for it
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = problems_of(error, model)
        what = problems[0] if len(problems) == 1 else f"{len(problems)} fields are wrong"
        raise InvalidRequestError(str(what), problems) from None


def headers(request: Request, name: bytes) -> list[bytes]:
    """The values of a header, its name in lower case: without the objects that Starlette makes for a look at one."""
    return [value for each, value in request.scope["headers"] if each == name]


def check_query(request: Request, known: Sequence[str]) -> None:
    """Refuse query parameters that a call does not know, and those that stand twice: what is ignored is misunderstood.

    Args:
        request: the request.
        known: the parameters of the call; none of them is a list.

    Raises:
        InvalidRequestError: naming each, the first 20 of them.
    """
    if not request.scope["query_string"]:
        return
    given = Counter(name for name, _ in request.query_params.multi_items())
    wrong = [name for name, n_times in given.items() if n_times > 1 or name not in known]
    if not wrong:
        return
    problems = [
        FieldProblem(
            name[:_MAX_NAME_CHARS], "stands more than once" if name in known else unknown_parameter(name, known)
        )
        for name in wrong[:_MAX_NAMED]
    ]
    what = problems[0] if len(wrong) == 1 else f"{len(wrong)} query parameters are wrong"
    raise InvalidRequestError(str(what), problems)


def query(request: Request, name: str, kind: Any, default: Any = None) -> Any:
    """A query parameter, checked against a type; InvalidRequestError where it does not fit."""
    if not request.scope["query_string"]:
        return default
    value = request.query_params.get(name)
    return default if value is None else checked(name, value, kind)


def checked(name: str, text: str, kind: Any) -> Any:
    """A parameter's text as a value of `kind`. Raises InvalidRequestError."""
    try:
        return _adapter(kind).validate_python(text)
    except ValidationError as error:
        raise _wrong(name, problems_of(error, kind)[0].message) from None


@lru_cache(maxsize=64)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Kept: making one takes longer than a decision."""
    return TypeAdapter(kind)


def _declared(request: Request) -> float:
    """The length that the request says its body has; 0 where it says none."""
    given = headers(request, b"content-length")
    # as a float, since Python refuses to read integers of thousands of digits
    return float(given[0]) if given and given[0].isdigit() else 0.0


def _wrong(name: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(f"{name}: {message}", [FieldProblem(name, message)])


def _too_large(max_bytes: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body is larger than {max_bytes} bytes; send less, or raise max_body_bytes")
