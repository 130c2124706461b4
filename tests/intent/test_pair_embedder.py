from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.embedder import OnnxEmbedder, bundled
from intent.pair_embedder import PairEmbedder, joined, open_encoder, write_pair
from intent.vector_cache import VectorCache
from models.errors import EncoderError
from models.ports import Embedded

WEIGHTS = files("intent").joinpath("weights")
TEXTS = ("where is my parcel", "stop the order", "我的快递到哪了")


def unit(*values: float) -> Embedded:
    vector = np.array(values, dtype="<f4")
    return Embedded((vector / np.linalg.norm(vector)).astype("<f4").tobytes(), 0.0)


def values_of(embedded: Embedded) -> np.ndarray:
    return np.frombuffer(embedded.vector, dtype="<f4")


def test_a_cosine_of_pairs_is_the_mean_of_two_cosines() -> None:
    a, b, c, d = unit(1, 0), unit(3, 4), unit(1, 2, 2), unit(2, 1, 2)
    mean = (values_of(a) @ values_of(b) + values_of(c) @ values_of(d)) / 2
    assert values_of(joined(a, c)) @ values_of(joined(b, d)) == pytest.approx(mean, abs=1e-6)
    assert np.linalg.norm(values_of(joined(a, c))) == pytest.approx(1, abs=1e-6)


def test_a_text_is_trusted_only_where_both_know_it() -> None:
    known, unknown = Embedded(unit(1).vector, 0.0), Embedded(unit(1).vector, 0.9)
    assert joined(known, unknown).unknown_share == joined(unknown, known).unknown_share == 0.9


def test_the_id_tells_both_encoders_and_their_order() -> None:
    one, other = DummyEmbedder(), bundled()
    pair, turned = PairEmbedder(one, other), PairEmbedder(other, one)
    assert len({pair.encoder_id, turned.encoder_id, one.encoder_id, other.encoder_id}) == 4
    assert pair.encoder_id == PairEmbedder(DummyEmbedder(), bundled()).encoder_id
    assert pair.dim == one.dim + other.dim
    assert turned.languages == other.languages


def test_a_folder_of_two_is_opened_as_a_pair(tmp_path: Path) -> None:
    write_pair(WEIGHTS, WEIGHTS, tmp_path / "both")
    opened = open_encoder(tmp_path / "both")
    assert isinstance(opened, PairEmbedder)
    assert opened.embed(TEXTS[0]) == joined(bundled().embed(TEXTS[0]), bundled().embed(TEXTS[0]))
    assert isinstance(open_encoder(tmp_path / "both" / "first"), OnnxEmbedder)


def test_half_a_pair_is_told(tmp_path: Path) -> None:
    write_pair(WEIGHTS, WEIGHTS, tmp_path / "both")
    (tmp_path / "both" / "second" / "manifest.json").unlink()
    with pytest.raises(EncoderError, match=r"second.*cannot be read"):
        open_encoder(tmp_path / "both")


def test_caches_side_by_side_hold_what_the_pair_would_say() -> None:
    one, other = VectorCache(DummyEmbedder()), VectorCache(bundled())
    one.of(TEXTS)
    other.of(TEXTS[:2])
    both = one.beside(other)
    assert both.embedder.encoder_id == PairEmbedder(DummyEmbedder(), bundled()).encoder_id
    assert both.of(TEXTS) == {text: both.embedder.embed(text) for text in TEXTS}
