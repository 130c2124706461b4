from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from feedback.fit_success import Evidence, fit_success
from feedback.success_features import Floats, features_of
from feedback.success_heads import SuccessHeads, trust
from feedback.success_slates import Slates
from models.card import AgentKey

DIM, N = 8, 800
TEXTS = ["Where is my parcel?", "Prove that f(x) = 2^y, if x + 2 = 7 and y isn't 3.", "如果丢了怎么办？"]
NAMES = ("default/a/1.0.0", "default/b/1.0.0", "shop/eu/c/2.1.0")
KEYS: tuple[AgentKey, ...] = (("shop/eu", "c", "2.1.0"), ("default", "new", "1.0.0"), ("default", "a", "1.0.0"))


def vectors_near(n: int, seed: int) -> Floats:
    """Unit vectors about one direction."""
    around = np.random.default_rng(seed).normal(0, 0.3, size=(n, DIM)) + np.eye(DIM)[0]
    found: Floats = (around / np.linalg.norm(around, axis=1, keepdims=True)).astype(np.float32)
    return found


@pytest.fixture(scope="module")
def heads() -> SuccessHeads:
    draw, vectors = np.random.default_rng(1), vectors_near(N, 2)
    kind = draw.integers(len(TEXTS), size=N)
    evidence = {
        name: Evidence(np.arange(N), (draw.random(N) < 0.2 + 0.3 * (kind == place) + 0.5 * vectors[:, place + 1]) * 1.0)
        for place, name in enumerate(NAMES)
    }
    features = features_of(TEXTS)[kind]
    fitted = fit_success(features, vectors, evidence, encoder_id="dummy", seed=3, strengths=(0.1,))
    return replace(fitted, n_outcomes=np.array([800, 1000, 3000]))


def test_slates_foretell_what_the_heads_predict_near_and_far(heads: SuccessHeads) -> None:
    slates = Slates(heads)
    n_known = 0
    for place, vector in enumerate([*vectors_near(60, 5), *-vectors_near(60, 6)]):
        text = TEXTS[place % len(TEXTS)]
        expected = heads.predict(text, vector.tobytes())
        a, new, c = (slates.foretell((key,), text, vector.tobytes()) for key in reversed(KEYS))
        assert new == ()
        assert a[0] is not None
        assert c[0] is not None
        found = [a[0].predicted, c[0].predicted]
        assert found == pytest.approx([expected.probabilities[0], expected.probabilities[2]], abs=1e-5)
        n_known += expected.is_known
    assert 50 < n_known < 70


def test_agents_stand_in_the_order_that_was_asked_for_and_those_without_a_head_say_nothing(heads: SuccessHeads) -> None:
    slates, vector = Slates(heads), vectors_near(1, 9)[0].tobytes()
    c, new, a = slates.foretell(KEYS, TEXTS[0], vector)
    assert new is None
    assert a is not None
    assert c is not None
    assert (a.trust, c.trust) == (trust(800), 0.75)
    assert (a, None, c) == tuple(slates.foretell(tuple(reversed(KEYS)), TEXTS[0], vector))
    assert slates.foretell(KEYS[1:2], TEXTS[0], vector) == ()


def test_slates_trust_heads_as_far_as_their_exam_did(heads: SuccessHeads) -> None:
    found = Slates(replace(heads, half_trust=200)).foretell(KEYS[2:], TEXTS[0], vectors_near(1, 9)[0].tobytes())
    assert [each.trust for each in found if each is not None] == [0.8]


def test_slates_that_are_held_ready_are_bounded(heads: SuccessHeads) -> None:
    slates, vector = Slates(heads), vectors_near(1, 9)[0].tobytes()
    slates._n_values = (1 << 23) - 1
    slates._slates = {KEYS[:1]: slates._slate(KEYS[:1])}
    before = slates.foretell(KEYS, TEXTS[0], vector)
    assert len(slates._slates) <= 2
    assert slates.foretell(KEYS, TEXTS[0], vector) == before
    assert slates._n_values < 1 << 14


@pytest.mark.parametrize(
    ("vector", "told"),
    [
        (b"12345678", "8 bytes, expected 32"),
        (np.full(DIM, np.inf, dtype="<f4").tobytes(), "not all finite"),
        (np.full(DIM, np.nan, dtype="<f4").tobytes(), "not all finite"),
    ],
)
def test_a_vector_that_is_none_is_refused(heads: SuccessHeads, vector: bytes, told: str) -> None:
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=told):
        Slates(heads).foretell(KEYS, TEXTS[0], vector)


def test_weights_beyond_all_numbers_are_refused(heads: SuccessHeads) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        slates = Slates(replace(heads, full=np.full_like(heads.full, 3e38)))
        with pytest.raises(ValueError, match="nothing that is a number"):
            slates.foretell(KEYS, TEXTS[0], heads.landmarks[0].tobytes())
