"""GenerationArchive: keeps what decisions are made by (cards, policy, classifiers), so that they can be made again.

All is stored under the digest of its content, before the first decision that names it: snapshots before they are
swapped in, classifiers before they are put in force. Classifiers that came into force in another way are stored beside
the decisions, which name none until that is done.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import zipfile
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from intent.cascade import Cascade
from intent.heads import Heads
from intent.model_folder import (
    ARRAYS_FILE,
    MANIFEST_FILE,
    VOCABULARY_FILE,
    Origin,
    load_heads,
    read_manifest,
    save_heads,
)
from models.card import AgentCard
from models.errors import ModelError, StoreError
from models.ports import Clock
from router.registry import Registry
from router.snapshot import Snapshot
from router.stores.generations import Generation, SqlGenerations

log = logging.getLogger(__name__)

CARD, CARDS, POLICY, CLASSIFIER = "card", "cards", "policy", "classifier"
NO_HEADS = "none"
"""The digest where everything is left to the index."""

PAGE = 64
"""Of larger sets of cards the list is kept in pages of about so many: a change writes one page anew."""

MAX_HEADS_BYTES = 256 * 1024 * 1024
"""Larger classifiers are not kept, and readings by them are taken as they were sealed."""

FRESH_MS = 3_600_000
"""How exactly it is known when something was last in use."""

_FILES = (MANIFEST_FILE, ARRAYS_FILE, VOCABULARY_FILE)
_MAX_HEADS = 64
_MAX_PAGES = 256

Name = tuple[str, str]
"""Kind and digest."""


class GenerationArchive:
    """Writes the archive.

    Args:
        store: where it is.
        clock: the time.
        encoder_id: of the encoder that semantic classifiers belong to.
        sleep: waits that many seconds; tests pass one that does not.
    """

    def __init__(
        self,
        store: SqlGenerations,
        clock: Clock,
        encoder_id: str,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._clock = clock
        self._encoder_id = encoder_id
        self._sleep = sleep
        self._used: dict[Name, float] = {}
        self._digests: dict[int, tuple[AgentCard, str]] = {}
        self._built: tuple[Snapshot, frozenset[Name]] | None = None
        self._in_force: frozenset[Name] = frozenset()
        self._classifiers: OrderedDict[str, bool] = OrderedDict()
        self._missed: dict[str, Heads] = {}

    async def keep_snapshot(self, snapshot: Snapshot, cards: Sequence[AgentCard]) -> None:
        """Store what a snapshot is made of, and give it the digests; durable on return.

        Args:
            snapshot: new.
            cards: those it was made of, without the operator's overrides.

        Raises:
            StoreError: the store does not take it.
        """
        now_ms = self._clock.now_ms()
        fresh = {name for name, at_ms in self._used.items() if now_ms - at_ms < FRESH_MS}
        self._digests = await asyncio.to_thread(_digests, cards, self._digests)
        listed = [(card, self._digests[id(card)][1]) for card in cards]
        digests, made, names = await asyncio.to_thread(_of_snapshot, snapshot, listed, fresh)
        await self._keep(made, now_ms)
        snapshot.digests = digests
        self._built = (snapshot, frozenset(names))

    def follow(self, snapshot: Snapshot) -> None:
        """A snapshot, the one that was built last, comes into force."""
        if self._built is not None and self._built[0] is snapshot:
            self._in_force = self._built[1]
            kept = self._in_force | {name for name in self._used if name[0] == CLASSIFIER}
            self._used = {name: at_ms for name, at_ms in self._used.items() if name in kept}

    async def keep_heads(self, heads: Heads | None) -> None:
        """Store classifiers; where that fails the log says so, and decisions do not name them."""
        if heads is None or not heads.digest or self._classifiers.get(heads.digest):
            return
        try:
            body = await asyncio.to_thread(packed, heads, self._encoder_id)
            if body is None:
                log.warning("classifiers %.12s are not kept: they cannot be written as they were", heads.digest)
            else:
                await self._keep([Generation(CLASSIFIER, heads.digest, body)], self._clock.now_ms())
            self._note(heads.digest, body is not None)
        except (StoreError, ModelError, OSError) as error:
            log.error("classifiers %.12s are not kept: %s", heads.digest, error)

    def classifier(self, heads: Heads | None) -> str | None:
        """The digest under which classifiers are kept; None where they are not, or not yet."""
        if heads is None:
            return NO_HEADS
        is_kept = self._classifiers.get(heads.digest)
        if is_kept is None and heads.digest:
            self._missed[heads.digest] = heads
        return heads.digest if is_kept else None

    async def run(self) -> None:
        """Store classifiers that were missed, and note what is still in use, until cancelled."""
        while True:
            await self._sleep(1.0)
            await self.catch_up()

    async def catch_up(self) -> None:
        """Do what there is to do now."""
        missed, self._missed = self._missed, {}
        for heads in missed.values():
            await self.keep_heads(heads)
        now_ms = self._clock.now_ms()
        classifiers = {(CLASSIFIER, digest) for digest, is_kept in self._classifiers.items() if is_kept}
        old = [name for name in self._in_force | classifiers if now_ms - self._used.get(name, 0.0) >= FRESH_MS]
        if old:
            await self._store.keep([], old, int(now_ms))
            self._used.update(dict.fromkeys(old, now_ms))

    async def _keep(self, made: Sequence[Generation], now_ms: float) -> None:
        await self._store.keep(made, [(one.kind, one.digest) for one in made], int(now_ms))
        self._used.update({(one.kind, one.digest): now_ms for one in made})

    def _note(self, digest: str, is_kept: bool) -> None:
        self._classifiers[digest] = is_kept
        if len(self._classifiers) > _MAX_HEADS:
            self._classifiers.popitem(last=False)


async def archive_of(
    store: SqlGenerations, clock: Clock, registry: Registry, cascade: Cascade, encoder_id: str
) -> GenerationArchive:
    """The archive of a service, which follows its cards and policy; the classifiers in force are stored."""
    archive = GenerationArchive(store, clock, encoder_id)
    registry.on_build = archive.keep_snapshot
    registry.on_swap.append(archive.follow)
    await archive.keep_heads(cascade.heads)
    return archive


def card_body(card: AgentCard) -> bytes:
    """A card as it is kept: the order of the properties of its schemas stays, as it says which gets which entity."""
    return card.model_dump_json(exclude_unset=True).encode()


def _digests(
    cards: Sequence[AgentCard], known: Mapping[int, tuple[AgentCard, str]]
) -> dict[int, tuple[AgentCard, str]]:
    """The digest of each card, by its identity; most cards are the same objects as before a change."""
    found = {}
    for card in cards:
        before = known.get(id(card))
        if before is None or before[0] is not card:
            before = (card, digest_of(card_body(card)))
        found[id(card)] = before
    return found


def _of_snapshot(
    snapshot: Snapshot, cards: Sequence[tuple[AgentCard, str]], fresh: set[Name]
) -> tuple[dict[str, str], list[Generation], list[Name]]:
    """Its digests, what of it is not fresh in the archive, and the names (kind, digest) of all of it."""
    policy = snapshot.policy.model_dump_json().encode()
    listed = lists_of([(card.key, digest) for card, digest in cards])
    whole = [*listed, Generation(POLICY, digest_of(policy), policy)]
    made = [one for one in whole if (one.kind, one.digest) not in fresh]
    names = [(one.kind, one.digest) for one in whole]
    for card, digest in cards:
        names.append((CARD, digest))
        if (CARD, digest) not in fresh:
            made.append(Generation(CARD, digest, card_body(card)))
    digests = {
        POLICY: whole[-1].digest,
        CARDS: listed[0].digest,
        "index": snapshot.index.digest(),
        "encoder": snapshot.encoder_id,
    }
    return digests, made, names


def digest_of(body: bytes) -> str:
    """SHA-256, in hex."""
    return sha256(body).hexdigest()


def lists_of(cards: Sequence[tuple[tuple[str, str, str], str]]) -> list[Generation]:
    """The list of a set of cards, which names their digests or pages that do; then those pages.

    Which page a card is on depends on its key alone, so that a change of one leaves the other pages as they are.

    Args:
        cards: (key, digest) of each, in any order.
    """
    n_pages = 1
    while n_pages < _MAX_PAGES and n_pages * 2 * PAGE <= len(cards):
        n_pages *= 2
    by_page: dict[int, list[str]] = defaultdict(list)
    for key, digest in cards:
        by_page[sha256("\n".join(key).encode()).digest()[0] % n_pages].append(digest)
    pages = [_list(CARD, sorted(by_page[number])) for number in range(n_pages)]
    return pages if n_pages == 1 else [_list(CARDS, [page.digest for page in pages]), *pages]


def _list(of: str, digests: Sequence[str]) -> Generation:
    body = json.dumps({of: digests}, separators=(",", ":")).encode()
    return Generation(CARDS, digest_of(body), body)


def packed(heads: Heads, encoder_id: str) -> bytes | None:
    """A model folder of the heads, in one piece; None where it is too large, or would not read as they do.

    Raises:
        ModelError: there is no place to write it to.
    """
    with TemporaryDirectory(prefix="agency-router-heads-") as scratch:
        folder = Path(scratch) / "model"
        origin = Origin(encoder_id=encoder_id if heads.semantic is not None else None)
        if save_heads(heads, folder, origin).digest != heads.digest:
            return None
        contents = [(name, (folder / name).read_bytes()) for name in _FILES]
    if sum(len(content) for _, content in contents) > MAX_HEADS_BYTES:
        return None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in contents:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def unpacked(body: bytes, digest: str) -> Heads:
    """The heads in a body of `packed`.

    Raises:
        ModelError: it does not hold those of the digest.
    """
    with TemporaryDirectory(prefix="agency-router-heads-") as scratch:
        folder = Path(scratch)
        try:
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                for name in _FILES:
                    if archive.getinfo(name).file_size > MAX_HEADS_BYTES:
                        raise ModelError(f"{name} is larger than {MAX_HEADS_BYTES} bytes")
                    (folder / name).write_bytes(archive.read(name))
        except (zipfile.BadZipFile, KeyError, OSError, ValueError, EOFError) as error:
            raise ModelError(f"it is no packed model folder ({error})") from error
        found = read_manifest(folder).digest
        if found != digest:
            raise ModelError(f"it holds the classifiers {found}")
        return load_heads(folder)
