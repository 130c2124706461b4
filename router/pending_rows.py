"""PendingRows: the rows that the store does not have yet, and what can be told from them meanwhile."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

from models.events import DecisionRow, EventRow, OutcomeRow, RepeatRow, Row, ShadowRow, SpanRow
from router.spans import events_of

R = TypeVar("R")


class PendingRows:
    """Rows in the order in which they were put; those at the head leave first. The journal bounds how many there are.

    Attributes:
        n_chars: how much text they hold.
        n_put: rows that ever came.
        n_dropped: rows that went.
    """

    def __init__(self) -> None:
        self.n_chars = self.n_put = self.n_dropped = 0
        self._rows: deque[Row] = deque()
        self._puts: deque[tuple[int, float]] = deque()
        self._decisions: dict[str, DecisionRow] = {}
        self._outcomes: dict[str, deque[OutcomeRow]] = {}
        self._repeats: dict[tuple[str, str], RepeatRow] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def oldest_ms(self) -> float | None:
        """The instant at which the oldest was put; None where there is none."""
        return self._puts[0][1] if self._puts else None

    def put(self, rows: Sequence[Row], now_ms: float) -> None:
        """Add rows behind the others, at some instant of a steady clock."""
        if not rows:
            return
        self._rows.extend(rows)
        self.n_put += len(rows)
        self._puts.append((self.n_put, now_ms))
        for row in rows:
            self.n_chars += _n_chars(row)
            # as in the store, the first of a key stays
            if isinstance(row, DecisionRow):
                self._decisions.setdefault(row.decision_id, row)
            elif isinstance(row, OutcomeRow):
                self._outcomes.setdefault(row.decision_id, deque()).append(row)
            elif isinstance(row, RepeatRow):
                self._repeats.setdefault((row.caller, row.idempotency_key), row)

    def head(self, n_rows: int) -> list[Row]:
        """At most `n_rows` of them, the oldest first; they stay. What was put together is not cut where that fits."""
        n_whole = 0
        for n_put, _ in self._puts:
            if n_put - self.n_dropped > n_rows:
                break
            n_whole = n_put - self.n_dropped
        return list(islice(self._rows, n_whole or n_rows))

    def drop(self, n_rows: int) -> None:
        """Let the oldest `n_rows` go."""
        for _ in range(n_rows):
            row = self._rows.popleft()
            self.n_chars -= _n_chars(row)
            if isinstance(row, DecisionRow):
                self._decisions.pop(row.decision_id, None)
            elif isinstance(row, OutcomeRow):
                self._drop_outcome(row.decision_id)
            elif isinstance(row, RepeatRow):
                self._repeats.pop((row.caller, row.idempotency_key), None)
        self.n_dropped += n_rows
        while self._puts and self._puts[0][0] <= self.n_dropped:
            self._puts.popleft()

    def _drop_outcome(self, decision_id: str) -> None:
        waiting = self._outcomes[decision_id]
        waiting.popleft()
        if not waiting:
            del self._outcomes[decision_id]

    def decision(self, decision_id: str) -> DecisionRow | None:
        """The decision, if it is among them."""
        return self._decisions.get(decision_id)

    def outcomes(self, decision_id: str) -> list[OutcomeRow]:
        """The outcomes of a decision, oldest first."""
        return list(self._outcomes.get(decision_id, ()))

    def repeat(self, caller: str, idempotency_key: str) -> RepeatRow | None:
        """What the caller's key stands for."""
        return self._repeats.get((caller, idempotency_key))

    def trace(self, trace_id: str, limit: int) -> list[EventRow]:
        """At most `limit` events of a trace, oldest first; looks at each row."""
        rows = (row.row if isinstance(row, SpanRow) else row for row in self._rows)
        of_trace = (row for row in rows if isinstance(row, EventRow) and row.trace_id == trace_id)
        return list(islice((event for row in of_trace for event in events_of(row)), limit))


def _n_chars(row: Row) -> int:
    if isinstance(row, SpanRow):
        return len(row.row.payload)
    if isinstance(row, EventRow):
        return len(row.payload)
    if isinstance(row, DecisionRow):
        return len(row.request) + len(row.answer) + len(row.inputs)
    return len(row.body) if isinstance(row, OutcomeRow | ShadowRow) else 0


def not_among(stored: Sequence[R], waiting: Sequence[R]) -> list[R]:
    """What of `waiting` is not in `stored`: some of it may have been stored before the store was asked."""
    both = Counter(waiting) & Counter(stored)
    left = []
    for row in waiting:
        if both[row] > 0:
            both[row] -= 1
        else:
            left.append(row)
    return left
