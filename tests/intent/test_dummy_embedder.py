import os
import subprocess
import sys

import numpy as np
import pytest

from intent.dummy_embedder import DummyEmbedder
from models.ports import Embedder

DUMMY: Embedder = DummyEmbedder()


def values(text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.frombuffer(DUMMY.embed(text).vector, dtype="<f4")


@pytest.mark.parametrize("text", ["", "...", "a", "turn on the light", "帮我把灯打开", "x" * 100_000, "\ud800"])
def test_every_vector_has_unit_length(text: str) -> None:
    assert values(text).shape == (DUMMY.dim,) == (64,)
    assert abs(float(np.linalg.norm(values(text))) - 1.0) <= 1e-5


def test_texts_that_share_words_are_nearer_than_those_that_do_not() -> None:
    one = values("turn on the kitchen light")
    assert float(one @ values("turn the kitchen light on please")) > 0.7
    assert float(one @ values("turning on kitchen lights")) > 0.5
    assert abs(float(one @ values("refund my order"))) < 0.4


def test_case_and_punctuation_do_not_count() -> None:
    assert DUMMY.embed("Turn ON, the light!") == DUMMY.embed("turn on the light")


def test_other_scripts_are_unknown() -> None:
    assert DUMMY.embed("帮我把灯打开").unknown_share == 1.0
    assert DUMMY.embed("turn on the light").unknown_share == 0.0
    assert DUMMY.embed("灯 on").unknown_share == pytest.approx(1 / 3)
    assert DUMMY.embed("42").unknown_share == 0.0


def test_another_process_gives_the_same_vector() -> None:
    code = "from intent.dummy_embedder import DummyEmbedder as D; print(D().embed('turn on the light').vector.hex())"
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout
        assert printed.decode().strip() == DUMMY.embed("turn on the light").vector.hex()
