from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus

import orjson
import pytest

from models import errors
from models.errors import (
    ConfigError,
    EncoderError,
    FieldProblem,
    InvalidRequestError,
    NotReadyError,
    OverloadedError,
    RequestError,
    RouterError,
    StoreError,
    UnauthenticatedError,
)
from router.problem_statuses import STATUS, status_of
from router.problems import problem_of, response_of


def below(kind: type[RouterError]) -> Iterator[type[RouterError]]:
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


def made(kind: type[RouterError]) -> RouterError:
    return kind("what", 1500) if issubclass(kind, OverloadedError) else kind("what")


def ours(kinds: Iterable[type[RouterError]]) -> set[type[RouterError]]:
    return {kind for kind in kinds if kind.__module__ == errors.__name__}


def test_every_error_of_a_request_stands_in_the_table() -> None:
    assert ours([ConfigError, StoreError, *below(RequestError)]) - set(STATUS) == set()


def test_no_error_below_these_is_left_without_a_status() -> None:
    kinds = ours([*below(RequestError), ConfigError, *below(ConfigError), StoreError, *below(StoreError)])
    assert [kind for kind in kinds if status_of(made(kind)) == 500] == []


def test_every_code_is_another_and_drawn_in_the_tree() -> None:
    tree: list[type[RouterError]] = [RouterError, *below(RouterError)]
    kinds = ours(tree)
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)
    assert errors.__doc__ is not None
    assert [kind.__name__ for kind in kinds if kind.__name__ not in errors.__doc__] == []


@pytest.mark.parametrize("kind", [RouterError, RequestError, EncoderError])
def test_what_is_not_meant_for_callers_is_500(kind: type[RouterError]) -> None:
    assert status_of(kind("what")) == 500


def test_a_class_without_a_status_has_that_of_the_nearest_above() -> None:
    class TooLateError(NotReadyError):
        pass

    assert status_of(TooLateError("what", 1)) == 503


@pytest.mark.parametrize("kind", [*STATUS, RouterError], ids=lambda kind: kind.__name__)
def test_a_problem_document_says_status_code_and_detail(kind: type[RouterError]) -> None:
    response = response_of(made(kind))
    body = orjson.loads(response.body)
    assert response.status_code == body["status"] == status_of(made(kind))
    assert response.headers["content-type"] == "application/problem+json"
    assert body == {
        "type": "about:blank",
        "title": HTTPStatus(response.status_code).phrase,
        "status": response.status_code,
        "code": kind.code,
        "detail": "what",
        "errors": [],
    }


def test_problems_are_listed_with_path_and_message() -> None:
    error = InvalidRequestError(
        "2 fields are wrong", [FieldProblem("limit", "must be at least 1"), FieldProblem("", "x", 3)]
    )
    assert problem_of(error)["errors"] == [
        {"path": "limit", "message": "must be at least 1"},
        {"path": "", "message": "x"},
    ]


def test_unauthenticated_says_how_and_overloaded_when() -> None:
    assert response_of(UnauthenticatedError("who")).headers["WWW-Authenticate"] == "Bearer"
    waits = [response_of(OverloadedError("much", ms)).headers["Retry-After"] for ms in (0, 1, 1000, 1001, 60_000)]
    assert waits == ["1", "1", "1", "2", "60"]
    assert response_of(NotReadyError("soon", 1000)).headers["Retry-After"] == "1"
    assert "Retry-After" not in response_of(StoreError("gone")).headers


def test_given_headers_are_kept() -> None:
    assert response_of(InvalidRequestError("what"), {"Allow": "GET"}).headers["Allow"] == "GET"
