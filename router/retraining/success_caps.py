"""Caps on callers: how much of what one caller told of an agent counts for the head that all share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from router.retraining.success_rows import SuccessRow

CALLER_SHARE = 0.1
"""One caller's outcomes weigh at most this share of all that weighs for an agent, or as much as those of the caller who
told most beside it: what nobody else has seen moves nobody else."""


def counts_of(rows: Sequence[SuccessRow], n_callers: int) -> list[float]:
    """For how much of an outcome each row counts, 0..1; 0 where nobody else has told anything of the agent.

    Only the caller whose rows on an agent weigh most can be above its cap, as all others weigh no more than it. Where
    the log knows one caller alone, there is nobody whom it could mislead, and all count in full.

    Args:
        rows: of all agents.
        n_callers: that the log knows.

    >>> def row(caller: str) -> SuccessRow:
    ...     return SuccessRow("default/shop/1.0.0", "a wish", (("buy", 1.0),), 1.0, 1.0, caller)
    >>> rows = [row("ann")] * 400 + [row(f"c{n}") for n in range(900)]
    >>> counts = counts_of(rows, n_callers=901)
    >>> round(sum(counts[:400]), 6), sum(counts[400:])
    (100.0, 900.0)
    >>> sum(counts_of([row("ann")] * 400, n_callers=1))
    400.0
    """
    if n_callers < 2:
        return [1.0] * len(rows)
    weights: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        weights[row.agent][row.caller] += row.inverse
    factors = {agent: _factor(list(of_caller.values())) for agent, of_caller in weights.items()}
    largest = {agent: max(of_caller, key=of_caller.__getitem__) for agent, of_caller in weights.items()}
    return [factors[row.agent] if row.caller == largest[row.agent] else 1.0 for row in rows]


def _factor(weights: Sequence[float]) -> float:
    """Of the caller that weighs most."""
    most, *others = sorted(weights, reverse=True)
    allowed = max(others[0] if others else 0.0, CALLER_SHARE / (1 - CALLER_SHARE) * sum(others))
    return min(1.0, allowed / most)
