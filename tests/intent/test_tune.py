from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from intent.embedder import OnnxEmbedder
from intent.export import Source, export_encoder, find_source
from intent.fit_classifiers import Example
from intent.tune import Recipe, tune
from models.errors import EncoderError
from tests.intent.labelled import sentences
from tests.intent.tiny_model import tiny_model

torch = pytest.importorskip("torch", reason="tuning needs the extra `train`")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's export and the libraries around it warn of themselves

ROWS = sentences()
SHORT = Recipe(n_epochs=12, batch=32, rate=1e-3)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    torch.set_num_threads(1)
    folder = tiny_model(tmp_path_factory.mktemp("base") / "tiny", [row.text for row in ROWS])
    return find_source(str(folder))


def nearest_is_right(encoder: Path) -> float:
    """How often the nearest of 300 examples has the intent of a text that was not tuned on."""
    embedder = OnnxEmbedder(encoder)
    vectors = np.stack([np.frombuffer(embedder.embed(row.text).vector, dtype="<f4") for row in ROWS])
    nearest = (vectors[300:] @ vectors[:300].T).argmax(axis=1).tolist()
    right = [ROWS[place].intent == row.intent for place, row in zip(nearest, ROWS[300:], strict=True)]
    return float(np.mean(right))


def weights(folder: Path) -> str:
    return sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def test_texts_of_one_intent_come_together(source: Source, tmp_path: Path) -> None:
    export_encoder(source, tmp_path / "before")
    before = weights(source.folder)
    tuned = tune(source, ROWS[:300], tmp_path / "tuned", recipe=SHORT)
    export_encoder(tuned, tmp_path / "after", [row.text for row in ROWS[300:400]])
    assert nearest_is_right(tmp_path / "before") < 0.4
    assert nearest_is_right(tmp_path / "after") > 0.9
    assert weights(source.folder) == before


def test_few_examples_are_contrasted(source: Source, tmp_path: Path) -> None:
    few = Recipe(n_epochs=30, batch=32, rate=1e-3, contrast=1.0)
    tuned = tune(source, ROWS[:96], tmp_path / "tuned", recipe=few)
    export_encoder(tuned, tmp_path / "after", [row.text for row in ROWS[300:400]])
    assert nearest_is_right(tmp_path / "after") > 0.8


def test_languages_that_were_tuned_on_count_as_those_of_the_encoder(source: Source, tmp_path: Path) -> None:
    german = [Example(f"wo ist mein Paket mit der Nummer {number}", "track") for number in range(8)]
    german += [Example(f"bitte stornieren Sie meine Bestellung {number}", "cancel") for number in range(8)]
    english = replace(source, languages=("en",))
    tuned = tune(english, german, tmp_path / "tuned", recipe=Recipe(n_epochs=1))
    assert tuned.languages == ("de", "en")
    any_language = tune(replace(source, languages=None), german, tmp_path / "any", recipe=Recipe(n_epochs=1))
    assert any_language.languages is None


def test_the_seed_decides(source: Source, tmp_path: Path) -> None:
    one, again, other = (
        tune(source, ROWS[:64], tmp_path / name, recipe=Recipe(n_epochs=1), seed=seed).folder
        for name, seed in (("one", 1), ("again", 1), ("other", 2))
    )
    assert weights(one) == weights(again) != weights(other)


def test_progress_counts_steps(source: Source, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    recipe = Recipe(n_epochs=2, batch=30)
    tune(source, ROWS[:64], tmp_path / "tuned", recipe=recipe, progress=lambda done, n: told.append((done, n)))
    assert told == [(step, 6) for step in range(1, 7)]


def test_a_loss_that_is_no_number_ends_it(source: Source, tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="came apart at step"):
        tune(source, ROWS[:64], tmp_path / "tuned", recipe=Recipe(n_epochs=3, rate=1e30))
    assert not (tmp_path / "tuned").exists()


def test_one_intent_cannot_be_tuned_on(source: Source, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 2 intents, the examples have 1"):
        tune(source, [Example("a b", "x"), Example("c d", "x")], tmp_path / "tuned", recipe=SHORT)


def test_few_examples_have_a_recipe_of_their_own() -> None:
    assert Recipe.of(100 * 20, 100) == Recipe()
    few = Recipe.of(100 * 20 - 1, 100)
    assert few.n_epochs > Recipe().n_epochs
    assert few.contrast > 0
