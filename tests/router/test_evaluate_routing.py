from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import pytest

from models.errors import ConfigError, StoreError
from router import evaluate_routing as module
from router.evaluate_routing import LabelledRequest, at, evaluate_routing, read_requests, verdict_of
from tests.builders import capability, card, policy_of
from tests.service_builders import Desk, service_of


def lines(path: Path, *rows: str, end: str = "\n") -> Path:
    path.write_bytes(end.join(rows).encode())
    return path


@pytest.fixture
def desk() -> Desk:
    return service_of(
        [
            card("baker", capability("bake", ["bake me a cake"], cost_level=2)),
            card("vault", capability("open", ["open the vault"], required_permissions=["vault:open"])),
        ],
        policy_of(cost_optimize=True),
    )


def test_the_examples_hold() -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


INVOKE = {"status": 200, "action": "invoke", "target": {"agent_id": "a"}}


@pytest.mark.parametrize(
    ("expect", "answer", "verdict"),
    [
        ({"action": "invoke", "target.agent_id": "a"}, INVOKE, "right"),
        ({"target.agent_id": "b"}, INVOKE, "wrong_agent"),
        ({"action": "invoke", "target.agent_id": "b"}, {"action": "deny"}, "wrongly_denied"),
        ({"action": "invoke"}, {"action": "clarify"}, "abstained"),
        ({"target.agent_id": "a"}, {"action": "fallback"}, "abstained"),
        ({"action": "invoke"}, {"status": 422}, "wrong"),
        ({"action": "invoke", "intent.name": "x"}, INVOKE, "wrong"),
        ({"action": "deny"}, {"action": "deny"}, "right"),
        ({"action": "deny"}, INVOKE, "wrongly_allowed"),
        ({"status": 422}, INVOKE, "wrongly_allowed"),
        ({"action": "deny"}, {"action": "fallback"}, "wrong"),
        ({"constraints.n": 1}, INVOKE, "wrong"),
        ({"action": "invoke|clarify"}, {"action": "deny"}, "wrongly_denied"),
        ({"action": "deny|fallback"}, INVOKE, "wrongly_allowed"),
        ({"status": 422}, {"status": 422}, "right"),
        ({"action": "clarify|fallback"}, {"action": "fallback"}, "right"),
        ({}, INVOKE, "right"),
    ],
    ids=str,
)
def test_each_answer_has_one_verdict(expect: dict[str, Any], answer: dict[str, Any], verdict: str) -> None:
    assert verdict_of(expect, answer) == verdict


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b", 1),
        ("a.c", None),
        ("a.b.c", None),
        ("l.1.x", 2),
        ("l.2", None),
        ("l.x", None),
        ("l.-1", None),
        ("", None),
    ],
)
def test_a_value_is_found_and_a_path_that_leads_nowhere_is_none(path: str, value: Any) -> None:
    assert at({"a": {"b": 1}, "l": [0, {"x": 2}]}, path) == value


def test_lines_are_read_whatever_characters_stand_in_them(tmp_path: Path) -> None:
    text = "one\u2028two\x85three\x0c"
    row = json.dumps({"name": text, "request": {"utterance": "x"}, "expect": {}}, ensure_ascii=False)
    for end in ("\n", "\r\n", "\n\n"):
        path = lines(tmp_path / "requests.jsonl", row, row, "", end=end)
        assert [each.name for each in read_requests(path)] == [json.loads(row)["name"]] * 2


def test_a_note_since_when_a_case_holds_is_passed_over(tmp_path: Path) -> None:
    path = lines(tmp_path / "requests.jsonl", '{"from": 2, "request": {}, "expect": {}}')
    assert read_requests(path)[0].permissions == []


def test_every_wrong_line_is_told_with_its_number(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "requests.jsonl",
        '{"request": {}, "expect": {}}',
        "{",
        '{"request": [], "expect": {}, "permission": []}',
        "[]",
        '{"request": {}, "request": {}, "expect": {}}',
    )
    with pytest.raises(ConfigError) as caught:
        read_requests(path)
    found = [(problem.line, problem.path) for problem in caught.value.problems]
    assert found == [(2, ""), (3, "request"), (3, "permission"), (4, ""), (5, "")]


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "requests.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"requests\.jsonl cannot be read"):
        read_requests(path)


async def test_requests_are_decided_and_counted(desk: Desk) -> None:
    cases: list[tuple[str, dict[str, Any], list[str], dict[str, Any]]] = [
        ("right", {"intent": "bake"}, [], {"action": "invoke", "target.agent_id": "baker", "target.cost_level": 2}),
        ("a number with a point", {"intent": "bake", "limit": 1.0}, [], {"target.agent_id": "baker"}),
        ("allowed", {"intent": "open"}, ["vault:open"], {"target.agent_id": "vault"}),
        ("denied", {"intent": "open"}, [], {"action": "deny"}),
        ("wrongly denied", {"intent": "open"}, [], {"target.agent_id": "vault"}),
        ("wrongly allowed", {"intent": "bake"}, [], {"action": "deny"}),
        ("wrong agent", {"intent": "bake"}, [], {"target.agent_id": "vault"}),
        ("abstained", {"intent": "brew"}, [], {"target.agent_id": "baker"}),
        ("refused", {"intent": "bake", "payload": 5}, [], {"status": 422}),
        ("no request", {"limit": 0}, [], {"status": 422}),
        ("wrong", {"intent": "bake"}, [], {"target.agent_id": "baker", "constraints.none": 1}),
    ]
    labelled = [
        LabelledRequest(name=name, request=request, permissions=permissions, expect=expect)
        for name, request, permissions, expect in cases
    ]
    score = await evaluate_routing(desk.service, labelled)
    summary = score.summary()
    assert {name: summary[name] for name in ("n", "right", "wrongly_denied", "wrongly_allowed", "wrong_agent")} == {
        "n": 11, "right": 6, "wrongly_denied": 1, "wrongly_allowed": 1, "wrong_agent": 1
    }  # fmt: skip
    assert (summary["abstained"], summary["wrong"]) == (1, 1)
    assert summary["accuracy"] == pytest.approx(6 / 11)
    assert summary["mean_cost_level"] == pytest.approx((2 * 5 + 1) / 6)
    assert len(score.latencies_ms) == 9
    assert [miss["name"] for miss in summary["misses"]] == [
        "wrongly denied", "wrongly allowed", "wrong agent", "abstained", "wrong"
    ]  # fmt: skip
    assert summary["misses"][-1] == {
        "name": "wrong",
        "verdict": "wrong",
        "expected": {"target.agent_id": "baker", "constraints.none": 1},
        "got": {"target.agent_id": "baker", "constraints.none": None},
    }
    json.dumps(summary)


async def test_numbers_of_any_size_are_compared_exactly_and_can_be_printed(desk: Desk, tmp_path: Path) -> None:
    request = '{"intent": "bake", "constraints": {"n": 0.10000000000000000000000001}}'
    path = lines(
        tmp_path / "requests.jsonl",
        f'{{"request": {request}, "expect": {{"constraints.n": 0.10000000000000000000000001}}}}',
        f'{{"request": {request}, "expect": {{"constraints.n": 0.1}}}}',
    )
    summary = (await evaluate_routing(desk.service, read_requests(path))).summary()
    assert (summary["right"], summary["wrong"]) == (1, 1)
    json.dumps(summary)


async def test_nothing_to_evaluate_is_a_score_too(desk: Desk) -> None:
    summary = (await evaluate_routing(desk.service, [])).summary()
    assert (summary["n"], summary["accuracy"], summary["mean_cost_level"], summary["p50_ms"]) == (0, 0.0, None, 0.0)


async def test_misses_are_listed_up_to_a_bound_and_all_counted(desk: Desk) -> None:
    wrong = LabelledRequest(request={"intent": "bake"}, expect={"action": "deny"})
    summary = (await evaluate_routing(desk.service, [wrong] * 60)).summary()
    assert (summary["wrongly_allowed"], len(summary["misses"])) == (60, 50)


async def test_an_error_of_the_store_ends_the_evaluation(desk: Desk) -> None:
    await desk.journal.aclose()
    with pytest.raises(StoreError):
        await evaluate_routing(desk.service, [LabelledRequest(request={"intent": "bake"}, expect={})])
