"""World: snapshots and classifiers of the past, made again out of the archive."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import orjson
from pydantic import ValidationError

from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.embed_pool import EmbedPool
from models.card import AgentCard
from models.errors import ModelError
from models.policy import Policy
from models.ports import VectorStore
from router.assemble import Generations, assemble, texts_of
from router.card_vectors import CardVectors
from router.generation_archive import CARD, CARDS, CLASSIFIER, NO_HEADS, POLICY, digest_of, unpacked
from router.replayed import DifferentError, NotReplayableError
from router.snapshot import Snapshot
from router.stores.generations import SqlGenerations

_MOST_SNAPSHOTS = 4
_MOST_HEADS = 2

K = TypeVar("K")
V = TypeVar("V")


class _Kept(NamedTuple):
    """Classifiers, and the digest of the bytes that they were read from."""

    cascade: Cascade
    packed: str


class World:
    """Makes what decisions were made by again, and keeps the last few.

    Each is checked against the digest that names it when it is made, and again after `look_again`.
    """

    def __init__(self, store: SqlGenerations, vectors: VectorStore, pool: EmbedPool) -> None:
        self._store = store
        self._vectors = vectors
        self._pool = pool
        self._snapshots: OrderedDict[tuple[str, str], Snapshot] = OrderedDict()
        self._cascades: OrderedDict[str, _Kept] = OrderedDict()
        self._without_heads = Cascade(Calibration())
        self._trusted: set[str] = set()
        self._turn = asyncio.Lock()

    @property
    def encoder_id(self) -> str:
        """Of the encoder at hand."""
        return self._pool.embedder.encoder_id

    def look_again(self) -> None:
        """Trust nothing that was checked before: the archive may have been altered since."""
        self._trusted.clear()

    async def snapshot(self, digests: Mapping[str, str]) -> Snapshot:
        """The snapshot of a policy and a set of cards.

        Raises:
            DifferentError: the archive holds something else than what the digests name.
            NotReplayableError: it does not hold all of it.
        """
        async with self._turn:
            name = (digests[POLICY], digests[CARDS])
            known = self._snapshots.get(name)
            if known is None or not self._trusted.issuperset(name):
                policy_text = await self._body(POLICY, digests[POLICY])
                bodies = await self._cards(digests[CARDS])
                self._trusted.update(name)
                if known is None:
                    known = await self._assembled(policy_text, bodies)
            if known.encoder_id == digests["encoder"] and known.digests["index"] != digests["index"]:
                raise DifferentError("index", "the vectors of the cards' texts are not those of the time")
            _keep(self._snapshots, name, known, _MOST_SNAPSHOTS)
            return known

    async def cascade(self, digest: str) -> Cascade:
        """The classifiers of a digest.

        Raises:
            DifferentError: the archive holds others.
            NotReplayableError: it does not hold them.
        """
        async with self._turn:
            if digest == NO_HEADS:
                return self._without_heads
            known = self._cascades.get(digest)
            if known is None or digest not in self._trusted:
                body = (await self._store.load(CLASSIFIER, [digest])).get(digest)
                if body is None:
                    raise NotReplayableError(f"the archive does not hold the classifiers {digest:.12} any more")
                packed = digest_of(body)
                if known is None or known.packed != packed:
                    known = _Kept(await self._unpacked(body, digest), packed)
                self._trusted.add(digest)
            _keep(self._cascades, digest, known, _MOST_HEADS)
            return known.cascade

    async def _unpacked(self, body: bytes, digest: str) -> Cascade:
        cascade = Cascade(Calibration())
        try:
            cascade.use(await asyncio.to_thread(unpacked, body, digest))
        except ModelError as error:
            raise DifferentError("classifier", f"{digest:.12} in the archive was altered: {error}") from None
        return cascade

    async def _assembled(self, policy_text: bytes, bodies: Sequence[bytes]) -> Snapshot:
        try:
            policy, cards = await asyncio.to_thread(_read, policy_text, bodies)
        except ValidationError as error:
            raise NotReplayableError(f"cards or policy of the time are not of this release: {error}") from None
        # a store of vectors of its own, as it forgets all texts but those it was asked for last
        vectors = CardVectors(self._pool, self._vectors)
        known = await vectors.of(texts_of(cards))
        snapshot = await asyncio.to_thread(
            assemble, cards, policy, known, vectors.encoder_id, vectors.dim, Generations(0, 0, 0)
        )
        snapshot.digests = {"index": await asyncio.to_thread(snapshot.index.digest)}
        return snapshot

    async def _body(self, kind: str, digest: str) -> bytes:
        body = (await self._store.load(kind, [digest])).get(digest)
        if body is None:
            raise NotReplayableError(f"the archive does not hold the {kind} {digest:.12} any more")
        if digest_of(body) != digest:
            raise DifferentError(kind, f"the {kind} {digest:.12} in the archive was altered")
        return body

    async def _cards(self, digest: str) -> list[bytes]:
        """The cards of a list, each as its text."""
        listed = json.loads(await self._body(CARDS, digest))
        if CARDS in listed:
            pages = [json.loads(await self._body(CARDS, page))[CARD] for page in listed[CARDS]]
            digests = [each for page in pages for each in page]
        else:
            digests = listed[CARD]
        found = await self._store.load(CARD, digests)
        return await asyncio.to_thread(_checked, digests, found)


def _checked(digests: Sequence[str], found: Mapping[str, bytes]) -> list[bytes]:
    for digest in digests:
        body = found.get(digest)
        if body is None:
            raise NotReplayableError(f"the archive does not hold the card {digest:.12} any more")
        if digest_of(body) != digest:
            raise DifferentError(CARDS, f"the card {digest:.12} in the archive was altered: {_named(body)}")
    return [found[digest] for digest in digests]


def _named(body: bytes) -> str:
    """What an altered card says it is."""
    try:
        card = orjson.loads(body)
        return f"{card.get('namespace', 'default')}/{card['agent_id']}/{card.get('version', '0.0.0')}"
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        return "it is no card any more"


def _read(policy: bytes, cards: Sequence[bytes]) -> tuple[Policy, list[AgentCard]]:
    return Policy.model_validate_json(policy), [AgentCard.model_validate_json(card) for card in cards]


def _keep(kept: OrderedDict[K, V], name: K, one: V, most: int) -> None:
    kept[name] = one
    kept.move_to_end(name)
    if len(kept) > most:
        kept.popitem(last=False)
