from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from models.card import AgentCard
from models.outcome import Outcome
from models.past_outcome import PastOutcome
from models.policy import Policy
from models.request import RouteRequest
from router.field_problems import closest, path_text, problems_of, shown, unknown_field


def told(model: Any, value: Any) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(model).validate_python(value)
    problems = problems_of(caught.value, model)
    assert len({problem.path for problem in problems}) == len(problems)
    return {problem.path: problem.message for problem in problems}


@pytest.mark.parametrize(
    ("field", "meant"),
    [("namespce", "namespace"), ("agent", None), ("Trace-ID", "trace_id"), ("deadlineMs", "deadline_ms")],
)
def test_an_unknown_field_is_named_with_what_was_meant(field: str, meant: str | None) -> None:
    hint = f"; did you mean '{meant}'?" if meant else ""
    assert told(RouteRequest, {"intent": "a", field: 1}) == {field: f"unknown field{hint}"}


def test_the_meant_field_is_looked_for_in_the_model_that_was_written_to() -> None:
    assert told(RouteRequest, {"intent": "a", "caller": {"agentid": "x"}}) == {
        "caller.agentid": "unknown field; did you mean 'agent_id'?"
    }
    assert told(RouteRequest, {"intent": "a", "caller": {"name": "x"}}) == {
        "caller.name": "unknown field; known are agent_id, session_id"
    }


@pytest.mark.parametrize(
    ("value", "got"),
    [(True, 'true; quote it: "true"'), (1.0, 'the number 1.0; quote it: "1.0"'), (2, 'the number 2; quote it: "2"'),
     (None, "null"), ([1], "a list"), ({}, "a mapping")],
)  # fmt: skip
def test_a_value_that_should_be_text_is_told_with_the_remedy(value: Any, got: str) -> None:
    assert told(AgentCard, {"agent_id": "a", "version": value}) == {"version": f"expected text, got {got}"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"timeout_ms": 2000.5}, "expected a whole number, got the number 2000.5"),
        ({"timeout_ms": "2000"}, "expected a whole number, got text '2000'; write it without quotes"),
        ({"weight": "0.5"}, "expected a number, got text '0.5'; write it without quotes"),
        ({"weight": True}, "expected a number, got true"),
        ({"weight": -1}, "must be at least 0, got -1"),
        ({"heartbeat_s": 0}, "must be more than 0, got 0"),
        ({"max_inflight": 10**5000}, "must be at most 1e+06, got with thousands of digits"),
        ({"enabled": "yes"}, "expected true or false, got text 'yes'; write true"),
        ({"protocol": "htp"}, "expected one of 'http', 'grpc', 'a2a', 'mcp', 'queue', 'in_process', got text 'htp'; "
                              "did you mean 'http'?"),
        ({"depends_on": "db"}, "expected a list, got text 'db'"),
        ({"fallback": "sorry"}, "expected a mapping, got text 'sorry'"),
        ({"display_name": "x" * 300}, "has 300 characters, more than 200"),
        ({"version": "1.0"}, "'1.0' is no semantic version such as 1.2.0"),
    ],
)  # fmt: skip
def test_each_kind_of_error_says_what_was_expected(fields: dict[str, Any], message: str) -> None:
    assert told(AgentCard, {"agent_id": "a", **fields}) == {next(iter(fields)): message}


def test_a_mapping_that_has_to_have_entries_is_told_if_it_has_none() -> None:
    assert told(PastOutcome, {"agent_id": "a", "intents": {}, "reward": 1})["intents"] == "must not be empty"


def test_a_word_that_an_enumeration_does_not_have_is_told_with_those_that_it_has() -> None:
    message = told(Outcome, {"decision_id": "d", "status": "suceeded"})["status"]
    assert message.startswith("expected one of 'succeeded', 'low_confidence', ")
    assert message.endswith("got text 'suceeded'; did you mean 'succeeded'?")


def test_fields_that_are_missing_or_empty_are_told_by_their_paths() -> None:
    card = {"capabilities": [{"intent": "a"}, {"examples": [""]}]}
    assert told(AgentCard, card) == {
        "agent_id": "required field is missing",
        "capabilities[1].intent": "required field is missing",
        "capabilities[1].examples[0]": "must not be empty",
    }


def test_all_members_of_a_union_are_told_at_once() -> None:
    assert told(RouteRequest, {"intent": "a", "cross_namespace": "x"}) == {
        "cross_namespace": "expected true or false or a list, got text 'x'"
    }
    assert told(AgentCard, {"agent_id": "a", "capabilities": [{"intent": "a", "input_schema": "txt"}]}) == {
        "capabilities[0].input_schema": "expected a mapping or one of 'text', 'none', got text 'txt'; "
        "did you mean 'text'?"
    }


def test_of_a_union_the_member_that_matched_is_told() -> None:
    (message,) = told(RouteRequest, {"intent": "a", "cross_namespace": ["a b"]}).items()
    assert message[0] == "cross_namespace[0]"
    assert message[1].startswith("'a b' is no namespace")


def test_a_list_of_requests_has_positions_in_its_paths() -> None:
    assert told(list[RouteRequest], [{"intent": "a"}, {"intent": "a", "limit": 0}]) == {
        "[1].limit": "must be at least 1, got 0"
    }
    assert told(RouteRequest | list[RouteRequest], [{"namespce": 1, "intent": "a"}]) == {
        "[0].namespce": "unknown field; did you mean 'namespace'?"
    }


def test_what_concerns_the_whole_has_no_path() -> None:
    assert told(RouteRequest, {}) == {"": "one of 'utterance' and 'intent' is needed"}
    assert told(RouteRequest, 5) == {"": "expected a mapping, got the number 5"}


def test_a_faulty_key_of_a_mapping_is_told() -> None:
    (path,) = told(Policy, {"namespaces": {"a b": {}}})
    assert path == "namespaces.a b"


def test_a_pattern_of_words_is_told_as_words() -> None:
    assert told(Policy, {"defaults": {"require_schemas": "all"}}) == {
        "defaults.require_schemas": "'all' is none of both, input, none"
    }


def test_paths_and_lines_can_be_those_of_a_text() -> None:
    with pytest.raises(ValidationError) as caught:
        AgentCard.model_validate({"agent_id": 5})
    (problem,) = problems_of(caught.value, AgentCard, locate=lambda path: (f"file:{path_text(path)}", 7))
    assert str(problem) == 'line 7, file:agent_id: expected text, got the number 5; quote it: "5"'


def test_a_root_is_put_before_the_path() -> None:
    with pytest.raises(ValidationError) as caught:
        AgentCard.model_validate({"agent_id": 5})
    assert problems_of(caught.value, AgentCard, root="agent")[0].path == "agent.agent_id"


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    assert closest("frobnicate", ["weight", "version"]) is None
    assert unknown_field("frobnicate", []) == "unknown field"
    assert unknown_field("x" * 100_000, ["weight"]) == "unknown field; known are weight"


def test_long_values_are_shortened() -> None:
    assert len(shown("x" * 10_000)) < 100
    assert len(shown(10**4000)) < 100
