from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field
from starlette.requests import Request
from starlette.types import Message

from models.contract import Namespace, SemanticVersion
from models.errors import BodyTooLargeError, InvalidRequestError, MalformedBodyError
from models.request import RouteRequest
from router.endpoints.body import checked, parsed, query, read_json

Percent = Annotated[int, Field(ge=0, le=100)]


def request(chunks: list[bytes] = [], length: str | None = None, query_string: str = "") -> Request:  # noqa: B006
    """A request whose body comes in these chunks."""
    parts = iter(chunks)

    async def receive() -> Message:
        chunk = next(parts, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    headers = [] if length is None else [(b"content-length", length.encode("latin-1"))]
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": query_string.encode()}
    return Request(scope, receive)


async def test_a_body_may_come_in_pieces() -> None:
    assert await read_json(request([b'{"a', b'": "\xc3', b'\xa4"}']), 100) == {"a": "ä"}


async def test_a_body_that_is_lacking_is_no_json_unless_something_stands_for_it() -> None:
    with pytest.raises(MalformedBodyError):
        await read_json(request(), 100)
    assert await read_json(request(), 100, if_empty=b'{"a": 1}') == {"a": 1}
    assert await read_json(request([b"7"]), 100, if_empty=b'{"a": 1}') == 7


async def test_a_body_of_the_largest_size_is_taken_and_one_byte_more_is_not() -> None:
    assert await read_json(request([b"1" * 10]), 10) == 1_111_111_111
    with pytest.raises(BodyTooLargeError, match="10 bytes"):
        await read_json(request([b"1" * 10, b"1"]), 10)


@pytest.mark.parametrize("length", ["161", "9" * 5000])
async def test_a_length_far_too_large_is_refused_before_the_body_is_read(length: str) -> None:
    with pytest.raises(BodyTooLargeError):
        await read_json(request(length=length), 10)


@pytest.mark.parametrize("length", ["", "-1", "ten", "²"])
async def test_a_length_that_is_none_is_passed_over(length: str) -> None:
    assert await read_json(request([b"7"], length=length), 10) == 7


@pytest.mark.parametrize("length", [None, "30"])
async def test_a_body_somewhat_too_large_is_read_to_its_end_so_that_its_sender_hears_the_refusal(
    length: str | None,
) -> None:
    read: list[bytes] = []

    async def receive() -> Message:
        read.append(b"1" * 10)
        return {"type": "http.request", "body": read[-1], "more_body": len(read) < 3}

    headers = [] if length is None else [(b"content-length", length.encode())]
    with pytest.raises(BodyTooLargeError, match="10 bytes"):
        await read_json(Request({"type": "http", "headers": headers}, receive), 10)
    assert len(read) == 3


async def test_an_endless_body_is_refused_at_some_point() -> None:
    n_read = 0

    async def receive() -> Message:
        nonlocal n_read
        n_read += 1
        return {"type": "http.request", "body": b"x" * 10, "more_body": True}

    with pytest.raises(BodyTooLargeError):
        await read_json(Request({"type": "http", "headers": []}, receive), 100)
    assert n_read == 161


async def test_no_body_is_malformed() -> None:
    with pytest.raises(MalformedBodyError, match="empty"):
        await read_json(request(), 100)


def test_a_wrong_request_names_every_field() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parsed(RouteRequest, {"intent": "a", "limit": 0.5, "min_quality": "high", "x": 1})
    assert [problem.path for problem in caught.value.problems] == ["min_quality", "limit", "x"]
    assert caught.value.message == "3 fields are wrong"


def test_one_wrong_field_is_told_in_the_message() -> None:
    with pytest.raises(InvalidRequestError, match=r"limit: expected a whole number, got the number 0\.5"):
        parsed(RouteRequest, {"intent": "a", "limit": 0.5})


def test_numbers_are_taken_as_they_are_meant_and_those_of_exact_fields_stay() -> None:
    found = parsed(RouteRequest, {"intent": "a", "limit": 2.0, "payload": 2.0}, exact={"payload"})
    assert (repr(found.limit), repr(found.payload)) == ("2", "2.0")


@pytest.mark.parametrize(("text", "value"), [("n=7", 7), ("", 50), ("m=1", 50)])
def test_a_parameter_is_checked_or_its_default(text: str, value: int) -> None:
    assert query(request(query_string=text), "n", Percent, 50) == value


@pytest.mark.parametrize("text", ["n=", "n=101", "n=x", "n=1.5"])
def test_a_parameter_that_does_not_fit_is_named(text: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        query(request(query_string=text), "n", Percent)
    assert [problem.path for problem in caught.value.problems] == ["n"]


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("x", Percent, "n: expected a whole number, got text 'x'"),
        ("101", Percent, "n: must be at most 100, got 101"),
        ("9" * 5000, Percent, f"n: expected a whole number, got text '{'9' * 60}…'"),
        ("maybe", bool, "n: expected true or false, got text 'maybe'"),
        ("watiing", Literal["waiting", "accepted"],
         "n: expected one of 'waiting', 'accepted', got text 'watiing'; did you mean 'waiting'?"),
        ("9", SemanticVersion, "n: '9' is no semantic version such as 1.2.0"),
        ("", Namespace, "n: '' is no namespace such as prod/commerce: letters, digits and . _ -, parts joined by /"),
    ],
)  # fmt: skip
def test_a_parameter_that_does_not_fit_is_told_as_a_field_of_a_body_is(text: str, kind: Any, told: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        checked("n", text, kind)
    assert caught.value.message == told


def test_a_checked_value_has_its_type() -> None:
    assert checked("n", "7", Percent) == 7
