"""A store in memory that obeys the ports of the registry, and encoders that count or wait."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from models.card import AgentCard
from models.errors import StoreError
from models.ports import Embedded, Embedder, StoredCard
from router.card_vectors import CardVectors
from router.registry import CardKey, Registry
from tests.builders import FakeClock


class MemoryStore:
    """Cards, policies and vectors; every write of cards and policies is noted, and fails while `is_failing`."""

    def __init__(self) -> None:
        self.is_failing = False
        self.writes: list[str] = []
        self.cards: dict[CardKey, StoredCard] = {}
        self.policies: list[str] = []
        self.vectors: dict[tuple[str, str], Embedded] = {}

    async def load_cards(self) -> Sequence[StoredCard]:
        return list(self.cards.values())

    async def put_card(self, card: AgentCard) -> None:
        self._check("put_card")
        self.cards[card.key] = StoredCard(card, "api")

    async def delete_cards(self, keys: Sequence[CardKey]) -> None:
        self._check("delete_cards")
        for key in keys:
            self.cards.pop(key, None)

    async def replace_file_cards(self, cards: Sequence[AgentCard]) -> None:
        self._check("replace_file_cards")
        kept = {key: stored for key, stored in self.cards.items() if stored.source == "api"}
        self.cards = {**{card.key: StoredCard(card, "file") for card in cards}, **kept}

    async def load_policy(self) -> tuple[int, str] | None:
        return (len(self.policies), self.policies[-1]) if self.policies else None

    async def policy_of(self, generation: int) -> str | None:
        return self.policies[generation - 1] if 0 < generation <= len(self.policies) else None

    async def policy_before(self, generation: int) -> tuple[int, str] | None:
        earlier = min(generation - 1, len(self.policies))
        return (earlier, self.policies[earlier - 1]) if earlier > 0 else None

    async def save_policy(self, text: str, at_ms: int) -> int:
        self._check("save_policy")
        self.policies.append(text)
        return len(self.policies)

    async def load_vectors(self, encoder_id: str, digests: Sequence[str]) -> Mapping[str, Embedded]:
        return {digest: self.vectors[encoder_id, digest] for digest in digests if (encoder_id, digest) in self.vectors}

    async def save_vectors(self, encoder_id: str, vectors: Mapping[str, Embedded]) -> None:
        for digest, vector in vectors.items():
            self.vectors.setdefault((encoder_id, digest), vector)

    def _check(self, name: str) -> None:
        if self.is_failing:
            raise StoreError("the disk is full")
        self.writes.append(name)


class CountingEmbedder:
    """The dummy encoder under a name of its own, its values turned by `turn` places; keeps what it was asked."""

    def __init__(self, encoder_id: str = "counting", turn: int = 0) -> None:
        self.encoder_id = encoder_id
        self.dim = 64
        self.languages: frozenset[str] | None = None
        self.asked: list[str] = []
        self._turn = turn

    def embed(self, text: str) -> Embedded:
        self.asked.append(text)
        embedded = DummyEmbedder().embed(text)
        turned = np.roll(np.frombuffer(embedded.vector, dtype="<f4"), self._turn)
        return Embedded(turned.tobytes(), embedded.unknown_share)


class WaitingEmbedder:
    """The dummy encoder, which answers nothing until it is let go; also a context manager that lets it go."""

    encoder_id = "waiting"
    dim = 64
    languages = None

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()

    def __enter__(self) -> WaitingEmbedder:
        return self

    def __exit__(self, *_: object) -> None:
        self.may_end.set()

    def embed(self, text: str) -> Embedded:
        self.begun.release()
        assert self.may_end.wait(30)
        return DummyEmbedder().embed(text)


def registry_of(store: MemoryStore, pool: EmbedPool) -> Registry:
    """A registry that has not been started."""
    return Registry(CardVectors(pool, store), store, store, FakeClock())


def pool_of(embedder: Embedder | None = None, *, max_waiting: int = 1024) -> EmbedPool:
    """A small pool; None takes the dummy encoder."""
    return EmbedPool(DummyEmbedder() if embedder is None else embedder, n_threads=1, max_waiting=max_waiting)
