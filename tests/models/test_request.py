from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.request import MAX_UTTERANCE_CHARS, Caller, RouteRequest


def faulty(**fields: Any) -> list[tuple[int | str, ...]]:
    """Where a request is wrong."""
    with pytest.raises(ValidationError) as caught:
        RouteRequest.model_validate(fields)
    return [error["loc"] for error in caught.value.errors()]


def test_a_request_needs_an_utterance_or_an_intent() -> None:
    with pytest.raises(ValidationError, match="one of 'utterance' and 'intent' is needed"):
        RouteRequest.model_validate({"namespace": "prod"})
    assert faulty(utterance=None, intent=None) == [()]
    assert RouteRequest(utterance="hello", intent="echo").intent == "echo"


def test_what_is_not_given_has_its_default() -> None:
    request = RouteRequest(utterance="hello")
    given = {name: value for name, value in request if value is not None}
    assert given == {
        "utterance": "hello",
        "namespace": "default",
        "caller": Caller(),
        "constraints": {},
        "cross_namespace": False,
        "exclude": [],
        "dry_run": False,
    }


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("utterance", ["x", " ", "x" * MAX_UTTERANCE_CHARS], ["", "x" * (MAX_UTTERANCE_CHARS + 1), 5]),
        ("version", [">=2", "^1.2"], ["latest", "", 2]),
        ("constraints", [{}, {"a": [1, {"b": None}]}], [None, [], "x"]),
        ("step_index", [0, 2**53], [-1, 2**53 + 1, 1.0, "1"]),
        ("attempt", [1, 1000], [0, 1001]),
        ("allowed_tools", [[], ["search"]], [[""], "search", ["x"] * 1001]),
        ("cross_namespace", [True, False, [], ["prod/a"]], ["prod", [""], 1, ["x"] * 101]),
        ("response_timeout_ms", [1, 86_400_000], [0, 86_400_001, 1.5]),
        ("deadline_ms", [0, 2**53], [-1, 2**53 + 1]),
        ("budget_tokens", [0, 2**53], [-1]),
        ("preference", ["auto", "cheapest", "best"], ["Best", "", "dearest"]),
        ("max_cost_level", [1, 5], [0, 6, 2.0]),
        ("min_quality", [0, 0.5, 1], [-0.01, 1.01, "0.5", True]),
        ("exclude", [[], ["a"]], [["a b"], ["a"] * 1001]),
        ("limit", [1, 100], [0, 101, True]),
        ("dry_run", [True, False], [1, "true"]),
        ("payload", [{}, [], 0, "x", None, 10**400], []),
    ],
)
def test_each_field_has_its_bounds(field: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert getattr(RouteRequest.model_validate({"intent": "echo", field: value}), field) == value
    for value in bad:
        assert {location[0] for location in faulty(**{"intent": "echo", field: value})} == {field}


def test_every_wrong_field_is_named() -> None:
    found = faulty(intent="echo", caller={"agent": "x"}, namespce="prod", limit=0, exclude=["a", "b c"])
    assert set(found) == {("caller", "agent"), ("namespce",), ("limit",), ("exclude", 1)}


def test_the_schema_says_that_one_of_the_two_is_needed() -> None:
    schema = RouteRequest.model_json_schema()
    assert [choice["required"] for choice in schema["anyOf"]] == [["utterance"], ["intent"]]
    assert schema["additionalProperties"] is False
