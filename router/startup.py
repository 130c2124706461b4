"""Startup: the first cards, the first classifiers, a warm encoder; then the service is ready."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files

from intent.embed_pool import EmbedPool
from models.card import AgentCard
from models.policy import Policy
from router.card_files import read_card_files
from router.classifier import Classifier
from router.policy_file import read_policy
from router.readiness import Readiness
from router.registry import Registry

log = logging.getLogger(__name__)

_N_WARM_UP = 5
_WARM_UP_TEXT = "which agent should get this request"


@dataclass(frozen=True, slots=True)
class Start:
    """What has to be there before the first decision.

    Attributes:
        classifier: None where none is wanted.
        on_ready: called once decisions can be made.
    """

    registry: Registry
    classifier: Classifier | None
    pool: EmbedPool
    readiness: Readiness
    on_ready: Callable[[], None] | None

    async def run(self, cards: Sequence[AgentCard] | None, policy: Policy | None) -> None:
        """Load cards and policy, fit the first classifiers, and say that the service is ready.

        Args:
            cards: those from files; None takes the stored ones, or the example set where there are none.
            policy: that of a file; None takes the stored one.
        """
        registry = self.registry
        if cards is None and not await registry.has_stored_cards():
            example_cards, example_policy = await asyncio.to_thread(example)
            log.info("no cards were given or stored: the example set of %d agents is served", len(example_cards))
            await registry.start(example_cards, policy, shipped=example_policy)
        else:
            await registry.start(cards, policy)
        await self._first_classifiers()
        await self._warm_up()
        snapshot = registry.snapshot
        log.info(
            "ready: %d agents, %d capabilities, %d texts",
            len(snapshot.cards),
            len(snapshot.entries),
            snapshot.index.n_rows,
        )
        self.readiness.ready.set()
        if self.on_ready is not None:
            self.on_ready()

    async def _first_classifiers(self) -> None:
        """A service without classifiers still decides, by the nearest texts."""
        if self.classifier is not None:
            await self.classifier.try_to_catch_up(self.readiness)

    async def _warm_up(self) -> None:
        """The first texts are slow: let them be ours, and say what the encoder does on this machine."""
        took: list[float] = []
        for _ in range(_N_WARM_UP):
            start = time.perf_counter()
            await self.pool.embed(_WARM_UP_TEXT, wait_ms=60_000)
            took.append((time.perf_counter() - start) * 1000)
        log.info("encoder %s: %.2f ms for a short text", self.pool.embedder.encoder_id[:12], min(took))


def example() -> tuple[tuple[AgentCard, ...], Policy]:
    """The bundled example set: cards and their policy."""
    with as_file(files("router.example")) as folder:
        cards = read_card_files([folder / "cards.yaml", folder / "nested"])
        return cards.cards, read_policy(folder / "policy.yaml")
