from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from intent.embedder import bundled
from intent.model_folder import load_heads, read_manifest
from models.events import Row
from models.exam_report import EXAM_FILE, Confusion, Confusions, ExamReport, GoldenScore, Score
from router.cli.retrain import show
from router.cli.settings import settings_of
from router.reading_parts import encoder_of
from tests.router.retraining.world import Correction, lines, make_store, settled

EXAMPLE = Path(__file__).parents[3] / "router" / "example"
CARDS = ("--cards", str(EXAMPLE / "cards.yaml"), "--cards", str(EXAMPLE / "nested"))
RUN = """
import os, sys
from router.cli.main import app
code = app(sys.argv[1:], standalone_mode=False)
print("priority", os.getpriority(os.PRIO_PROCESS, 0), file=sys.stderr)
sys.exit(code)
"""

ASKED = {
    "place_order": ("could we have two more of the oak shelves", "I want to buy the blue armchair"),
    "cancel_order": ("forget about the wardrobe I ordered", "no need to send the sofa any more"),
    "get_invoice": ("my accountant asks for the bill of last month", "please mail the invoice for the desks"),
    "book_flight": ("get me on a plane to Madrid on Friday", "two seats on the morning flight to Oslo"),
    "book_hotel": ("somewhere to sleep near the fair in Milan", "a room in Vienna for three nights"),
    "reset_password": ("I cannot log in, I forgot my password", "my account is locked, set a new password"),
}
ODD = "the sheet that shows what we owe you"


def run(*arguments: str) -> tuple[int, str, str]:
    """In a process of its own, as the command lowers its own priority."""
    env = {**os.environ, "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, "retrain", *arguments],
        capture_output=True,
        text=True,
        env=env,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_feedback_becomes_a_model_that_serving_loads(tmp_path: Path) -> None:
    rows: list[Row] = []
    for intent, texts in ASKED.items():
        for number, text in enumerate(texts):
            rows += settled(f"{intent}-{number}", text, intent, caller=f"team-{number}")
    url = make_store(tmp_path, rows, [Correction("r1", ODD, "get_invoice", "dispute_charge")], cards=())
    golden = lines(
        tmp_path / "golden.jsonl", [(f"{text}, thanks", i) for i, texts in ASKED.items() for text in texts] * 2
    )
    out = tmp_path / "out"
    code, stdout, stderr = run("--log", url, "--out", str(out), *CARDS, "--golden", str(golden), "--json")
    assert code == 0, stderr
    result = json.loads(stdout)
    report = ExamReport.model_validate_json((out / EXAM_FILE).read_bytes())
    assert {**report.model_dump(mode="json"), "out": str(out)} == result
    assert report.n_examples["corrections"] == 1
    assert report.golden.n == 24
    assert report.golden.right_after >= report.golden.right_before >= 20
    assert report.model_digest == read_manifest(out).digest
    embedder = encoder_of(settings_of(model=out))
    assert embedder.encoder_id == bundled().encoder_id
    assert load_heads(out, encoder_id=embedder.encoder_id).semantic is not None
    assert "priority 10" in stderr
    assert f"written to {out}" in stderr
    assert ("the exam is passed" in stderr) == report.passes
    assert report.success is not None
    assert f"success heads: not kept, {report.success.why}" in stderr
    assert "an agent needs 500 outcomes that count" in report.success.why


def test_people_get_figures_and_confusions(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    gained = Confusion(meant="track", read="cancel", n=3, examples=("review:r1", "decision:d1"))
    show(
        ExamReport(
            model_digest="ab" * 32,
            made_at=0,
            n_examples={"cards": 24},
            golden=GoldenScore(n=9, right_before=9, right_after=8, lost=("golden.jsonl:3",)),
            by_intent={"track": Score(n=9, right_before=9, right_after=6), "cancel": Score(n=3)},
            confusions=Confusions(gained=(gained,)),
            passes=False,
            refusals=("golden: 1 row(s) that were read right are lost: golden.jsonl:3",),
        )
    )
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any("n_examples cards │ 24" in line for line in told)
    assert any("right by intent track │ 9 -> 6 of 9" in line for line in told)
    assert any("gained │ track │ cancel │ 3 │ review:r1, decision:d1" in line for line in told)
    assert not any("right by intent cancel" in line for line in told)


def test_what_is_missing_is_told_without_a_traceback(tmp_path: Path) -> None:
    code, stdout, stderr = run("--log", f"sqlite:///{tmp_path / 'none.db'}", "--out", str(tmp_path / "out"))
    assert (code, stdout) == (1, "")
    assert "there is no store" in stderr
    assert "Traceback" not in stderr
