from __future__ import annotations

from pathlib import Path

import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.vector_cache import VectorCache, trusted
from models.errors import ModelError
from models.ports import Embedded


class Counting(DummyEmbedder):
    """Notes what it embeds."""

    def __init__(self, encoder_id: str = "dummy-64") -> None:
        self.asked: list[str] = []
        self._id = encoder_id

    @property
    def encoder_id(self) -> str:
        return self._id

    def embed(self, text: str) -> Embedded:
        self.asked.append(text)
        return super().embed(text)


def test_vectors_are_made_once_and_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "vectors.npz"
    first, second = Counting(), Counting()
    made = VectorCache(first, path).of(["one", "two", "one"])
    assert sorted(first.asked) == ["one", "two"]
    kept = VectorCache(second, path).of(["two", "three", "one"])
    assert second.asked == ["three"]
    assert {text: kept[text] for text in made} == made
    assert made["one"] == DummyEmbedder().embed("one")


def test_another_encoder_does_not_take_them(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npz"
    VectorCache(Counting(), path).of(["one"])
    other = Counting("dummy-65")
    VectorCache(other, path).of(["one"])
    assert other.asked == ["one"]


def test_without_a_path_they_are_kept_in_memory_only() -> None:
    embedder = Counting()
    cache = VectorCache(embedder)
    cache.of(["one"])
    cache.of(["one"])
    assert embedder.asked == ["one"]


def test_progress_is_told_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    VectorCache(Counting()).of([f"text {number}" for number in range(70)], lambda n_done, n: told.append((n_done, n)))
    assert told == [(64, 70), (70, 70)]


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npz"
    path.write_bytes(b"PK not really")
    with pytest.raises(ModelError, match="holds no vectors"):
        VectorCache(Counting(), path)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be kept"):
        VectorCache(Counting(), tmp_path / "file" / "vectors.npz").of(["one"])


def test_only_known_scripts_are_trusted() -> None:
    assert list(trusted(VectorCache(Counting()).of(["one", "一二三"]))) == ["one"]
