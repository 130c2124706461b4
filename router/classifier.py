"""Classifier: keeps the heads of intake fitted to the cards in force."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from intent.cascade import Cascade
from intent.fitter import FitError, fit_apart
from intent.heads import Heads
from intent.label_text import with_label_texts
from intent.language import are_mostly_others
from intent.model_folder import Origin, load_heads, read_manifest
from models.errors import ModelError
from router.assemble import capability_texts
from router.card_vectors import CardVectors
from router.readiness import Readiness
from router.registry import Registry
from router.snapshot import Snapshot

log = logging.getLogger(__name__)

FIT_VERSION = 4
"""Rises when the same examples would be fitted otherwise, so that kept heads are not taken for fresh ones."""


async def _nothing(_heads: Heads | None) -> None:
    pass


class Classifier:
    """Fits new heads in a process of their own whenever the cards change, and swaps them in.

    Until they are there, the old ones serve, and new capabilities are reached through the index.
    """

    def __init__(
        self,
        registry: Registry,
        vectors: CardVectors,
        cascade: Cascade,
        *,
        folder: Path | None,
        timeout_s: float,
        retry_s: float = 300.0,
        keep: Callable[[Heads | None], Awaitable[None]] = _nothing,
    ) -> None:
        """Wire it up.

        Args:
            registry: says when cards change.
            vectors: of the card texts.
            cascade: where the heads go.
            folder: keeps the newest heads for the next start; None keeps none.
            timeout_s: a fit that takes longer is given up.
            retry_s: a fit that failed is tried again after that, or at the next change.
            keep: awaited with new heads before they are put in force.
        """
        self._registry = registry
        self._vectors = vectors
        self._cascade = cascade
        self._folder = folder
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._keep = keep
        self._digest = ""
        self._is_behind = False

    async def run(self, readiness: Readiness) -> None:
        """Fit after each change of the cards; runs until cancelled."""
        self._registry.changed.set()  # an earlier run may have ended before it was through
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._retry_s if self._is_behind else None):
                    await self._registry.changed.wait()
            await self.try_to_catch_up(readiness)

    async def try_to_catch_up(self, readiness: Readiness) -> None:
        """Fit, or load, heads for the cards in force; a failure is shown until it was made good."""
        try:
            await self.catch_up()
        except FitError as error:
            log.error("%s; the old ones serve, and the nearest texts where there are none", error)
            self._is_behind = True
            readiness.report("classifier", str(error))
        else:
            self._is_behind = False
            readiness.clear("classifier")

    async def catch_up(self) -> None:
        """Fit, or load, heads for the cards in force.

        Raises:
            FitError: the fit failed; the old heads stay.
        """
        self._registry.changed.clear()
        examples, digest = await asyncio.to_thread(_wanted, self._registry.snapshot)
        if digest == self._digest:
            return
        if len({intent for _, intent in examples}) < 2:
            heads = None
        else:
            heads = await self._kept(digest) or await self._fitted(examples, digest)
        await self._keep(heads)
        self._cascade.use(heads)
        self._digest = digest

    async def _kept(self, digest: str) -> Heads | None:
        folder = self._folder
        if folder is None or not (folder / "manifest.json").exists():
            return None
        try:
            manifest = await asyncio.to_thread(read_manifest, folder)
            if manifest.data.get("examples") != digest:
                return None
            return await asyncio.to_thread(load_heads, folder, encoder_id=self._vectors.encoder_id)
        except ModelError as error:
            log.warning("kept classifiers are not used, they are fitted anew: %s", error)
            return None

    async def _fitted(self, examples: list[tuple[str, str]], digest: str) -> Heads:
        texts = [text for text, _ in examples]
        is_foreign = await asyncio.to_thread(are_mostly_others, texts, self._vectors.languages)
        vectors = {} if is_foreign else await self._vectors.of(texts)
        origin = Origin(encoder_id=self._vectors.encoder_id, n_examples=len(examples), data={"examples": digest})
        heads = await fit_apart(examples, vectors, origin=origin, timeout_s=self._timeout_s, keep=self._folder)
        log.info("classifiers fitted: %d intents, %d examples", len(heads.labels), len(examples))
        return heads


def examples_of(snapshot: Snapshot) -> list[tuple[str, str]]:
    """The distinct (normalized text, intent) of all routable capabilities, then those of the intents' names."""
    pairs = set()
    for entry in snapshot.entries:
        if entry.flaw is None:
            pairs |= {(text, entry.capability.intent) for text in capability_texts(entry.capability)}
    return with_label_texts(sorted(pairs))


def _wanted(snapshot: Snapshot) -> tuple[list[tuple[str, str]], str]:
    """The examples to fit on and their digest."""
    examples = examples_of(snapshot)
    return examples, sha256(json.dumps([FIT_VERSION, examples]).encode()).hexdigest()
