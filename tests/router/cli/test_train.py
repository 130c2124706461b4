from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from intent.embedder import bundled
from intent.model_folder import load_heads, read_manifest
from models.settings import Settings
from router.cli.main import app
from router.cli.training import flat
from router.reading_parts import encoder_of
from tests.intent.labelled import sentences
from tests.intent.several import ROWS as SEVERAL
from tests.intent.tiny_model import tiny_model
from tests.service.server import SHOP

CARDS = str(SHOP / "cards.yaml")


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["train", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def written(path: Path, start: int, end: int) -> str:
    rows = [json.dumps({"text": text, "intent": intent}) for text, intent in sentences(("parcel", "invoice"))]
    path.write_text("\n".join(rows[start:end]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.getbasetemp() / "train-vectors.npz")


def test_cards_become_a_model_that_serving_loads(tmp_path: Path, vectors: str) -> None:
    out = tmp_path / "model"
    code, stdout, _ = invoke("--cards", CARDS, "--out", str(out), "--cache", vectors, "--json")
    assert (code, stdout.count("\n")) == (0, 1)
    result = json.loads(stdout)
    manifest = read_manifest(out)
    assert result["out"] == str(out)
    assert result["n_labels"] == len(manifest.labels)
    assert manifest.data.keys() == {CARDS}
    assert manifest.metrics == {name: value for name, value in result.items() if name != "out"}
    assert load_heads(out, encoder_id=bundled().encoder_id).semantic is not None


def test_example_files_join_the_cards_and_val_examines(tmp_path: Path, vectors: str) -> None:
    examples, val = written(tmp_path / "train.jsonl", 0, 60), written(tmp_path / "val.jsonl", 60, 100)
    out = tmp_path / "model"
    options = ("--cards", CARDS, "--examples", examples, "--val", val, "--out", str(out), "--cache", vectors)
    code, stdout, _ = invoke(*options, "--json")
    assert code == 0
    result = json.loads(stdout)
    assert (result["measured_on"], result["n_held_out"]) == ("held-out texts", 40)
    assert "check_parcel" in read_manifest(out).labels
    assert read_manifest(out).data.keys() == {CARDS, examples, val}


def test_people_get_the_figures(tmp_path: Path, vectors: str) -> None:
    examples = written(tmp_path / "train.jsonl", 0, 60)
    code, stdout, stderr = invoke("--examples", examples, "--out", str(tmp_path / "model"), "--cache", vectors)
    assert code == 0
    assert "n_examples" in stdout
    assert "written to" in stderr


def test_vectors_are_kept_beside_the_model(tmp_path: Path) -> None:
    examples = written(tmp_path / "train.jsonl", 0, 20)
    assert invoke("--examples", examples, "--out", str(tmp_path / "model"))[0] == 0
    assert (tmp_path / "model.vectors.npz").exists()
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "arrays.npz",
        "manifest.json",
        "vocabulary.txt",
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--base", "x"), "--base: names the model that --fine-tune tunes"),
        (("--epochs", "3"), "--epochs: says how long --fine-tune tunes"),
        (("--fine-tune", "--encoder", "x"), "--encoder: an encoder folder cannot be tuned"),
    ],
)
def test_options_of_fine_tuning_that_do_not_go_together(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    code, _, stderr = invoke("--cards", CARDS, "--out", str(tmp_path / "model"), *options)
    assert code == 2
    assert told in stderr


@pytest.mark.skipif(find_spec("torch") is not None, reason="the extra is installed")
def test_fine_tuning_names_the_extra_that_it_needs(tmp_path: Path) -> None:
    code, _, stderr = invoke("--cards", CARDS, "--out", str(tmp_path / "model"), "--fine-tune")
    assert code == 1
    assert "pip install 'agency-router[train]'" in stderr


@pytest.mark.filterwarnings("ignore")
def test_fine_tuning_writes_a_model_that_brings_its_encoder(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="tuning needs the extra `train`").set_num_threads(1)
    base = tiny_model(tmp_path / "base", [row.text for row in sentences()])
    examples, val = written(tmp_path / "train.jsonl", 0, 60), written(tmp_path / "val.jsonl", 60, 100)
    out = tmp_path / "model"
    options = ("--examples", examples, "--val", val, "--out", str(out), "--fine-tune", "--base", str(base))
    code, stdout, stderr = invoke(*options, "--epochs", "1", "--json")
    assert code == 0, stderr
    result = json.loads(stdout)
    assert {name: figures["n_held_out"] for name, figures in result["exam"].items()} == {
        "base": 40,
        "tuned": 40,
        "both": 40,
    }
    assert ("not kept" in stderr) is (result["encoder"] == "base")
    encoder = encoder_of(Settings(model=out))
    assert encoder.dim == (64 if result["encoder"] == "both" else 32)
    assert read_manifest(out).encoder_id == encoder.encoder_id
    assert load_heads(out, encoder_id=encoder.encoder_id).semantic is not None
    # a model that needs no encoder of its own takes the place of one that did
    assert invoke("--examples", examples, "--val", val, "--out", str(out))[0] == 0
    assert encoder_of(Settings(model=out)).encoder_id == bundled().encoder_id


def test_nothing_to_train_on_is_told(tmp_path: Path) -> None:
    code, _, stderr = invoke("--out", str(tmp_path / "model"))
    assert (code, "name --cards or --examples" in stderr) == (2, True)


def test_wrong_lines_are_told_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n', encoding="utf-8")
    code, stdout, stderr = invoke("--examples", str(tmp_path / "bad.jsonl"), "--out", str(tmp_path / "model"), "--json")
    assert (code, stdout) == (1, "")
    assert "line 1" in stderr
    assert "bad.jsonl" in stderr
    assert not (tmp_path / "model").exists()


def test_a_folder_of_other_things_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine", encoding="utf-8")
    code, _, stderr = invoke("--cards", CARDS, "--out", str(tmp_path / "out"))
    assert (code, "thesis.txt" in stderr) == (1, True)
    assert not (tmp_path / "out.vectors.npz").exists()


def test_one_intent_is_told(tmp_path: Path, vectors: str) -> None:
    (tmp_path / "one.jsonl").write_text('{"text": "a b c", "intent": "x"}\n', encoding="utf-8")
    code, _, stderr = invoke(
        "--examples", str(tmp_path / "one.jsonl"), "--out", str(tmp_path / "model"), "--cache", vectors
    )
    assert (code, "at least 2" in stderr) == (1, True)


def test_nested_figures_stand_one_a_line() -> None:
    figures = {"n": 3, "exam": {"base": {"accuracy": 0.5, "at_risk": {"0.02": 0.25}}}}
    assert flat(figures) == [["n", "3"], ["exam base accuracy", "0.5000"], ["exam base at_risk 0.02", "0.2500"]]


def test_texts_of_several_intents_teach_to_read_several(tmp_path: Path, vectors: str) -> None:
    rows = [json.dumps({"text": text, "intents": sorted(meant)}) for text, meant in SEVERAL]
    (tmp_path / "several.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    out = tmp_path / "model"
    code, stdout, _ = invoke(
        "--examples", str(tmp_path / "several.jsonl"), "--out", str(out), "--cache", vectors, "--json"
    )
    assert code == 0
    result = json.loads(stdout)
    assert result["n_multi"] == sum(len(meant) > 1 for _, meant in SEVERAL)
    assert result["set_f1"] > 0.95
    assert load_heads(out, encoder_id=bundled().encoder_id).relevance is not None


def test_texts_of_several_intents_are_not_left_out_in_silence_where_the_encoder_is_tuned(tmp_path: Path) -> None:
    row = json.dumps({"text": "cancel it and send it", "intents": ["cancel", "send"]})
    (tmp_path / "several.jsonl").write_text(row + "\n", encoding="utf-8")
    code, _, stderr = invoke(
        "--examples", str(tmp_path / "several.jsonl"), "--fine-tune", "--out", str(tmp_path / "model")
    )
    assert code == 1
    assert "texts of several intents cannot tune the encoder" in stderr
    assert not (tmp_path / "model").exists()
