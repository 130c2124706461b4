"""Replaying all that is on record, also what has no seal, and following the chain of seals, a page at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.events import DecisionRow
from router.replay import Replayer
from router.replayed import Replayed
from router.sealed_record import is_of_before_seals
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
class Unsealed:
    """What records without a seal there are.

    Attributes:
        n_before_seals: of a time before there were seals: nothing is known against them, and nothing for them.
        n_lost: those that ought to have one; each counts among those that differ.
        examples: ids of the first that are of before.
    """

    n_before_seals: int
    n_lost: int
    examples: Sequence[str]

    def told(self) -> dict[str, Any]:
        """As a JSON value."""
        return {"n_before_seals": self.n_before_seals, "n_lost": self.n_lost, "examples": list(self.examples)}


@dataclass(frozen=True, slots=True)
class LogReport:
    """What became of replaying all.

    Attributes:
        counts: decisions by verdict, without those of before there were seals.
        parts: of those that differ, by the first part.
        taken: how often something was taken as it was sealed.
        n_partial: decisions for more agents than are sealed.
        examples: the first that are not equal.
        unsealed: records without a seal, whatever the limit.
        chain: of all seals, also of those before the ones that were replayed.
    """

    counts: Mapping[str, int]
    parts: Mapping[str, int]
    taken: Mapping[str, int]
    n_partial: int
    examples: Sequence[Replayed]
    unsealed: Unsealed
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
            "unsealed": self.unsealed.told(),
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


class _Tally:
    """Counts as a replay goes on."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.parts: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.n_partial = 0
        self.examples: list[Replayed] = []

    def add(self, found: Replayed) -> None:
        self.counts[found.verdict] += 1
        self.taken.update(found.taken)
        self.n_partial += found.is_partial
        if found.part is not None:
            self.parts[found.part] += 1
        if found.verdict not in ("equal", "erased") and len(self.examples) < MOST_EXAMPLES:
            self.examples.append(found)


async def replay_log(seals: SqlSeals, replayer: Replayer, *, limit: int | None, progress: Progress) -> LogReport:
    """Replay the decisions on record in the order of their seals, and follow the chain over all of them.

    Args:
        seals: of them.
        replayer: makes them again.
        limit: only the newest so many; None replays all. Records without a seal are looked for all the same.
        progress: told after each page.

    Raises:
        StoreError: the store cannot be read.
    """
    chain = await follow_chain(seals, progress=lambda done, n: None)
    n_seals, last = await seals.count()
    after = 0 if limit is None else max(0, last - limit)
    total = n_seals if limit is None else min(limit, n_seals)
    tally = _Tally()
    # what has lost its seal is named before what differs, of which there may be many
    unsealed = await _unsealed(seals, replayer, tally)
    n_lost = tally.counts.total()
    before = await seals.chain_at(after)
    async for page in _pages(seals, after):
        for seal, row in page:
            tally.add(await replayer.replay_sealed(seal.decision_id, seal, before, row))
            before = seal.chain
        progress(tally.counts.total() - n_lost, total)
    return LogReport(tally.counts, tally.parts, tally.taken, tally.n_partial, tally.examples, unsealed, chain)


async def _unsealed(seals: SqlSeals, replayer: Replayer, tally: _Tally) -> Unsealed:
    """Look through the records without a seal; those that have lost it are replayed, which says so."""
    since, n_before, n_lost, after = await seals.first_at(), 0, 0, ""
    examples: list[str] = []
    while page := await seals.unsealed(after, PAGE):
        after = page[-1].decision_id
        for row in page:
            if is_of_before_seals(row, since):
                n_before += 1
                if len(examples) < MOST_EXAMPLES:
                    examples.append(row.decision_id)
            else:
                n_lost += 1
                tally.add(await replayer.replay_sealed(row.decision_id, None, GENESIS, row))
    return Unsealed(n_before, n_lost, examples)


async def _pages(seals: SqlSeals, after: int) -> AsyncIterator[Sequence[tuple[Seal, DecisionRow | None]]]:
    while page := await seals.page(after, PAGE):
        yield page
        after = page[-1][0].sequence
