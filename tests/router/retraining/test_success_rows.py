from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from models.events import OutcomeRow, Row
from models.policy import Policy
from router.retraining import success_rows
from router.retraining.success_rows import MOST_CHARS, MOST_INVERSE, SuccessRows, read_success_rows
from router.stores.sqlite import sqlite_file
from router.stores.training_log import open_training_log
from tests.router.retraining.world import NOW_MS, make_store, settled

SHOP = {"namespace": "default", "agent_id": "shop", "version": "1.0.0", "intent": "ask"}
TRAVEL = {**SHOP, "agent_id": "travel"}
NAMES = {"default/shop/1.0.0", "default/travel/1.0.0"}


def told(decision_id: str, text: str | None = "where is it", *steps: dict[str, Any], **more: Any) -> list[Row]:
    plan = [{"target": step, "timeout_ms": 1000} for step in steps or (SHOP,)]
    answer = {"target": SHOP, "plan": plan, **more.pop("answer", {})}
    return settled(decision_id, text, "ask", answer=answer, **more)


def read(folder: Path, rows: Iterable[Row], policy: Policy | None = None) -> SuccessRows:
    url = make_store(folder, rows)
    if policy is not None:
        with closing(sqlite3.connect(sqlite_file(url))) as connection, connection:
            connection.execute(
                "INSERT INTO generations (kind, digest, body, created_at, used_at) VALUES ('policy', 'd', ?, 1, 2)",
                [policy.model_dump_json().encode()],
            )

    async def work() -> SuccessRows:
        async with open_training_log(url) as log:
            return await read_success_rows(log, NAMES)

    return asyncio.run(work())


def test_an_outcome_is_a_row_of_the_agent_that_was_called(tmp_path: Path) -> None:
    found = read(tmp_path, told("d1", "Where IS it?", propensity=0.25, status="failed", key="web-key"))
    (row,) = found.rows
    assert row.agent == "default/shop/1.0.0"
    assert row.text == "Where IS it?"  # as it was written: the wording counts
    assert row.intents == (("ask", 0.97),)
    assert (row.reward, row.inverse, row.caller) == (0.0, 4.0, "web-key")
    assert (found.n_callers, found.left_out) == (1, {})
    assert SuccessRows.of_json(json.loads(json.dumps(found.to_json()))) == found


def test_rewards_are_those_of_the_policy_in_force(tmp_path: Path) -> None:
    policy = Policy.model_validate({"learning": {"reward": {"failed": 0.3, "slow_penalty": 0.4}}})
    rows = [*told("d1", status="failed"), *told("d2", latency_ms=1000)]
    (tmp_path / "shipped").mkdir()
    assert [row.reward for row in read(tmp_path, rows, policy).rows] == pytest.approx([0.6, 0.3])
    assert [row.reward for row in read(tmp_path / "shipped", rows).rows] == [1.0, 0.0]


def test_an_inverse_propensity_is_bounded_and_only_that_of_the_first_attempt_was_logged(tmp_path: Path) -> None:
    rows = told("d1", "a wish", SHOP, TRAVEL, propensity=0.001, status="failed")
    rows.append(OutcomeRow("d1", 2, None, "web", '{"decision_id": "d1", "status": "succeeded"}', "agent", NOW_MS))
    found = [(row.agent, row.reward, row.inverse) for row in read(tmp_path, rows).rows]
    assert found == [("default/shop/1.0.0", 0.0, MOST_INVERSE), ("default/travel/1.0.0", 1.0, 1.0)]


def test_the_newest_outcome_of_an_attempt_counts(tmp_path: Path) -> None:
    rows = told("d1", status="failed")
    rows.append(OutcomeRow("d1", 1, None, "web", '{"decision_id": "d1", "status": "succeeded"}', "agent", NOW_MS))
    assert [row.reward for row in read(tmp_path, rows).rows] == [1.0]


def test_a_callers_own_choice_counts_for_the_agent_that_it_called(tmp_path: Path) -> None:
    rows = told("d1", propensity=0.01, request={"caller_choice": {"agent_id": "travel"}})
    named = [rows[0]._replace(inputs='{"shadow": "default/travel/1.0.0"}'), rows[1]]  # type: ignore[call-arg]
    unknown = told("d2", request={"caller_choice": {"agent_id": "nobody"}})
    found = read(tmp_path, [*named, *unknown])
    assert [(row.agent, row.inverse) for row in found.rows] == [("default/travel/1.0.0", 1.0)]
    assert found.left_out == {"agent_unknown": 1}


def test_a_masked_text_counts_and_one_that_is_not_kept_does_not(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [
            *told("d1", "refund [amount] to [email]"),
            *told("d2", f"sha256:{'0' * 64}"),
            *told("d3", None),
            *told("d4", "?!"),
        ],
    )
    assert [row.text for row in found.rows] == ["refund [amount] to [email]"]
    assert found.left_out == {"no_text": 3}


def test_why_others_are_left_out_is_counted(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [
            *told("d1", charged="caller"),
            *told("d2", "a wish", {**SHOP, "version": "9.9.9"}),
            *settled("d3", "a record without plan", "ask"),
            *told("gone")[1:],
            *told("d4", status="cancelled"),
        ],
    )
    assert not found.rows
    assert found.left_out == {"agent_unknown": 1, "charged_to_others": 1, "erased": 1, "no_reward": 1, "unreadable": 1}


def test_of_a_sentence_of_several_wishes_each_part_has_its_own_words(tmp_path: Path) -> None:
    first = told("d1", "where is it and book a room", answer={"text": "where is it", "parts": [{"text": "book"}]})
    assert [row.text for row in read(tmp_path, [*first, *told("d2", "book a room")]).rows] == [
        "book a room",
        "where is it",
    ]


def test_a_long_text_is_cut_where_the_wording_is_not_looked_at_any_more(tmp_path: Path) -> None:
    (row,) = read(tmp_path, told("d1", "word " * 4000)).rows
    assert len(row.text) == MOST_CHARS


def test_the_newest_rows_are_held_and_no_caller_takes_the_room_of_all() -> None:
    assert (success_rows.MOST_OF_CALLER, success_rows.MOST_OF_AGENT, success_rows.MOST) == (2_000, 4_000, 20_000)
    kept = success_rows.NewestRows(frozenset(NAMES))
    for number in range(6_000):
        kept.offer(success_rows.SuccessRow("default/shop/1.0.0", f"t{number}", (), 1.0, 1.0, "ann"))
    for number in range(6_000):
        caller = f"c{number % 50}"
        kept.offer(success_rows.SuccessRow("default/shop/1.0.0", f"u{number}", (), 1.0, 1.0, caller))
    assert [row.text for row in kept.rows] == [f"t{n}" for n in range(2_000)] + [f"u{n}" for n in range(2_000)]
    assert kept.left_out == {"over_cap": 8_000}
    assert len(kept.callers) == 2


def test_no_more_rows_are_held_than_can_be_fitted_on() -> None:
    agents = [f"default/a{number}/1.0.0" for number in range(50)]
    kept = success_rows.NewestRows(frozenset(agents))
    for number in range(21_000):
        agent, caller = agents[number % 50], f"c{number % 7}"
        kept.offer(success_rows.SuccessRow(agent, f"t{number}", (), 1.0, 1.0, caller))
    assert len(kept.rows) == 20_000
    assert kept.left_out == {"over_cap": 1_000}
