"""Kept: a bounded, even choice of rows of a log that may be of any length, and of one caller for the most part."""

from __future__ import annotations

import heapq
from collections import Counter
from hashlib import sha256

from router.retraining.rows import Row

MOST_OF_CALLER = 20
"""Rows of one caller and intent."""

MOST_OF_INTENT = 200
"""Rows of one intent."""

MOST = 100_000
"""Rows in all; callers and intents that come after that have none."""


class Kept:
    """Of each caller and intent at most `MOST_OF_CALLER` rows, each text once.

    Which ones is drawn by a digest of seed and text, so that neither the oldest nor the newest are preferred.
    """

    def __init__(self, seed: int) -> None:
        self.left_out: Counter[str] = Counter()
        self._salt = f"{seed}\n".encode()
        # of each caller and intent a heap, the greatest digest on top
        self._heaps: dict[tuple[str, str], list[tuple[int, str, Row]]] = {}
        self._texts: set[str] = set()

    def offer(self, row: Row) -> None:
        """Keep a row, or another one instead of it."""
        key = row.key
        if key in self._texts:
            self.left_out["repeated"] += 1
            return
        heap = self._heaps.get((row.caller, row.intent))
        if heap is None:
            if len(self._texts) >= MOST:
                self.left_out["over_cap"] += 1
                return
            heap = self._heaps[row.caller, row.intent] = []
        entry = (-self._drawn(key), key, row)
        self._texts.add(key)
        if len(heap) < MOST_OF_CALLER and len(self._texts) <= MOST:
            heapq.heappush(heap, entry)
            return
        _, gone, _ = heapq.heappushpop(heap, entry)
        self._texts.discard(gone)
        self.left_out["over_cap"] += 1

    @property
    def n_held(self) -> int:
        """How many are held, those of intents that have too many included."""
        return len(self._texts)

    def rows(self) -> list[Row]:
        """The rows, of no intent more than `MOST_OF_INTENT`; in the order drawn, which is that of no log."""
        of_intent: Counter[str] = Counter()
        found = []
        for _, _, row in sorted((each for heap in self._heaps.values() for each in heap), key=lambda e: (-e[0], e[1])):
            of_intent[row.intent] += 1
            if of_intent[row.intent] <= MOST_OF_INTENT:
                found.append(row)
        return found

    def _drawn(self, key: str) -> int:
        return int.from_bytes(sha256(self._salt + key.encode("utf-8", "replace")).digest()[:8], "big")
