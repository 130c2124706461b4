"""Choices: logged decisions with all that could have been chosen, and what two policies make of them, as arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FLOOR = 0.02
"""eps: exploration gives each of K options at least eps / K; a choice with less was not really tried."""

N_FOLDS = 5


def effective_size(weights: Floats) -> float:
    """Effective sample size (Kish 1965) of weights, float64 (n): (sum w)^2 / sum w^2; 0 where all are 0.

    >>> effective_size(np.array([2.0, 0.0, 2.0])), effective_size(np.zeros(3))
    (2.0, 0.0)
    """
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


class Support(NamedTuple):
    """How much of what a policy would choose has been tried.

    Attributes:
        choices: share of its choices whose logged propensity was at least floor / K, 0..1.
        changes: the same of those choices only by which it departs from the logged policy; 1 where it never does.
        effective_changes: effective sample size (Kish 1965) of the logged choices that it would make more often; None
            where it makes none so.
    """

    choices: float
    changes: float
    effective_changes: float | None


class Row(NamedTuple):
    """One decision; sequences are in the order of its options.

    Attributes:
        intent: number of the intent; numbers are the caller's own, from 0.
        agents: numbers of the agents.
        logged: propensities of the policy that chose.
        target: those of the policy that is evaluated; all 0 where it would choose nobody.
        chosen: place of the one that was chosen.
    """

    decision_id: str
    intent: int
    agents: Sequence[int]
    logged: Sequence[float]
    target: Sequence[float]
    chosen: int


@dataclass(frozen=True, slots=True)
class Choices:
    """n decisions with m options in all, laid end to end.

    Attributes:
        starts: int64 (n + 1): the options of decision i are those from starts[i] to before starts[i + 1].
        intent: int64 (n): number of the intent, from 0.
        chosen: int64 (n): place, among all m, of the option that was chosen.
        fold: int64 (n): part of the cross-fit, by the decision's id.
        agent: int64 (m): number of the agent, from 0.
        logged: float64 (m): propensity under the policy that chose, 0..1.
        target: float64 (m): propensity under the policy that is evaluated, 0..1; all of a decision are 0 where it
            would choose nobody.
    """

    starts: Ints
    intent: Ints
    chosen: Ints
    fold: Ints
    agent: Ints
    logged: Floats
    target: Floats

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Choices:
        """The rows as arrays.

        Raises:
            ValueError: a row has no options, lengths that differ, or a choice that had no propensity.

        >>> Choices.of([Row("d", 0, (0, 1), (0.9, 0.1), (0.0, 1.0), 1)]).support()
        Support(choices=1.0, changes=1.0, effective_changes=1.0)
        """
        builder = ChoicesBuilder()
        for row in rows:
            builder.add(row)
        return builder.build()

    def __len__(self) -> int:
        return len(self.intent)

    @property
    def decision(self) -> Ints:
        """int64 (m): to which decision each option belongs."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def total(self, options: Floats) -> Floats:
        """Sums by decision, float64 (n), of a figure of each option, float64 (m)."""
        sums = np.bincount(self.decision, weights=options, minlength=len(self))
        return np.asarray(sums, dtype=np.float64)

    def support(self, floor: float = FLOOR) -> Support:
        """How much of the target's choices has been tried.

        Args:
            floor: eps, 0..1, of the exploration that counts as trying.
        """
        n_options = np.repeat(np.diff(self.starts), np.diff(self.starts))
        # propensities are recorded as floats: one of exactly eps / K must not fall below it by rounding
        tried = self.logged >= floor / n_options * (1 - 1e-9)
        moved = np.maximum(self.target - self.logged, 0.0)
        return Support(_share(self.target, tried), _share(moved, tried), self._effective(moved))

    def _effective(self, moved: Floats) -> float | None:
        if _is_nothing(moved):
            return None
        return effective_size(moved[self.chosen] / self.logged[self.chosen])

    def where(self, kept: NDArray[np.bool_]) -> Choices:
        """Only those decisions, bool (n)."""
        options = np.repeat(kept, np.diff(self.starts))
        lengths = np.diff(self.starts)
        starts = np.concatenate(([0], np.cumsum(lengths[kept])))
        return Choices(
            starts=starts,
            intent=self.intent[kept],
            chosen=starts[:-1] + (self.chosen - self.starts[:-1])[kept],
            fold=self.fold[kept],
            agent=self.agent[options],
            logged=self.logged[options],
            target=self.target[options],
        )


class ChoicesBuilder:
    """Gathers rows one by one, in little more memory than the arrays take."""

    def __init__(self) -> None:
        self._starts, self._intent, self._chosen, self._fold, self._agent = (array("q") for _ in range(5))
        self._logged, self._target = array("d"), array("d")
        self._starts.append(0)

    @property
    def n_options(self) -> int:
        """Options of all rows so far."""
        return len(self._agent)

    def add(self, row: Row) -> None:
        """Take a row. Raises ValueError where its lengths differ, or its choice had no propensity."""
        _check(row)
        self._intent.append(row.intent)
        self._chosen.append(len(self._agent) + row.chosen)
        self._fold.append(fold_of(row.decision_id))
        self._agent.extend(row.agents)
        self._logged.extend(row.logged)
        self._target.extend(row.target)
        self._starts.append(len(self._agent))

    def build(self) -> Choices:
        """The rows as arrays."""
        starts, intent, chosen, fold, agent = (
            np.array(each, dtype=np.int64)
            for each in (self._starts, self._intent, self._chosen, self._fold, self._agent)
        )
        logged, target = (np.array(each, dtype=np.float64) for each in (self._logged, self._target))
        return Choices(starts, intent, chosen, fold, agent, logged, target)


def fold_of(decision_id: str, n_folds: int = N_FOLDS) -> int:
    """The part of a cross-fit to which a decision belongs: by its id, so that it is the same in every run.

    >>> [fold_of(decision_id) for decision_id in ("a", "b", "c")]
    [2, 1, 0]
    """
    return crc32(decision_id.encode()) % n_folds


def _share(mass: Floats, tried: NDArray[np.bool_]) -> float:
    return 1.0 if _is_nothing(mass) else float(mass[tried].sum()) / float(mass.sum())


def _is_nothing(mass: Floats) -> bool:
    # rounding of recorded propensities is no change of policy
    return float(mass.sum()) <= 1e-9 * max(1, len(mass))


def _check(row: Row) -> None:
    n_options = len(row.agents)
    if not n_options or not n_options == len(row.logged) == len(row.target):
        raise ValueError(
            f"{row.decision_id}: {n_options} agents, {len(row.logged)} logged and {len(row.target)} target propensities"
        )
    if not 0 <= row.chosen < n_options or not row.logged[row.chosen] > 0:
        raise ValueError(f"{row.decision_id}: option {row.chosen} of {n_options} was chosen without a propensity")
