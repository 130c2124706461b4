from __future__ import annotations

import asyncio
import json
import stat
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from typer.testing import CliRunner

from feedback.learner import Learner
from models.events import DecisionRow, OutcomeRow
from models.learning_policy import RetentionPolicy
from models.policy import Policy
from router.cli.main import app
from router.stores.open import open_store
from tests.builders import capability, card

NOW_MS = int(time.time() * 1000)
DAY_MS = 86_400_000
AGENT = ("default", "a", "1.0.0")
SAID = "send 20 euros to ann@example.com"


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    asyncio.run(fill(url))
    return url


def recorded(number: int, days_ago: float = 0.0, namespace: str = "default") -> list[Any]:
    at_ms = NOW_MS - int(days_ago * DAY_MS) + number
    decision = DecisionRow(
        f"d{number}", f"t{number}", "key", namespace, "invoke", "selected", "pay", "a",
        json.dumps({"utterance": SAID}), json.dumps({"text": SAID, "plan": []}), "{}", at_ms, "s-1", "web",
    )  # fmt: skip
    told = [
        OutcomeRow(f"d{number}", 1, None, "web", json.dumps({"status": status}), "agent", at_ms)
        for status in ("failed", "succeeded")
    ]
    return [decision, *told]


async def fill(url: str) -> None:
    async with open_store(url) as store:
        await store.cards.put_card(card("a", capability("pay")))
        await store.records.append([*recorded(1), *recorded(2, 10), *recorded(3, 0, "other")])


def ruled(url: str, utterances: Literal["full", "redacted", "digest"] = "full", **days: float) -> None:
    async def put() -> None:
        async with open_store(url) as store:
            policy = Policy(retention=RetentionPolicy(utterances=utterances, **days))
            await store.policies.save_policy(policy.model_dump_json(), NOW_MS)

    asyncio.run(put())


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["feedback", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def evidence(url: str) -> tuple[float, float]:
    async def load() -> tuple[float, float]:
        async with open_store(url) as store:
            learner = Learner()
            learner.load(*await store.weights.load())
            return learner.evidence_of(AGENT, "pay")

    return asyncio.run(load())


def past(tmp_path: Path, *lines: Any) -> str:
    path = tmp_path / "past.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


DONE = {"agent_id": "a", "intent": "pay", "status": "succeeded"}


def test_past_outcomes_are_evidence_once(url: str, tmp_path: Path) -> None:
    file = past(tmp_path, *[DONE] * 4, {**DONE, "status": "failed"}, {**DONE, "status": "cancelled"})
    code, out, errors = invoke("import", file, "--store", url, "--json")
    assert (code, errors) == (0, "checking lines …\nlearning from outcomes …\n")
    told = json.loads(out)
    assert (told["n_lines"], told["n_learned"], told["n_not_charged"], told["is_new"]) == (6, 5, 1, True)
    assert evidence(url) == (5.0, 4.0)
    again = json.loads(invoke("import", file, "--store", url, "--json")[1])
    assert (again["is_new"], again["n_learned"], again["sha256"]) == (False, 0, told["sha256"])
    assert evidence(url) == (5.0, 4.0)
    assert "was imported before" in invoke("import", file, "--store", url)[2]


def test_a_second_file_adds_to_the_first(url: str, tmp_path: Path) -> None:
    invoke("import", past(tmp_path, DONE, DONE), "--store", url)
    invoke("import", past(tmp_path, {**DONE, "status": "failed"}), "--store", url)
    assert evidence(url) == (3.0, 2.0)


def test_people_are_told_what_counts_and_when(url: str, tmp_path: Path) -> None:
    lines = (DONE, {**DONE, "agent_id": "new"}, {**DONE, "intent": "pya"})
    code, out, errors = invoke("import", past(tmp_path, *lines), "--store", url)
    assert (code, out) == (0, "")
    assert "3 of 3 outcomes" in errors
    assert f"Not served by the agent's card (1): pya of {'/'.join(AGENT)}. What they did counts once it is." in errors
    assert "No card is stored of: default/new/0.0.0" in errors
    assert "A service that runs goes by it after its next start." in errors


def test_one_wrong_line_keeps_all_out(url: str, tmp_path: Path) -> None:
    code, out, errors = invoke("import", past(tmp_path, DONE, {**DONE, "reward": 2}), "--store", url)
    assert (code, out) == (1, "")
    assert f"line 2 of {tmp_path / 'past.jsonl'}, reward: must be at most 1, got 2" in errors.replace("\n", " ")
    assert evidence(url) == (0.0, 0.0)


def test_no_store_is_made_for_an_import(tmp_path: Path) -> None:
    code, _, errors = invoke("import", past(tmp_path, DONE), "--store", f"sqlite:///{tmp_path / 'none.db'}")
    assert (code, (tmp_path / "none.db").exists()) == (1, False)
    assert "there is no store" in errors


def exported(url: str, tmp_path: Path, *options: str) -> dict[str, Any]:
    out = tmp_path / "log.jsonl"
    code, text, errors = invoke("export", str(out), "--store", url, "--force", "--json", *options)
    assert (code, errors) == (0, "writing decisions …\n")
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert json.loads(text) == {"store": url, "out": str(out), "n_decisions": len(lines)}
    return {line["decision_id"]: line for line in lines}


def test_the_log_is_exported_a_decision_with_its_outcomes_a_line(url: str, tmp_path: Path) -> None:
    found = exported(url, tmp_path)
    assert list(found) == ["d2", "d1", "d3"]
    assert [each["outcome"]["status"] for each in found["d1"]["outcomes"]] == ["succeeded"]
    assert (found["d1"]["request"], found["d1"]["caller"], found["d1"]["session_id"]) == (
        {"utterance": SAID},
        "web",
        "s-1",
    )
    assert list(exported(url, tmp_path, "--namespace", "other")) == ["d3"]


def test_an_export_tells_no_more_than_the_policy_in_force_has_kept(url: str, tmp_path: Path) -> None:
    ruled(url, "redacted", decisions_days=5.0)
    found = exported(url, tmp_path)
    assert list(found) == ["d1", "d3"]
    assert found["d1"]["request"]["utterance"] == "send [amount] to [email]"
    ruled(url, "digest", outcomes_days=5.0)
    found = exported(url, tmp_path)
    assert found["d1"]["answer"]["text"].startswith("sha256:")
    assert [len(found[each]["outcomes"]) for each in ("d1", "d2")] == [1, 0]


def test_an_export_replaces_nothing_unasked(url: str, tmp_path: Path) -> None:
    out = tmp_path / "log.jsonl"
    out.write_text("mine", encoding="utf-8")
    code, _, errors = invoke("export", str(out), "--store", url)
    assert (code, out.read_text(encoding="utf-8")) == (2, "mine")
    assert "--force" in errors
    assert invoke("export", str(out), "--store", url, "--force")[0] == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.glob("*part*")) == []


def test_where_no_file_can_be_made_it_is_told(url: str, tmp_path: Path) -> None:
    code, _, errors = invoke("export", str(tmp_path / "none" / "log.jsonl"), "--store", url)
    assert code == 2
    assert "cannot be written" in errors
