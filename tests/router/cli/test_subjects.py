from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from feedback.learner import Learner
from feedback.lessons import Lesson
from models.events import DecisionRow, UsageRow
from models.learning_policy import LearningPolicy
from router.cli.main import app
from router.stores.open import open_store

SESSION, AGENT = "s-4711", "desk-4711"
TARGET = ("default", "a", "1.0.0")


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    asyncio.run(fill(url))
    return url


async def fill(url: str) -> None:
    learner = Learner()
    learnt = learner.learn_one(Lesson(TARGET, [("pay", 1.0)], 1.0, AGENT, None, None, 1000), LearningPolicy())
    async with open_store(url) as store:
        for number in range(120):
            row = DecisionRow(
                f"d{number:03}", f"t{number}", "", "default", "invoke", "selected", "pay", "a",
                '{"utterance":"hi"}', '{"span_id":"s"}', "{}", 1000, SESSION if number else "s-8", AGENT,
            )  # fmt: skip
            await store.records.append([row])
        await store.records.append([UsageRow(1, AGENT, "", "default", "a", 1, 1, 1, 0, 0.0, 0, 0.0), *learnt.rows])


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["subjects", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def test_an_export_is_one_json_object_with_all_of_it(url: str) -> None:
    code, out, errors = invoke("export", SESSION, "--store", url)
    assert (code, errors, out.count("\n")) == (0, "", 1)
    told = json.loads(out)
    assert [each["decision_id"] for each in told["decisions"]] == [f"d{number:03}" for number in range(1, 120)]
    assert told["decisions"][0]["request"] == {"utterance": "hi"}
    assert told["next"] is None
    of_agent = json.loads(invoke("export", AGENT, "--after", "d117", "--store", url, "--json")[1])
    assert [each["decision_id"] for each in of_agent["decisions"]] == ["d118", "d119"]
    assert json.loads(invoke("export", AGENT, "--store", url)[1])["evidence"][0]["n_outcomes"] == 1.0


@pytest.mark.parametrize("name", ["", " "])
def test_no_name_is_refused_although_it_stands_for_all_that_was_asked_without_a_key(url: str, name: str) -> None:
    for arguments in (("export", name), ("erase", name, "--yes")):
        code, out, errors = invoke(*arguments, "--store", url)
        assert (code, out) == (2, "")
        assert "NAME: must not be empty" in errors
    assert len(json.loads(invoke("export", AGENT, "--store", url)[1])["decisions"]) == 120


def test_nothing_is_erased_unless_it_is_meant(url: str) -> None:
    code, out, errors = invoke("erase", SESSION, "--store", url)
    assert (code, out) == (2, "")
    assert "--yes" in errors
    assert len(json.loads(invoke("export", SESSION, "--store", url)[1])["decisions"]) == 119


def test_a_caller_is_erased_and_what_it_taught_stays(url: str) -> None:
    code, out, errors = invoke("erase", AGENT, "--yes", "--store", url, "--json")
    assert (code, errors) == (0, "")
    told = json.loads(out)
    assert (told["complete"], told["erased"]["decisions"], told["erased"]["usage"]) == (True, 120, 1)
    code, out, errors = invoke("export", AGENT, "--store", url)
    assert (code, out) == (2, "")
    assert "nothing is kept" in errors
    assert asyncio.run(evidence(url)) == ((1.0, 1.0), {""})


async def evidence(url: str) -> tuple[tuple[float, float], set[str]]:
    async with open_store(url) as store:
        weights, states = await store.weights.load()
        learner = Learner()
        learner.load(weights, states)
        return learner.evidence_of(TARGET, "pay"), {row.caller for row in weights}


def test_people_are_told_what_was_erased_and_what_a_service_still_holds(url: str) -> None:
    code, out, errors = invoke("erase", SESSION, "--yes", "--store", url)
    assert (code, out) == (0, "")
    assert "119 decisions" in errors
    assert "DELETE /subjects" in errors
    assert "nothing" in invoke("erase", SESSION, "--yes", "--store", url)[2]


def test_no_store_is_made_for_a_look(tmp_path: Path) -> None:
    code, _, errors = invoke("export", "x", "--store", f"sqlite:///{tmp_path / 'none.db'}")
    assert (code, (tmp_path / "none.db").exists()) == (2, False)
    assert "there is no store" in errors
