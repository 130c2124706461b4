"""Witnesses: whose failures count in what all callers share, so that no single one of them talks an agent down."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeAlias

from router.live.keys import CallId

FREE = 4
"""So many failures of a teller count in any case; fewer than eject an agent as shipped."""

_SUCCEEDED, _LEFT_OUT, _COUNTED = 0, 1, 2

# at_ms, teller, what became of it, number of the row of failures that it is in
_Call: TypeAlias = tuple[float, str, int, int]


class Tellers:
    """Who told what of one subject (an agent, say) within a sliding window.

    A failure counts while nobody else has told anything of the subject in the window. Else those of a teller count up
    to the larger of `share` times the outcomes of the others, and `FREE` more than the others have on average that
    count. Successes always count. So where one teller alone says that the subject fails, it moves the share of
    failures by about `share`; where all say so, nearly all is heard, and what is not is left out, as if it had never
    come. (The project's own rule.)

    Of a teller a quarter of `max_calls` is noted, and every failure that counts: a flood pushes nobody else out. At
    `max_calls` the oldest call goes.

    >>> tellers = Tellers()
    >>> alone = [tellers.counts("eve", ("d", n), True, 0.0, window_ms=1000, share=0.1) for n in range(3)]
    >>> tellers.counts("bob", ("e", 0), False, 1.0, window_ms=1000, share=0.1)
    True
    >>> alone, [tellers.counts("eve", ("f", n), True, 2.0, window_ms=1000, share=0.1) for n in range(3)]
    ([True, True, True], [True, False, False])
    """

    __slots__ = ("_calls", "_max_calls", "_n_counted", "_row", "_tallies", "_window_ms")

    def __init__(self, max_calls: int = 1000) -> None:
        if max_calls < FREE:
            raise ValueError(f"needs max_calls >= {FREE}, got {max_calls}")
        self._max_calls = max_calls
        self._window_ms = 0.0
        self._calls: OrderedDict[CallId, _Call] = OrderedDict()
        # of each teller: how many calls, and how many failures that count
        self._tallies: dict[str, list[int]] = {}
        self._n_counted = 0
        self._row = 0

    def counts(self, teller: str, call: CallId, failed: bool, now_ms: float, window_ms: float, share: float) -> bool:
        """Note an outcome; whether it counts in what all share.

        Args:
            teller: in whose name it came.
            call: the call; where it is in the window already it is replaced.
            failed: whether it failed.
            now_ms: of a clock that never goes back.
            window_ms: length of the window from now on.
            share: of the others' outcomes, 0..1.
        """
        self.take_back(call)
        self._window_ms = window_ms
        self.trim(now_ms)
        tally = self._tallies.get(teller)
        n_mine, n_my_failures = (0, 0) if tally is None else tally
        counted = not failed or self._hears(n_mine, n_my_failures, share)
        if n_mine < self._max_calls // 4 or (failed and counted):
            self._note(teller, call, failed, counted, now_ms)
        elif not failed:
            self._row += 1
        return counted

    def take_back(self, call: CallId) -> None:
        """An outcome counts no more: all counts become what they would be without it."""
        noted = self._calls.pop(call, None)
        if noted is not None:
            self._leave(noted)

    def trim(self, now_ms: float) -> bool:
        """Let go of what is too old; whether anything is left."""
        before_ms, calls = now_ms - self._window_ms, self._calls
        while calls and next(iter(calls.values()))[0] <= before_ms:
            self._leave(calls.popitem(last=False)[1])
        return bool(calls)

    def are_spread(self, n_failures: int) -> bool:
        """Whether the newest failures in a row are not the word of a few among those that told anything.

        They are if they are `n_failures` of which no teller has more than its even part, rounded up.
        """
        most = -(-n_failures // max(1, len(self._tallies)))
        n_of: dict[str, int] = {}
        n_spread = 0
        for _, teller, kind, row in reversed(self._calls.values()):
            if kind == _SUCCEEDED or row != self._row:
                break
            n_of[teller] = n_mine = n_of.get(teller, 0) + 1
            n_spread += n_mine <= most
            if n_spread >= n_failures:
                return True
        return False

    def begin_anew(self) -> None:
        """The failures so far have had their effect: none is held against its teller, nor is in a row with later ones.

        Who told anything stays known.
        """
        self._row += 1
        self._n_counted = 0
        for tally in self._tallies.values():
            tally[1] = 0
        for call, (at_ms, teller, kind, row) in self._calls.items():
            if kind == _COUNTED:
                self._calls[call] = (at_ms, teller, _LEFT_OUT, row)

    def _hears(self, n_mine: int, n_my_failures: int, share: float) -> bool:
        n_others = len(self._calls) - n_mine
        if n_others == 0:
            return True
        n_other_tellers = len(self._tallies) - (n_mine > 0)
        n_alike = (self._n_counted - n_my_failures) / n_other_tellers
        return n_my_failures + 1 <= max(share * n_others, FREE + n_alike)

    def _note(self, teller: str, call: CallId, failed: bool, counted: bool, now_ms: float) -> None:
        if len(self._calls) >= self._max_calls:
            self._leave(self._calls.popitem(last=False)[1])
        kind = (_COUNTED if counted else _LEFT_OUT) if failed else _SUCCEEDED
        self._calls[call] = (now_ms, teller, kind, self._row)
        tally = self._tallies.setdefault(teller, [0, 0])
        tally[0] += 1
        if kind == _COUNTED:
            tally[1] += 1
            self._n_counted += 1

    def _leave(self, noted: _Call) -> None:
        _, teller, kind, _ = noted
        tally = self._tallies[teller]
        tally[0] -= 1
        if kind == _COUNTED:
            tally[1] -= 1
            self._n_counted -= 1
        if tally[0] == 0:
            del self._tallies[teller]


class Witnesses:
    """`Tellers` by subject: by agent for health, by dependency for breakers that all callers share.

    At most `max_subjects` are kept, each with `max_calls` calls of some 250 bytes. Those without calls in their window
    are let go of as outcomes come in; at the bound goes the one whose last outcome is the oldest.
    """

    def __init__(self, max_subjects: int = 10_000, max_calls: int = 1000) -> None:
        if max_subjects < 1:
            raise ValueError(f"needs max_subjects >= 1, got {max_subjects}")
        self._max_subjects = max_subjects
        self._max_calls = max_calls
        self._tellers: OrderedDict[Hashable, Tellers] = OrderedDict()

    def __len__(self) -> int:
        """How many subjects are kept."""
        return len(self._tellers)

    def counts(
        self, subject: Hashable, teller: str, call: CallId, failed: bool, now_ms: float, window_ms: float, share: float
    ) -> bool:
        """Note an outcome of a subject (`Tellers.counts`); whether it counts in what all share."""
        tellers = self._tellers.get(subject)
        if tellers is None:
            if len(self._tellers) >= self._max_subjects:
                self._tellers.popitem(last=False)
            tellers = self._tellers[subject] = Tellers(self._max_calls)
        else:
            self._tellers.move_to_end(subject)
        counted = tellers.counts(teller, call, failed, now_ms, window_ms, share)
        # one for each outcome is enough: no more than one is made for each
        oldest, idle = next(iter(self._tellers.items()))
        if not idle.trim(now_ms):
            del self._tellers[oldest]
        return counted

    def take_back(self, subject: Hashable, call: CallId) -> None:
        """An outcome counts no more (`Tellers.take_back`)."""
        tellers = self._tellers.get(subject)
        if tellers is not None:
            tellers.take_back(call)
