"""Replaying all that is on record, and following the chain of seals, a page at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.events import DecisionRow
from router.replay import Replayer
from router.replayed import Replayed
from router.seals import GENESIS, Break, Seal, first_break
from router.stores.seals import SqlSeals

PAGE = 500
MOST_EXAMPLES = 20

Progress = Callable[[int, int], object]
"""Called with how many are done, and of how many."""


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What became of following the chain.

    Attributes:
        n_seals: that hold, from the first one on.
        n_erased: those of them whose records were erased.
        head: the chain after the last one that holds: who notes it elsewhere can tell later that nothing before it
            was changed since.
        broken: the first one that does not hold; None where all do.
    """

    n_seals: int
    n_erased: int
    head: str
    broken: Break | None

    def told(self) -> dict[str, Any]:
        """As a JSON value."""
        broken = None if self.broken is None else self.broken._asdict()
        return {"n_seals": self.n_seals, "n_erased": self.n_erased, "head": self.head, "broken": broken}


@dataclass(frozen=True, slots=True)
class LogReport:
    """What became of replaying all.

    Attributes:
        counts: decisions by verdict.
        parts: of those that differ, by the first part.
        taken: how often something was taken as it was sealed.
        n_partial: decisions for more agents than are sealed.
        examples: the first that are not equal.
        chain: of all seals, also of those before the ones that were replayed.
    """

    counts: Mapping[str, int]
    parts: Mapping[str, int]
    taken: Mapping[str, int]
    n_partial: int
    examples: Sequence[Replayed]
    chain: ChainReport

    def told(self) -> dict[str, Any]:
        """As a JSON value."""
        return {
            "n": sum(self.counts.values()),
            "verdicts": dict(self.counts),
            "parts": dict(self.parts),
            "taken": dict(self.taken),
            "n_partial": self.n_partial,
            "examples": [each.told() for each in self.examples],
            "chain": self.chain.told(),
        }


async def follow_chain(seals: SqlSeals, *, progress: Progress) -> ChainReport:
    """Verify every seal from the first one on, until one does not hold.

    Raises:
        StoreError: the store cannot be read.
    """
    n_seals, n_ever = await seals.count()
    before, n_erased, n = (0, GENESIS), 0, 0
    async for page in _pages(seals, 0):
        before, broken = first_break(before, page)
        good = [seal for seal, _ in page if broken is None or seal.sequence < broken.sequence]
        n, n_erased = n + len(good), n_erased + sum(seal.erased_at is not None for seal in good)
        progress(n, n_seals)
        if broken is not None:
            return ChainReport(n, n_erased, before[1], broken)
    lost = None
    if before[0] < n_ever:
        lost = Break(before[0] + 1, "", f"the newest seals are missing, {before[0] + 1} to {n_ever}")
    return ChainReport(n, n_erased, before[1], lost)


async def replay_log(seals: SqlSeals, replayer: Replayer, *, limit: int | None, progress: Progress) -> LogReport:
    """Replay the decisions on record in the order of their seals, and follow the chain over all of them.

    Args:
        seals: of them.
        replayer: makes them again.
        limit: only the newest so many; None replays all.
        progress: told after each page.

    Raises:
        StoreError: the store cannot be read.
    """
    chain = await follow_chain(seals, progress=lambda done, n: None)
    n_seals, last = await seals.count()
    after = 0 if limit is None else max(0, last - limit)
    total = n_seals if limit is None else min(limit, n_seals)
    counts: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    examples: list[Replayed] = []
    n_partial = 0
    before = await seals.chain_at(after)
    async for page in _pages(seals, after):
        for seal, row in page:
            found = await replayer.replay_sealed(seal.decision_id, seal, before, row)
            before = seal.chain
            counts[found.verdict] += 1
            taken.update(found.taken)
            n_partial += found.is_partial
            if found.part is not None:
                parts[found.part] += 1
            if found.verdict not in ("equal", "erased") and len(examples) < MOST_EXAMPLES:
                examples.append(found)
        progress(counts.total(), total)
    return LogReport(counts, parts, taken, n_partial, examples, chain)


async def _pages(seals: SqlSeals, after: int) -> AsyncIterator[Sequence[tuple[Seal, DecisionRow | None]]]:
    while page := await seals.page(after, PAGE):
        yield page
        after = page[-1][0].sequence
