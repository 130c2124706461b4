from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from intent.embedder import OnnxEmbedder
from intent.export import export_encoder, find_source
from intent.fine_tune import FineTuning, best_of, hold_out
from intent.fit_classifiers import Example
from intent.model_arrays import bytes_of
from intent.pair_embedder import open_encoder
from intent.train import train
from intent.tune import Recipe
from intent.vector_cache import VectorCache
from tests.intent.labelled import OUTSIDE, riddles, sentences
from tests.intent.tiny_model import tiny_model

ROWS = sentences()
RIDDLES = riddles()
LONG = Recipe(n_epochs=60, batch=32, rate=3e-3)


def test_a_part_of_each_intent_and_some_intents_are_held_out() -> None:
    split = hold_out(ROWS, seed=0)
    known, held = {each.intent for each in split.rest}, {each.intent for each in split.held_out}
    all_intents = {each.intent for each in ROWS}
    assert len(all_intents) == 32
    assert len(all_intents - known) == 5  # a sixth
    assert held == known
    assert len(split.rest) + len(split.held_out) + len(split.unknown) == len(ROWS)
    assert {*split.unknown}.isdisjoint(each.text for each in split.rest)
    n_of, n_held = Counter(each.intent for each in ROWS), Counter(each.intent for each in split.held_out)
    assert all(n_held[intent] == round(n_of[intent] / 6) for intent in held)
    assert split == hold_out(ROWS, seed=0) != hold_out(ROWS, seed=1)


def test_an_intent_of_one_example_keeps_it() -> None:
    rows = [Example("one", "a"), Example("two", "b"), Example("three", "b")]
    split = hold_out(rows, seed=0)
    assert Example("one", "a") in split.rest
    assert [each.intent for each in split.held_out] == ["b"]
    assert split.unknown == []  # too few intents to withhold one


@pytest.mark.parametrize(
    ("base", "tuned", "both", "best"),
    [
        ((0.94, 0.96), (0.95, 0.956), (0.94, 0.97), "tuned"),
        ((0.94, 0.96), (0.95, 0.954), (0.94, 0.97), "base"),  # unknown intents are told too much worse
        ((0.94, 0.96), (0.95, 0.956), (0.949, 0.96), "both"),  # the larger sum
        ((0.94, 0.96), (0.94, 0.99), (0.93, 0.99), "base"),  # nothing more is right
    ],
)
def test_best_is_more_right_and_hardly_less_aware(
    base: tuple[float, float], tuned: tuple[float, float], both: tuple[float, float], best: str
) -> None:
    exam = {"base": base, "tuned": tuned, "both": both}
    assert best_of({name: {"accuracy": a, "oos_auroc": b} for name, (a, b) in exam.items()}) == best
    assert best_of({name: {"accuracy": a} for name, (a, _) in exam.items()}) in ("base", "tuned")
    assert best_of({name: {} for name in exam}) == "base"


@pytest.fixture(scope="module")
def tuning(tmp_path_factory: pytest.TempPathFactory) -> FineTuning:
    torch = pytest.importorskip("torch", reason="tuning needs the extra `train`")
    torch.set_num_threads(1)
    work = tmp_path_factory.mktemp("work")
    source = find_source(str(tiny_model(work / "tiny", [*(row.text for row in RIDDLES), *OUTSIDE])))
    export_encoder(source, work / "base")
    return FineTuning(VectorCache(OnnxEmbedder(work / "base")), work / "base", source, work, LONG)


@pytest.mark.filterwarnings("ignore")
def test_held_out_texts_judge_all_encoders(tuning: FineTuning) -> None:
    found = tuning.run(RIDDLES[:300], held_out=RIDDLES[300:])
    assert found.chosen in ("tuned", "both")
    assert found.exam["base"]["accuracy"] < 0.4
    assert found.exam["tuned"]["accuracy"] > 0.6
    assert {figures["n_held_out"] for figures in found.exam.values()} == {len(RIDDLES[300:])}
    assert found.trained.metrics == found.exam[found.chosen]
    assert found.encoder is not None
    kept = open_encoder(found.encoder)
    assert kept.dim == (64 if found.chosen == "both" else 32)
    again = train(RIDDLES[:300], VectorCache(kept), held_out=RIDDLES[300:])
    assert bytes_of(found.trained.heads) == bytes_of(again.heads)


@pytest.mark.filterwarnings("ignore")
def test_without_them_a_part_judges_and_all_is_learned(tuning: FineTuning) -> None:
    found = tuning.run(RIDDLES, out_of_scope=OUTSIDE)
    assert found.chosen in ("tuned", "both")
    assert found.exam["tuned"]["n_out_of_scope"] > len(OUTSIDE)  # and the texts of the withheld intents
    assert found.exam["tuned"]["n_labels"] == 10
    assert found.trained.heads.labels == tuple(sorted({row.intent for row in RIDDLES}))
    assert found.trained.metrics["n_labels"] == 12


@pytest.mark.filterwarnings("ignore")
def test_an_encoder_that_reads_no_better_is_not_kept(tuning: FineTuning) -> None:
    idle = replace(tuning, recipe=Recipe(n_epochs=1, rate=0.0))
    found = idle.run(RIDDLES[:300], held_out=RIDDLES[300:], out_of_scope=OUTSIDE)
    assert (found.chosen, found.encoder) == ("base", None)
    plain = train(RIDDLES[:300], tuning.base, held_out=RIDDLES[300:], out_of_scope=OUTSIDE)
    assert bytes_of(found.trained.heads) == bytes_of(plain.heads)
