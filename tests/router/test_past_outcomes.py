from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from feedback.learner import Learner
from models.errors import ConfigError
from models.events import LearnerRow, WeightRow
from models.learning_policy import DriftPolicy, LearningPolicy, RewardPolicy
from models.past_outcome import PastOutcome
from router.past_outcomes import MAX_LINE_BYTES, check, past_outcomes, teach
from tests.builders import capability, card

DONE = {"agent_id": "a", "intent": "refund", "status": "succeeded"}
CARDS = [card("a", capability("refund"), version="1.2.0", timeout_ms=1000), card("a", version="1.10.0"), card("b")]


def nobody(_number: int) -> None:
    return None


def file_of(folder: Path, *lines: Any, name: str = "past.jsonl") -> Path:
    path = folder / name
    text = "".join(line + "\n" if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def taught(*lines: dict[str, Any], policy: LearningPolicy | None = None) -> tuple[Learner, Any]:
    learner = Learner()
    outcomes = [PastOutcome.model_validate(line) for line in lines]
    return learner, teach(learner, outcomes, policy or LearningPolicy(), CARDS, 5000)


@pytest.mark.parametrize("name", ["past.jsonl", "past.jsonl.gz"])
def test_a_file_is_read_line_by_line(tmp_path: Path, name: str) -> None:
    path = file_of(tmp_path, DONE, "", {**DONE, "reward": 0.5, "status": None}, name=name)
    seen: list[int] = []
    checked = check(path, seen.append)
    assert (checked.n_lines, seen) == (2, [1, 2, 3])
    assert [past.reward for past in past_outcomes(path)] == [None, 0.5]


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    plain = check(file_of(tmp_path, DONE), nobody)
    packed = check(file_of(tmp_path, DONE, name="other.jsonl.gz"), nobody)
    assert plain.sha256 == packed.sha256
    assert check(file_of(tmp_path, DONE, DONE), nobody).sha256 != plain.sha256


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 of FILE: the line is not JSON: Expecting property name enclosed in double quotes at column 2"),
        ("agent_id=a", "line 2 of FILE: the line is not JSON: Expecting value at column 1"),
        ('{"a": 1, "a": 2}', "line 2 of FILE: the key 'a' stands twice in an object"),
        ("[" * 200 + "]" * 200, "line 2 of FILE: the line is nested more than 100 levels deep"),
        ("[]", "line 2 of FILE: expected a mapping, got a list"),
        ({**DONE, "agent_id": "a b"}, "line 2 of FILE, agent_id: 'a b' is no agent id"),
        ({**DONE, "statuss": "failed"}, "line 2 of FILE, statuss: unknown field; did you mean 'status'?"),
        ({**DONE, "status": "well"}, "line 2 of FILE, status: expected one of 'succeeded'"),
        ({**DONE, "intents": {"refund": 0.5}}, "only one of 'intent' and 'intents' may be given"),
        ({"agent_id": "a", "status": "failed"}, "'intent' or 'intents' is needed"),
        ({"agent_id": "a", "intent": "refund"}, "'status' or 'reward' is needed"),
        ({**DONE, "reward": 1}, "only one of 'status' and 'reward' may be given"),
        ({**DONE, "happened_at": -1}, "line 2 of FILE, happened_at"),
        ('{"agent_id": "a", "intent": "refund", "status": "failed", "cost_usd": 1e400}', "line 2 of FILE, cost_usd"),
        ("x" * (MAX_LINE_BYTES + 5), f"line 2 of FILE: is longer than {MAX_LINE_BYTES} bytes"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, line: Any, told: str) -> None:
    file = file_of(tmp_path, DONE, line)
    with pytest.raises(ConfigError) as failed:
        check(file, nobody)
    assert told.replace("FILE", str(file)) in str(failed.value)
    assert "body" not in str(failed.value)
    assert "nothing was imported" in str(failed.value)
    assert "Traceback" not in str(failed.value)


def test_only_so_many_problems_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as failed:
        check(file_of(tmp_path, *["{"] * 1000), nobody)
    assert str(failed.value).count("of " + str(tmp_path)) == 20


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.gz").write_bytes(b"not packed")
    for name in ("none.jsonl", "bad.gz"):
        with pytest.raises(ConfigError, match=f"{name} cannot be read"):
            check(tmp_path / name, nobody)


def test_past_outcomes_count_as_if_they_had_just_come() -> None:
    learner, found = taught(DONE, {**DONE, "status": "failed"}, {**DONE, "version": "1.2.0", "quality": 0.5})
    assert learner.evidence_of(("default", "a", "1.10.0"), "refund") == (2.0, 1.0)
    assert learner.evidence_of(("default", "a", "1.2.0"), "refund") == (1.0, 0.5)
    assert (found.n_learned, found.n_not_charged, found.unknown) == (3, 0, [])


def test_intents_that_the_card_does_not_serve_count_and_are_named() -> None:
    other = {"agent_id": "a", "version": "1.2.0", "intents": {"refund": 0.6, "billing": 0.2}, "reward": 1.0}
    learner, found = taught({**DONE, "version": "1.2.0"}, other, other, {**DONE, "agent_id": "nobody"})
    assert (found.n_learned, found.unknown) == (4, ["default/nobody/0.0.0"])
    assert found.unserved == ["billing of default/a/1.2.0"]
    assert learner.evidence_of(("default", "a", "1.2.0"), "billing") == (0.5, 0.5)


def test_soft_intents_share_an_outcome() -> None:
    learner, _ = taught({"agent_id": "a", "intents": {"refund": 0.6, "billing": 0.2}, "reward": 1.0})
    agent = ("default", "a", "1.10.0")
    assert (learner.evidence_of(agent, "refund"), learner.evidence_of(agent, "billing")) == ((0.75, 0.75), (0.25, 0.25))


def test_what_is_not_the_agents_doing_does_not_count() -> None:
    learner, found = taught({**DONE, "status": "cancelled"}, {**DONE, "status": "rejected"})
    assert (found.n_learned, found.n_not_charged) == (0, 2)
    assert learner.evidence_of(("default", "a", "1.10.0"), "refund") == (0.0, 0.0)


def test_latency_counts_against_the_timeout_of_the_card() -> None:
    slow = LearningPolicy(reward=RewardPolicy(slow_penalty=0.4))
    learner, _ = taught({**DONE, "version": "1.2.0", "latency_ms": 1000.0}, policy=slow)
    assert learner.evidence_of(("default", "a", "1.2.0"), "refund") == (1.0, 0.6)


def test_agents_without_a_card_are_told_and_learned_of() -> None:
    learner, found = taught({**DONE, "agent_id": "new"}, {**DONE, "agent_id": "new"})
    assert found.unknown == ["default/new/0.0.0"]
    assert learner.evidence_of(("default", "new", "0.0.0"), "refund")[0] == 2.0


def test_the_rows_make_the_same_learner_of_what_was_stored() -> None:
    lines = [{**DONE, "caller": f"c{n % 3}", "cost_usd": 0.01, "reward": n % 2, "status": None} for n in range(40)]
    learner, found = taught(*lines)
    weights = [row for row in found.rows if isinstance(row, WeightRow)]
    assert len(weights) == len({row[:5] for row in weights}) == 3
    states = [row for row in found.rows if isinstance(row, LearnerRow)]
    again = Learner()
    again.load(weights, states)
    assert again.rows(0) == learner.rows(0)
    assert again.cost_of(("default", "a", "1.10.0")) == pytest.approx(0.01)


def test_a_caller_of_a_file_is_capped_as_any() -> None:
    policy = LearningPolicy(caller_share=0.1, caller_free=5.0)
    others = [{**DONE, "caller": f"c{n}"} for n in range(90)]
    learner, _ = taught(*others, *[{**DONE, "caller": "loud", "status": "failed"}] * 500, policy=policy)
    agent = ("default", "a", "1.10.0")

    assert learner.evidence_of(agent, "refund") == (590.0, 90.0)
    # what contradicts ninety others counts for nobody else
    assert learner.n_counted(agent, "refund", policy) == 90.0


def test_nobody_is_demoted_for_what_is_past() -> None:
    policy = LearningPolicy(drift=DriftPolicy(threshold=0.5), caller_share=1.0)
    learner, _ = taught(*[DONE] * 50, *[{**DONE, "status": "failed"}] * 50, policy=policy)
    assert not learner.is_demoted(("default", "a", "1.10.0"))


def test_while_learning_is_frozen_nothing_is_imported() -> None:
    learner = Learner()
    learner.freeze("by hand", 1)
    with pytest.raises(ConfigError, match=r"frozen \(by hand\)"):
        teach(learner, [PastOutcome.model_validate(DONE)], LearningPolicy(), CARDS, 5000)
