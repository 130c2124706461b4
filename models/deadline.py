"""Deadline: the instant by which the caller wants its answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant, in milliseconds since the epoch.

    Attributes:
        at_ms: the instant.
        reserve_ms: kept back for the way home (SPEC R5: 200 ms).
    """

    at_ms: float
    reserve_ms: float = 200.0

    @classmethod
    def earliest(
        cls,
        now_ms: float,
        *,
        budgets_ms: tuple[float | None, ...],
        instants_ms: tuple[float | None, ...],
        reserve_ms: float,
    ) -> Deadline:
        """The earliest of some budgets (durations from now) and instants; None entries are passed over.

        >>> Deadline.earliest(1000.0, budgets_ms=(500.0, None), instants_ms=(1400.0,), reserve_ms=200.0).at_ms
        1400.0
        """
        instants = [now_ms + budget for budget in budgets_ms if budget is not None]
        instants += [instant for instant in instants_ms if instant is not None]
        return cls(min(instants), reserve_ms)

    def remaining_ms(self, now_ms: float) -> float:
        """What an agent's call may take: deadline - now - reserve; negative when it is too late.

        >>> Deadline(2900.0).remaining_ms(1000.0)
        1700.0
        """
        return self.at_ms - now_ms - self.reserve_ms
