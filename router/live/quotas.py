"""Quotas: sliding windows on calls and tokens, reserved when a decision is made and settled by its outcome.

Ours, since `limits` 5.8 (the well-kept library for it) has `hit`, `test`, `get_window_stats` and `clear` only: a hit
can be neither taken back nor corrected afterwards, and its moving window reads the clock itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from math import inf
from typing import NamedTuple

from router.live.quota_window import Slot, Window, fits_alone


class Claim(NamedTuple):
    """What a request asks of one rule.

    Attributes:
        key: whose window: the rule, and the caller or agent it tells apart. Claims with the same key and the same
            window_ms share a window.
        window_ms: its length, at least 1.
        max_calls: in any window; None means that calls are not limited.
        max_tokens: in any window; None means that tokens are not limited.
    """

    key: tuple[Hashable, ...]
    window_ms: int
    max_calls: int | None
    max_tokens: int | None


class Refused(NamedTuple):
    """Why nothing was reserved.

    Attributes:
        claim: of those that have no room, the one that will have it last.
        retry_after_ms: when all claims have room if nothing else comes; None where the request alone is too much.
    """

    claim: Claim
    retry_after_ms: float | None


class Usage(NamedTuple):
    """What a window holds now."""

    window_ms: int
    n_calls: int
    n_tokens: int


class _Reservation(NamedTuple):
    parts: list[tuple[Window, Slot]]
    n_tokens: int
    until_ms: float


class Quotas:
    """What is reserved and used of each quota.

    A call at t counts while now < t + window_ms. That is exact for windows of at most 10,000 calls
    (`quota_window.MAX_EXACT_CALLS`); larger ones, and those limited in tokens only, count a call for up to a thousandth
    of window_ms longer. So no window ever takes in more than the quota; only settling can lead beyond it.

    Bounds: a window has at most 10,000 slots, and is forgotten once it is empty. At `max_windows` of one length the one
    used longest ago is forgotten, and what it held no longer counts. At `max_open` reservations that are not settled,
    or `max_settled` that are, the oldest one is forgotten: it goes on to count as it is until it leaves its windows,
    and can be neither refunded, settled nor amended.

    >>> quotas, hourly = Quotas(), Claim(("caller", "shop"), 3_600_000, max_calls=2, max_tokens=None)
    >>> [quotas.reserve(name, [hourly], 0, now_ms=1000.0 * i) for i, name in enumerate("ab")]
    [None, None]
    >>> quotas.reserve("c", [hourly], 0, now_ms=2000.0).retry_after_ms
    3598000.0
    >>> quotas.refund("b"), quotas.refund("b"), quotas.reserve("c", [hourly], 0, now_ms=2000.0)
    (True, False, None)
    """

    def __init__(self, *, max_windows: int = 100_000, max_open: int = 1_000_000, max_settled: int = 100_000) -> None:
        self._max_windows = max_windows
        self._max_open = max_open
        self._max_settled = max_settled
        # of one length, the window used longest ago is the first to be empty
        self._windows: dict[int, OrderedDict[tuple[Hashable, ...], Window]] = {}
        self._open: OrderedDict[str, _Reservation] = OrderedDict()
        self._settled: OrderedDict[str, _Reservation] = OrderedDict()

    @property
    def n_open(self) -> int:
        """Reservations that are neither settled nor refunded; once all its windows are over one may be forgotten."""
        return len(self._open)

    @property
    def n_windows(self) -> int:
        """Windows that are kept."""
        return sum(map(len, self._windows.values()))

    def peek(self, claims: Sequence[Claim], n_tokens: int, now_ms: float) -> Refused | None:
        """What `reserve` would answer; nothing is reserved.

        Raises:
            ValueError: n_tokens is below 0.
        """
        _check(n_tokens)
        longest_ms, last = 0.0, None
        for claim in claims:
            windows = self._windows.get(claim.window_ms)
            window = None if windows is None else windows.get(claim.key)
            if window is not None:
                wait_ms = window.wait_ms(claim.max_calls, claim.max_tokens, n_tokens, now_ms)
            else:
                wait_ms = 0.0 if fits_alone(claim.max_calls, claim.max_tokens, n_tokens) else inf
            if wait_ms > longest_ms:
                longest_ms, last = wait_ms, claim
        return None if last is None else Refused(last, None if longest_ms == inf else longest_ms)

    def reserve(self, reservation_id: str, claims: Sequence[Claim], n_tokens: int, now_ms: float) -> Refused | None:
        """Count a call and its estimated tokens in the windows of all claims, or in none.

        Args:
            reservation_id: of a decision.
            claims: none make no reservation.
            n_tokens: estimate, at least 0. One of 0 passes until a window has more than `max_tokens`.
            now_ms: of the steady clock.

        Returns:
            None where it is reserved.

        Raises:
            ValueError: the reservation exists already, or n_tokens is below 0.
        """
        if reservation_id in self._open or reservation_id in self._settled:
            raise ValueError(f"reservation {reservation_id!r} exists already")
        refused = self.peek(claims, n_tokens, now_ms)
        if refused is not None or not claims:
            return refused
        parts: list[tuple[Window, Slot]] = []
        until_ms = now_ms
        for claim in claims:
            window = self._window(claim, now_ms)
            if all(window is not other for other, _ in parts):
                slot = window.add(claim.max_calls, n_tokens, now_ms)
                parts.append((window, slot))
                until_ms = max(until_ms, slot.until_ms)
        _put(self._open, self._max_open, reservation_id, _Reservation(parts, n_tokens, until_ms), now_ms)
        return None

    def settle(self, reservation_id: str, n_tokens: int, now_ms: float) -> bool:
        """Put the tokens that were used in place of the estimate; more than a quota make later requests wait.

        The call stays counted and can no more be refunded.

        Returns:
            False where there is no such reservation that is open.

        Raises:
            ValueError: n_tokens is below 0.
        """
        _check(n_tokens)
        reservation = self._open.pop(reservation_id, None)
        if reservation is None:
            return False
        _put(self._settled, self._max_settled, reservation_id, _corrected(reservation, n_tokens), now_ms)
        return True

    def amend(self, reservation_id: str, n_tokens: int, now_ms: float) -> bool:
        """Correct the tokens of a settled reservation.

        Returns:
            False where it is not settled, or no longer in any window.

        Raises:
            ValueError: n_tokens is below 0.
        """
        _check(n_tokens)
        reservation = self._settled.get(reservation_id)
        if reservation is None or reservation.until_ms <= now_ms:
            return False
        self._settled[reservation_id] = _corrected(reservation, n_tokens)
        return True

    def refund(self, reservation_id: str) -> bool:
        """Take an open reservation out of all windows, as if it had never been; False where it is not open."""
        reservation = self._open.pop(reservation_id, None)
        if reservation is None:
            return False
        for window, slot in reservation.parts:
            window.change(slot, -1, -reservation.n_tokens)
            self._forget_if_empty(window)
        return True

    def usage(self, key: tuple[Hashable, ...], now_ms: float) -> list[Usage]:
        """What the windows of a key hold, the shortest one first; windows that hold nothing are left out."""
        found = [windows[key] for _, windows in sorted(self._windows.items()) if key in windows]
        for window in found:
            window.slide(now_ms)
        return [Usage(window.window_ms, window.n_calls, window.n_tokens) for window in found if window.slots]

    def sweep(self, now_ms: float) -> None:
        """Forget the oldest that have left their windows, as `reserve` and `settle` do bit by bit: for quiet times.

        What it takes follows from how many there are to forget, not from how many there are.
        """
        for window_ms, windows in list(self._windows.items()):
            while windows and _is_over(next(iter(windows.values())), now_ms):
                windows.popitem(last=False)
            if not windows:
                del self._windows[window_ms]
        for reservations in (self._open, self._settled):
            while reservations and next(iter(reservations.values())).until_ms <= now_ms:
                reservations.popitem(last=False)

    def _window(self, claim: Claim, now_ms: float) -> Window:
        windows = self._windows.get(claim.window_ms)
        if windows is None:
            windows = self._windows[claim.window_ms] = OrderedDict()
        window = windows.get(claim.key)
        if window is not None:
            windows.move_to_end(claim.key)
        else:
            window = windows[claim.key] = Window(claim.key, claim.window_ms)
            if len(windows) > self._max_windows:
                windows.popitem(last=False)
        for _ in range(2):  # one more than can have been added
            oldest = next(iter(windows.values()))
            if oldest is window or not _is_over(oldest, now_ms):
                break
            windows.popitem(last=False)
        return window

    def _forget_if_empty(self, window: Window) -> None:
        windows = self._windows.get(window.window_ms)
        if not window.slots and windows is not None and windows.get(window.key) is window:
            del windows[window.key]
            if not windows:
                del self._windows[window.window_ms]


def _check(n_tokens: int) -> None:
    if n_tokens < 0:
        raise ValueError(f"n_tokens is {n_tokens}, a request uses 0 or more")


def _is_over(window: Window, now_ms: float) -> bool:
    window.slide(now_ms)
    return not window.slots


def _corrected(reservation: _Reservation, n_tokens: int) -> _Reservation:
    for window, slot in reservation.parts:
        window.change(slot, 0, n_tokens - reservation.n_tokens)
    return reservation._replace(n_tokens=n_tokens)


def _put(
    reservations: OrderedDict[str, _Reservation], most: int, reservation_id: str, new: _Reservation, now_ms: float
) -> None:
    """Add one at the end and drop at the other what is over, or too many; two at most, so that no call takes long."""
    reservations[reservation_id] = new
    for _ in range(2):
        oldest_id = next(iter(reservations), None)
        if oldest_id is None or (reservations[oldest_id].until_ms > now_ms and len(reservations) <= most):
            return
        del reservations[oldest_id]
