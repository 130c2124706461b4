from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intent.fit import fit
from intent.fit_classifiers import Example, fit_classifiers
from intent.heads import Heads
from intent.lexical import Lexical
from intent.model_folder import (
    ARRAYS_FILE,
    MANIFEST_FILE,
    RETRAIN_FOLDER,
    VOCABULARY_FILE,
    Origin,
    check_writable,
    load_heads,
    read_manifest,
    save_heads,
)
from models.errors import ConfigError, ModelError
from models.exam_report import EXAM_FILE
from tests.intent.labelled import sentences, vectors_of
from tests.intent.several import ROWS as SEVERAL
from tests.intent.several import VECTORS as SEVERAL_VECTORS
from tests.intent.several import multi, nothing, single

ROWS = [*sentences()[:500], Example("查一下我的快递", "check_parcel")]
VECTORS = vectors_of(row.text for row in ROWS)
HEADS = fit(ROWS, VECTORS)
ORIGIN = Origin(encoder_id="abc", seed=3, n_examples=501, data={"a.jsonl": "0" * 64}, metrics={"accuracy": 0.9})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_heads(HEADS, tmp_path / "model", ORIGIN)
    return tmp_path / "model"


def read_all(heads: Heads) -> list[Any]:
    allowed = np.ones(len(heads.labels), dtype=np.bool_)
    allowed[1] = False
    found: list[Any] = []
    for text, _ in ROWS[:60]:
        scores = heads.lexical.score(text.casefold())
        found.append((heads.by_lexical(scores, allowed, 4), scores.coverage, scores.scores.tolist()))
        if heads.semantic is not None and text in VECTORS:
            found.append(heads.by_both(scores, VECTORS[text], allowed, 4))
    return found


@pytest.mark.parametrize(
    "heads",
    [
        HEADS,
        fit_classifiers(ROWS[:60], VECTORS, 0),
        fit_classifiers(ROWS[:60], {}, 0),
        fit_classifiers([Example("a b", "x"), Example("c d", "y")], {}, 0),
        fit_classifiers([Example("?", "x"), Example("!", "y")], {}, 0),
    ],
    ids=["fitted", "shipped confidences", "words only", "two labels", "no grams"],
)
def test_loaded_heads_read_the_same(heads: Heads, tmp_path: Path) -> None:
    save_heads(heads, tmp_path, ORIGIN)
    loaded = load_heads(tmp_path, encoder_id="abc")
    assert read_all(loaded) == read_all(heads)
    assert (loaded.labels, loaded.early, loaded.lexical_weight) == (heads.labels, heads.early, heads.lexical_weight)
    assert loaded.languages == heads.languages == (frozenset({"en"}) if len(heads.labels) > 2 else frozenset())
    for risk in (0.01, 0.05):
        assert loaded.full_stage.risk.threshold(risk) == heads.full_stage.risk.threshold(risk)


def test_the_manifest_is_readable_on_its_own(folder: Path) -> None:
    for name in (ARRAYS_FILE, VOCABULARY_FILE):
        (folder / name).unlink()
    manifest = read_manifest(folder)
    assert manifest.labels == HEADS.labels
    assert (manifest.encoder_id, manifest.seed, manifest.metrics) == ("abc", 3, {"accuracy": 0.9})
    assert set(manifest.versions) == {"python", "numpy", "scikit-learn"}


def test_another_encoder_is_refused_with_both_ids(folder: Path) -> None:
    with pytest.raises(ModelError, match="encoder abc, the encoder at hand is xyz"):
        load_heads(folder, encoder_id="xyz")
    assert load_heads(folder).labels == HEADS.labels


def test_words_only_go_with_any_encoder(tmp_path: Path) -> None:
    save_heads(fit_classifiers(ROWS[:60], {}, 0), tmp_path, Origin())
    assert load_heads(tmp_path, encoder_id="xyz").semantic is None


def test_a_folder_of_other_things_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ModelError, match=r"holds notes\.txt"):
        save_heads(HEADS, tmp_path, ORIGIN)
    with pytest.raises(ModelError, match="cannot be written"):
        check_writable(tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_exam_is_no_strange_file_and_goes_with_its_model(folder: Path) -> None:
    (folder / EXAM_FILE).write_text("{}", encoding="utf-8")
    (folder / RETRAIN_FOLDER).mkdir()
    check_writable(folder)
    save_heads(HEADS, folder, ORIGIN)
    assert not (folder / EXAM_FILE).exists()


def test_the_digest_is_that_of_what_reads_and_of_nothing_else(folder: Path, tmp_path: Path) -> None:
    first = read_manifest(folder)
    again = save_heads(HEADS, tmp_path / "again", ORIGIN.model_copy(update={"metrics": {}, "seed": 9}))
    other = save_heads(replace(HEADS, early=HEADS.early / 2), tmp_path / "other", ORIGIN)
    assert first.digest == again.digest
    assert other.digest != first.digest
    assert len(first.digest) == 64


def test_an_older_model_is_overwritten(folder: Path) -> None:
    save_heads(fit_classifiers(ROWS[:60], {}, 0), folder, Origin())
    assert load_heads(folder).semantic is None


@pytest.mark.parametrize("name", [MANIFEST_FILE, ARRAYS_FILE, VOCABULARY_FILE])
def test_a_missing_file_is_told(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=f"{name} cannot be read"):
        load_heads(folder)


@pytest.mark.parametrize("name", [ARRAYS_FILE, VOCABULARY_FILE])
def test_an_altered_file_is_told_with_both_digests(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"expected sha256 [0-9a-f]{64}, found [0-9a-f]{64}"):
        load_heads(folder)


def test_the_way_out_is_the_command_that_made_the_folder_or_both_where_it_is_not_known(tmp_path: Path) -> None:
    for made_by, told in (("train", "`agency-router train`$"), ("retrain", "`agency-router retrain`$")):
        save_heads(HEADS, tmp_path / made_by, ORIGIN.model_copy(update={"made_by": made_by}))
        (tmp_path / made_by / ARRAYS_FILE).unlink()
        with pytest.raises(ModelError, match=told):
            load_heads(tmp_path / made_by)
    with pytest.raises(ModelError, match=r"`agency-router train` or `agency-router retrain`$"):
        load_heads(tmp_path)


def altered(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    change(manifest)
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda m: m.update(format=2), "format"),
        (lambda m: m.update(labels=m["labels"][::-1]), "labels_sha256 is"),
        (lambda m: m.update(labels=["a", "a"]), "stands twice"),
        (lambda m: m["files"].pop(ARRAYS_FILE), "files are"),
        (lambda m: m["numbers"]["full_in_scope"].update(weights=[1.0]), "full_in_scope has 1 weights, expected 5"),
        (lambda m: m.update(surprise=1), "surprise"),
        (lambda m: m.pop("numbers"), "numbers"),
    ],
)
def test_a_manifest_that_does_not_hold_together_is_told(
    folder: Path, change: Callable[[dict[str, Any]], None], told: str
) -> None:
    altered(folder, change)
    with pytest.raises(ModelError, match=told):
        load_heads(folder)


@pytest.mark.parametrize(
    ("lexical", "told"),
    [
        ({"bias": np.zeros(3, np.float32)}, r"lexical_bias has the shape \(3,\), expected \(32,\)"),
        ({"bias": np.full(32, np.nan, np.float32)}, "lexical_bias is of float32, expected finite numbers"),
        ({"idf": np.zeros(7, np.float32)}, r"idf has the shape \(7,\)"),
    ],
)
def test_arrays_of_the_wrong_shape_are_told(tmp_path: Path, lexical: dict[str, Any], told: str) -> None:
    save_heads(replace(HEADS, lexical=replace(HEADS.lexical, **lexical)), tmp_path, ORIGIN)
    with pytest.raises(ModelError, match=told):
        load_heads(tmp_path)


def test_labels_without_prototypes_are_told(tmp_path: Path) -> None:
    assert HEADS.semantic is not None
    wrong = replace(HEADS.semantic, first=np.zeros_like(HEADS.semantic.first))
    save_heads(replace(HEADS, semantic=wrong), tmp_path, ORIGIN)
    with pytest.raises(ModelError, match="does not give each of the 32 labels a prototype"):
        load_heads(tmp_path)


def test_pickled_objects_are_not_loaded(folder: Path) -> None:
    with (folder / ARRAYS_FILE).open("wb") as file:
        np.savez(file, allow_pickle=True, idf=np.array([object()], dtype=object))
    from intent.embedder import FileRecord

    record = FileRecord.of((folder / ARRAYS_FILE).read_bytes()).model_dump()
    altered(folder, lambda manifest: manifest["files"].update({ARRAYS_FILE: record}))
    with pytest.raises(ModelError, match="no archive of plain arrays"):
        load_heads(folder)


def test_sixty_megabytes_load_in_a_moment(tmp_path: Path) -> None:
    n_rows, labels = 100_000, tuple(f"intent {number}" for number in range(150))
    vocabulary = {f"gram {row}": row for row in range(n_rows)}
    weights = np.zeros((n_rows, 150), dtype=np.float32)
    lexical = Lexical(labels, vocabulary, np.ones(n_rows, np.float32), weights, np.zeros(150, np.float32), 5.0)
    save_heads(replace(HEADS, labels=labels, lexical=lexical, semantic=None), tmp_path, Origin())
    took = []
    for _ in range(3):
        started = time.perf_counter()
        load_heads(tmp_path)
        took.append(time.perf_counter() - started)
    assert min(took) < 2.0  # 0.3 s on a quiet machine


SEVERAL_HEADS = fit(single(SEVERAL), SEVERAL_VECTORS, out_of_scope=nothing(SEVERAL), multi=multi(SEVERAL))


@pytest.mark.parametrize(
    "heads",
    [SEVERAL_HEADS, fit(single(SEVERAL[:60]), {}, multi=multi(SEVERAL[:60]))],
    ids=["words and vectors", "words only"],
)
def test_what_a_text_means_besides_is_read_the_same(heads: Heads, tmp_path: Path) -> None:
    save_heads(heads, tmp_path, ORIGIN)
    loaded = load_heads(tmp_path)
    allowed = np.ones(len(heads.labels), dtype=np.bool_)
    for text, _ in SEVERAL[:40]:
        vector = SEVERAL_VECTORS[text] if heads.semantic is not None else None
        scores = heads.lexical.score(text.casefold())
        assert loaded.further(scores, vector, allowed, 0) == heads.further(scores, vector, allowed, 0)
        if vector is not None:
            assert loaded.by_both(scores, vector, allowed, 3) == heads.by_both(scores, vector, allowed, 3)


def test_a_folder_that_was_written_before_there_was_relevance_still_loads(folder: Path) -> None:
    altered(folder, lambda manifest: manifest["numbers"].pop("relevance"))
    assert load_heads(folder).relevance is None
    assert read_all(load_heads(folder)) == read_all(HEADS)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda m: m["numbers"].update(relevance=None), "full_in_scope has 7 weights, expected 5"),
        (lambda m: m["numbers"]["full_is_right"]["weights"].pop(), "full_is_right has 6 weights, expected 7"),
        (lambda m: m["numbers"]["relevance"]["confidence"].update(weights=[1.0, 2.0]), "relevance has 2 weights"),
    ],
)
def test_relevance_that_does_not_hold_together_is_told(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], told: str
) -> None:
    save_heads(SEVERAL_HEADS, tmp_path, ORIGIN)
    altered(tmp_path, change)
    with pytest.raises(ModelError, match=told):
        load_heads(tmp_path)


def test_relevance_of_the_wrong_shape_is_told(tmp_path: Path) -> None:
    assert SEVERAL_HEADS.relevance is not None
    wrong = replace(SEVERAL_HEADS.relevance, bias=np.zeros(3, np.float32))
    save_heads(replace(SEVERAL_HEADS, relevance=wrong), tmp_path, ORIGIN)
    with pytest.raises(ModelError, match=r"relevance_bias has the shape \(3,\), expected \(9,\)"):
        load_heads(tmp_path)
