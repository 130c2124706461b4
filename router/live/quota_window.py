"""Quota window: the calls and tokens of the last so many milliseconds, each of which can still be corrected."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from math import inf

MAX_EXACT_CALLS = 10_000
"""Windows of at most so many calls keep the instant of each one; others keep sums of N_BUCKETS parts."""

N_BUCKETS = 1000


class Slot:
    """The calls that leave a window at one instant; at least one, else it is not in the window."""

    __slots__ = ("n_calls", "n_tokens", "until_ms")

    def __init__(self, until_ms: float) -> None:
        self.until_ms = until_ms
        self.n_calls = 0
        self.n_tokens = 0


class Window:
    """A sliding log: slots by the instant at which they leave, the next one first, and what they add up to.

    It has at most max(max_calls, N_BUCKETS + 2) slots, `max_calls` being at most `MAX_EXACT_CALLS` there.

    >>> window = Window(("caller", "shop"), 1000)
    >>> slot = window.add(max_calls=1, n_tokens=5, now_ms=0.0)
    >>> window.wait_ms(max_calls=1, max_tokens=None, n_tokens=5, now_ms=400.0)
    600.0
    >>> window.change(slot, -1, -5)
    >>> window.wait_ms(max_calls=1, max_tokens=None, n_tokens=5, now_ms=400.0)
    0.0
    """

    __slots__ = ("_next_ms", "key", "n_calls", "n_tokens", "slots", "window_ms")

    def __init__(self, key: tuple[Hashable, ...], window_ms: int) -> None:
        self.key = key
        self.window_ms = window_ms
        # in order and with entries taken out anywhere at no cost: a deque would have to keep refunded ones
        self.slots: OrderedDict[float, Slot] = OrderedDict()
        self.n_calls = 0
        self.n_tokens = 0
        # nothing leaves before; too early where the first slot was taken out, which costs one look
        self._next_ms = inf

    def slide(self, now_ms: float) -> None:
        """Drop what has left."""
        if now_ms < self._next_ms:
            return
        slots = self.slots
        self._next_ms = inf
        while slots:
            slot = next(iter(slots.values()))
            if slot.until_ms > now_ms:
                self._next_ms = slot.until_ms
                return
            del slots[slot.until_ms]
            self.n_calls -= slot.n_calls
            self.n_tokens -= slot.n_tokens

    def wait_ms(self, max_calls: int | None, max_tokens: int | None, n_tokens: int, now_ms: float) -> float:
        """How long until one more call has room: 0 where it has, infinity where no waiting helps.

        Where there is none it looks at the slots that have to leave first: one for calls, more for many tokens (0.2 us
        each, so 2 ms at the worst, where a request alone needs the tokens of 10,000 others).
        """
        self.slide(now_ms)
        calls_over = -1 if max_calls is None else self.n_calls + 1 - max_calls
        tokens_over = -1 if max_tokens is None else self.n_tokens + n_tokens - max_tokens
        if calls_over <= 0 and tokens_over <= 0:
            return 0.0
        if fits_alone(max_calls, max_tokens, n_tokens):
            for slot in self.slots.values():
                calls_over -= slot.n_calls
                tokens_over -= slot.n_tokens
                if calls_over <= 0 and tokens_over <= 0:
                    return slot.until_ms - now_ms
        return inf

    def add(self, max_calls: int | None, n_tokens: int, now_ms: float) -> Slot:
        """Count a call; `max_calls` says whether its instant is kept or its part of the window."""
        until_ms = now_ms + self.window_ms
        if max_calls is None or max_calls > MAX_EXACT_CALLS:
            part_ms = self.window_ms / N_BUCKETS
            until_ms = max(until_ms, (now_ms // part_ms + 1) * part_ms + self.window_ms)
        if self.slots:  # they stay in order, also where a rule turns from parts to instants
            until_ms = max(until_ms, next(reversed(self.slots)))
        slot = self.slots.get(until_ms)
        if slot is None:
            slot = self.slots[until_ms] = Slot(until_ms)
            if len(self.slots) == 1:
                self._next_ms = until_ms
        self.change(slot, 1, n_tokens)
        return slot

    def change(self, slot: Slot, n_calls: int, n_tokens: int) -> None:
        """Add to a slot, unless it has left."""
        if self.slots.get(slot.until_ms) is not slot:
            return
        slot.n_calls += n_calls
        slot.n_tokens += n_tokens
        self.n_calls += n_calls
        self.n_tokens += n_tokens
        if not slot.n_calls:
            del self.slots[slot.until_ms]


def fits_alone(max_calls: int | None, max_tokens: int | None, n_tokens: int) -> bool:
    """Whether a call has room in an empty window."""
    return max_calls != 0 and (max_tokens is None or n_tokens <= max_tokens)
