"""The fixture: nine agents whose success on fourteen intents is known, 5,000 outcomes, and one agent that gets worse.

*Static* is the declared quality less cost, never learned from; *best fixed* the one agent that is best in hindsight;
*clairvoyant* the best agent of each intent. All figures are expected utilities of the choices (lambda 0.1), so the
luck of outcomes is not in them; all are of the same requests. The *share of the gap* is (learner - static) /
(clairvoyant - static) in the last 1,000 outcomes, of the means over the seeds. *Beats from* is the outcome from which
on the lead, over the seeds and the last 100 outcomes, is never below 0. *Recovered* is the first outcome after B
halved from which the learner's share of the optimum, over the seeds and the last 50 outcomes, is 95 % of what it was
in the 500 outcomes before. *Adopted again*: the share of B among the choices, over the seeds and the last 100
outcomes, is half of what it was in the 500 outcomes before it halved. A figure of all seeds together has the spread
of 200 bootstrap samples of the seeds (5 % and 95 %) in its note.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from benchmarks import learning_goals as goals
from benchmarks.learning_goals import Bar, add_barred
from benchmarks.learning_stream import (
    LAMBDA,
    Floats,
    Played,
    Stream,
    declared_of,
    for_good_from,
    learner_of,
    play,
    taken,
    trailing,
)
from benchmarks.report import Report
from models.learning_policy import LearningPolicy

PATH = Path(__file__).with_name("data") / "learning_fixture.yaml"
N_OUTCOMES = 5000
DRIFTS_AT, BACK_AT, DRIFT_OUTCOMES = 2500, 5000, 7500
DRIFTING = 1
"""Agent B."""

_LAST = 1000
_BEFORE = 500
_LEAD_WINDOW, _DRIFT_WINDOW, _SHARE_WINDOW = 100, 50, 100
_N_BOOTSTRAPS = 200
POLICY = LearningPolicy(mode="explore")


class Fixture(NamedTuple):
    """The table.

    Attributes:
        success: float64, shape (n_intents, n_agents).
        costs: float64, shape (n_agents,): relative to the dearest.
    """

    agents: tuple[str, ...]
    intents: tuple[str, ...]
    success: Floats
    costs: Floats

    @property
    def utilities(self) -> Floats:
        """Shape (n_intents, n_agents)."""
        return self.success - LAMBDA * self.costs


@lru_cache(maxsize=1)
def fixture() -> Fixture:
    """As the repository has it."""
    found = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    return Fixture(
        tuple(found["agents"]),
        tuple(found["success"]),
        np.array(list(found["success"].values()), dtype=np.float64),
        np.array(found["costs"], dtype=np.float64),
    )


def stream_of(table: Fixture, n: int, seed: int, halved: slice | None = None) -> Stream:
    """Uniform intents, Bernoulli outcomes.

    Args:
        halved: the steps in which agent B does half as well; None lets it alone.
    """
    draws = np.random.default_rng(seed)
    places = draws.integers(len(table.intents), size=n)
    expected = table.success[places]
    if halved is not None:
        expected[halved, DRIFTING] /= 2
    return Stream(
        table.agents,
        table.intents,
        [((table.intents[place], 1.0),) for place in places],
        (draws.random(expected.shape) < expected).astype(np.float64),
        expected,
        np.broadcast_to(table.costs, expected.shape),
        table.costs,
    )


class Run(NamedTuple):
    """One seed.

    Attributes:
        static: float64, shape (n,): expected utility of the choices by declared quality; so `fixed`, `best`, `mine`.
    """

    stream: Stream
    played: Played
    static: Floats
    fixed: Floats
    best: Floats
    mine: Floats


def run(table: Fixture, n: int, seed: int, halved: slice | None = None, policy: LearningPolicy = POLICY) -> Run:
    """The learner on a stream of its own, and the others on the same."""
    stream = stream_of(table, n, seed, halved)
    declared = declared_of(table.success.mean(axis=0), seed)
    played = play(stream, learner_of(stream, declared), policy, seed)
    utilities = stream.utilities()
    static = utilities[:, int((declared - LAMBDA * table.costs).argmax())]
    fixed = utilities[:, int(table.utilities.mean(axis=0).argmax())]
    return Run(stream, played, static, fixed, utilities.max(axis=1), taken(utilities, played.choices))


def fixture_row(report: Report, n_seeds: int) -> None:
    """Without drift."""
    table = fixture()
    report.section(f"fixture: {N_OUTCOMES:,} outcomes, {n_seeds} seeds, utility at lambda {LAMBDA:g}")
    runs = [run(table, N_OUTCOMES, seed) for seed in range(n_seeds)]
    report.add("control: random", float(table.utilities.mean()), "")
    report.add_spread("control: static, declared quality", [float(each.static[-_LAST:].mean()) for each in runs], "")
    report.add("control: best fixed agent", float(table.utilities.mean(axis=0).max()), "")
    report.add("control: clairvoyant", float(table.utilities.max(axis=1).mean()), "")
    report.add_spread("learner, last 1,000", [float(each.mine[-_LAST:].mean()) for each in runs], "")
    _of_all(report, "share of the gap static to clairvoyant closed", runs, _closed, "", goals.GAP_CLOSED)
    _of_all(report, "beats static from", runs, lambda some: _leads(some, "static"), "outcomes", goals.BEATS_STATIC)
    _of_all(
        report, "beats the best fixed from", runs, lambda some: _leads(some, "fixed"), "outcomes", goals.BEATS_FIXED
    )
    false = [len(each.played.alarms) * 10_000 / N_OUTCOMES for each in runs]
    add_barred(report, "false alarms per 10,000", false, "", goals.FALSE_ALARMS)


def drift_row(report: Report, n_seeds: int) -> None:
    """With an agent that halves, and recovers."""
    table, halved = fixture(), slice(DRIFTS_AT, BACK_AT)
    report.section(f"fixture: B halves at {DRIFTS_AT:,} and is itself again at {BACK_AT:,}, {n_seeds} seeds")
    worse = with_b_halved(table)
    report.add("control: clairvoyant while it is halved", float(worse.utilities.max(axis=1).mean()), "")
    frozen = worse.utilities[np.arange(len(table.intents)), table.utilities.argmax(axis=1)].mean()
    report.add("control: clairvoyant of before, frozen", float(frozen), "")
    runs = [run(table, DRIFT_OUTCOMES, seed, halved) for seed in range(n_seeds)]
    _of_all(report, "recovered after", runs, _recovered, "outcomes", goals.RECOVERY)
    caught = [min([at - DRIFTS_AT for at, who in each.played.alarms if who == DRIFTING and at >= DRIFTS_AT],
                  default=BACK_AT - DRIFTS_AT) for each in runs]  # fmt: skip
    report.add_spread("alarm after", caught, "outcomes")
    wrong = [sum(who != DRIFTING or at < DRIFTS_AT for at, who in each.played.alarms) for each in runs]
    report.add_spread("alarms of other agents, or before, per 10,000", [n * 1e4 / DRIFT_OUTCOMES for n in wrong], "")
    _of_all(report, "adopted again after", runs, _readopted, "outcomes", goals.READOPTION)
    off = POLICY.model_copy(update={"drift": POLICY.drift.model_copy(update={"enabled": False})})
    without = [run(table, DRIFT_OUTCOMES, seed, halved, off) for seed in range(n_seeds)]
    report.add("control: recovered without a detector after", _recovered(without), "outcomes")


def with_b_halved(table: Fixture) -> Fixture:
    """With agent B halved."""
    success = table.success.copy()
    success[:, DRIFTING] /= 2
    return table._replace(success=success)


def _closed(runs: list[Run]) -> float:
    mine, static, best = (
        np.mean([getattr(each, name)[-_LAST:].mean() for each in runs]) for name in ("mine", "static", "best")
    )
    return float((mine - static) / (best - static))


def _leads(runs: list[Run], over: str) -> float:
    lead = np.mean([each.mine - getattr(each, over) for each in runs], axis=0)
    return float(for_good_from(lead, _LEAD_WINDOW))


def _recovered(runs: list[Run]) -> float:
    mine, best = np.mean([each.mine for each in runs], axis=0), np.mean([each.best for each in runs], axis=0)
    before = slice(DRIFTS_AT - _BEFORE, DRIFTS_AT)
    wanted = 0.95 * mine[before].mean() / best[before].mean()
    after = slice(DRIFTS_AT, BACK_AT)
    share = trailing(mine[after], _DRIFT_WINDOW) / trailing(best[after], _DRIFT_WINDOW)
    return _first(share >= wanted, _DRIFT_WINDOW, BACK_AT - DRIFTS_AT)


def _readopted(runs: list[Run]) -> float:
    shares = np.mean([each.played.choices == DRIFTING for each in runs], axis=0)
    before = shares[DRIFTS_AT - _BEFORE : DRIFTS_AT].mean()
    again = trailing(shares[BACK_AT:], _SHARE_WINDOW) >= before / 2
    return _first(again, _SHARE_WINDOW, DRIFT_OUTCOMES - BACK_AT)


def _first(reached: NDArray[np.bool_], window: int, most: int) -> float:
    """Outcomes after which a trailing window first gets there; `most` where none does."""
    return float(np.argmax(reached) + window) if reached.any() else float(most)


def _of_all(
    report: Report, name: str, runs: list[Run], figure: Callable[[list[Run]], float], unit: str, bar: Bar
) -> None:
    """A figure of all seeds together, with the spread of bootstrap samples of them."""
    draws = np.random.default_rng(1)
    samples = [
        figure([runs[place] for place in draws.integers(len(runs), size=len(runs))]) for _ in range(_N_BOOTSTRAPS)
    ]
    low, high = np.percentile(samples, (5, 95)).tolist()
    add_barred(report, name, [figure(runs)], unit, bar, f"{low:,.3g} to {high:,.3g} in bootstrap samples of the seeds")
