from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from typer.testing import CliRunner

from router.cli.main import app
from tests.intent.labelled import OUTSIDE, sentences
from tests.intent.several import ROWS as SEVERAL

CONTRACT = {
    "n",
    "accuracy",
    "oos_auroc",
    "oos_fpr95",
    "ece",
    "lexical_share",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "coverage_at_risk",
}
SETS = {"f1", "precision", "recall", "exact", "f1_by_text"}
ROWS = sentences(("parcel", "invoice"))


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["evaluate", "intents", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def written(path: Path, rows: Sequence[tuple[str, str]]) -> str:
    lines = [json.dumps({"text": text, "intent": intent, "domain": "d"}) for text, intent in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_one_json_object_with_all_of_the_contract(tmp_path: Path) -> None:
    train, test = written(tmp_path / "train.jsonl", ROWS[:80]), written(tmp_path / "test.jsonl", ROWS[80:120])
    outside = written(tmp_path / "oos.jsonl", [(text, "whatever") for text in OUTSIDE])
    code, stdout, _ = invoke("--train", train, "--test", test, "--oos-test", outside, "--json")
    assert (code, stdout.count("\n")) == (0, 1)
    summary = json.loads(stdout)
    assert summary.keys() >= CONTRACT
    assert (summary["n"], summary["n_out_of_scope"]) == (40, len(OUTSIDE))
    assert summary["accuracy"] > 0.9
    assert set(summary["coverage_at_risk"]) == {"0.01", "0.02", "0.05"}
    assert {"fit_s", "embed_s", "n_labels", "macro_f1"} <= summary.keys()


def test_val_fits_and_oos_rows_of_test_are_out_of_scope(tmp_path: Path) -> None:
    train, val = written(tmp_path / "train.jsonl", ROWS[:60]), written(tmp_path / "val.jsonl", ROWS[60:100])
    test = written(tmp_path / "test.jsonl", [*ROWS[100:120], (OUTSIDE[0], "oos")])
    code, stdout, _ = invoke("--train", train, "--val", val, "--test", test, "--json")
    summary = json.loads(stdout)
    assert (code, summary["n"], summary["n_out_of_scope"]) == (0, 20, 1)


def test_a_trained_model_is_read_instead_of_training(tmp_path: Path) -> None:
    train, test = written(tmp_path / "train.jsonl", ROWS[:80]), written(tmp_path / "test.jsonl", ROWS[80:90])
    out = str(tmp_path / "model")
    assert CliRunner().invoke(app, ["train", "--examples", train, "--out", out]).exit_code == 0
    code, stdout, _ = invoke("--model", out, "--test", test, "--json")
    by_model = json.loads(stdout)
    assert code == 0
    assert "fit_s" not in by_model
    _, stdout, _ = invoke("--train", train, "--test", test, "--json", "--cache", f"{out}.vectors.npz")
    for name in ("accuracy", "ece", "coverage_at_risk", "lexical_share"):
        assert by_model[name] == json.loads(stdout)[name]


def test_people_get_a_table_and_unknown_intents_are_told(tmp_path: Path) -> None:
    train = written(tmp_path / "train.jsonl", ROWS[:60])
    test = written(tmp_path / "test.jsonl", [*ROWS[60:70], ("sing a song", "sing")])
    code, stdout, stderr = invoke("--train", train, "--test", test)
    assert code == 0
    assert "coverage_at_risk 0.02" in stdout
    assert "1 texts have intents that are not known and count as wrong: sing" in stderr


def test_train_and_model_exclude_each_other(tmp_path: Path) -> None:
    test = written(tmp_path / "test.jsonl", ROWS[:5])
    assert invoke("--test", test)[0] == 2
    assert invoke("--test", test, "--train", test, "--model", str(tmp_path))[0] == 2
    assert invoke("--test", test, "--val", test, "--model", str(tmp_path))[0] == 2


def test_wrong_files_and_folders_are_told(tmp_path: Path) -> None:
    test = written(tmp_path / "test.jsonl", ROWS[:5])
    empty = written(tmp_path / "oos.jsonl", [("x", "oos")])
    for arguments, told in (
        (("--model", str(tmp_path / "none"), "--test", test), "manifest.json cannot be read"),
        (("--train", test, "--test", str(tmp_path / "none.jsonl")), "none.jsonl cannot be read"),
        (("--train", test, "--test", empty), "no labelled texts"),
    ):
        code, stdout, stderr = invoke(*arguments, "--json")
        assert (code, stdout, told in stderr) == (2, "", True)


def test_sets_of_intents_are_examined_as_sets(tmp_path: Path) -> None:
    def with_sets(path: Path, rows: Sequence[tuple[str, frozenset[str]]]) -> str:
        lines = [json.dumps({"text": text, "intents": sorted(meant)}) for text, meant in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    train, test = with_sets(tmp_path / "train.jsonl", SEVERAL[:250]), with_sets(tmp_path / "test.jsonl", SEVERAL[250:])
    code, stdout, _ = invoke("--train", train, "--test", test, "--json")
    assert code == 0
    summary = json.loads(stdout)
    assert summary["n"] + summary["n_out_of_scope"] == len(SEVERAL[250:])
    assert summary["n_multi"] == sum(len(meant) > 1 for _, meant in SEVERAL[250:])
    assert summary["set_named"]["f1"] > 0.95
    assert summary["set_named"].keys() == summary["set_acted_on"].keys() == SETS
    code, stdout, _ = invoke("--train", train, "--test", test)
    assert code == 0
    assert "set_named f1_by_text" in stdout
    # texts of one intent, and classifiers that know of no more, have no such figures
    code, stdout, _ = invoke("--train", written(tmp_path / "one.jsonl", ROWS[:80]), "--test", test, "--json")
    assert "set_named" in json.loads(stdout)
    one = written(tmp_path / "one_test.jsonl", ROWS[80:90])
    code, stdout, _ = invoke("--train", str(tmp_path / "one.jsonl"), "--test", one, "--json")
    assert "set_named" not in json.loads(stdout)
