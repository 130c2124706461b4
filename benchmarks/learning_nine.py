"""LLMRouter's nine models, by soft intents that the product's intake reads.

Every prompt is read by heads that were trained on the task labels of other prompts (five folds; the official test part
by heads of the train part). A call costs the prompt's characters / 4 at the model's list price; answers' lengths are
not known. *Strongest*, or *best single*, is the model with the best mean quality on the rows that are measured on.

Offline: the product's learner takes the outcomes of all nine models on the other folds, with the readings as intents,
and ranks by posterior mean - lambda * cost share; lambda runs from 0 to 3 and gives a curve of cost and quality, which
is straight between neighbours (two policies in turn). The spread is of 200 bootstrap samples of the requests (5 % and
95 %).

Online: the rows in random order, one outcome a row, mode `explore`, lambda 0.1. *Clairvoyant* knows the best model of
each task by its label, *static* goes by declared quality (mean and an error of N(0, 0.1)), *headroom* is clairvoyant
less best fixed. Rewards are mean quality less 0.1 * cost share. RouterBench's tables and four tasks of this one may not
be redistributed and are left out here: rewards are higher and headroom is smaller than on the table that the targets
were made on, where the best fixed model had .532.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import learning_goals as goals
from benchmarks.learning_data import LearningData, OutcomeTable
from benchmarks.learning_goals import add_barred
from benchmarks.learning_readings import N_FOLDS, Ints, read_after, read_by_others, share_read_right
from benchmarks.learning_routellm import ece_of, predicted
from benchmarks.learning_stream import (
    LAMBDA,
    Floats,
    Intents,
    Played,
    Stream,
    declared_of,
    keys_of,
    learner_of,
    play,
    taken,
)
from benchmarks.report import Goal, Report
from feedback.learner import Learner
from feedback.lessons import Lesson
from feedback.success_heads import trust
from models.learning_policy import DriftPolicy, LearningPolicy

WEIGHTS = (0.0, *np.geomspace(0.005, 3, 60).tolist())
"""Of cost: lambda."""
_OFFLINE = LearningPolicy(drift=DriftPolicy(enabled=False))
_N_BOOTSTRAPS = 200


def stream_of(table: OutcomeTable, readings: list[Intents], order: Ints) -> Stream:
    """The rows in this order."""
    shares = table.costs.mean(axis=0)
    names = tuple(sorted({intent for reading in readings for intent, _ in reading}))
    rewards = table.rewards[order]
    return Stream(
        table.agents,
        names,
        [readings[place] for place in order],
        rewards,
        rewards,
        table.costs[order],
        shares / shares.max(),
    )


class Curve(NamedTuple):
    """Cost and quality by the weight of cost, of each request.

    Attributes:
        costs: float64, shape (n_weights, n): of the choices.
        rewards: float64, shape (n_weights, n).
    """

    costs: Floats
    rewards: Floats


def curve_of(table: OutcomeTable, qualities: Floats) -> Curve:
    """Of choices by predicted quality, shape (n, n_agents), less cost."""
    shares = table.costs.mean(axis=0) / table.costs.mean(axis=0).max()
    choices = [(qualities - weight * shares).argmax(axis=1) for weight in WEIGHTS]
    return Curve(
        np.array([taken(table.costs, each) for each in choices]),
        np.array([taken(table.rewards, each) for each in choices]),
    )


def least_cost(costs: Floats, rewards: Floats, wanted: float) -> float:
    """The least cost at which a curve gets to a reward, straight between neighbours; infinite where it never does.

    >>> least_cost(np.array([4.0, 2.0, 1.0]), np.array([1.0, 0.5, 0.25]), 0.75)
    3.0
    """
    found = [float(cost) for cost, reward in zip(costs, rewards, strict=True) if reward >= wanted]
    for place in range(len(costs) - 1):
        low, high = sorted((place, place + 1), key=lambda each: rewards[each])
        if rewards[low] < wanted <= rewards[high]:
            part = (wanted - rewards[low]) / (rewards[high] - rewards[low])
            found.append(float(costs[low] + part * (costs[high] - costs[low])))
    return min(found, default=float("inf"))


def offline_row(report: Report, data: LearningData, cache: Path) -> None:
    """The table, soft intents."""
    table = data.nine("all")
    readings, folds = read_by_others(data.vectors, table, cache)
    report.section(f"nine models, offline, {len(table):,} rows, {N_FOLDS} folds")
    report.add("tasks read right", share_read_right(readings, table.groups), "%")
    qualities = posteriors(table, readings, folds)
    frontier(report, table, curve_of(table, qualities), judged=True)
    report.say("  with the success heads beside the posterior, w = n / (n + 1000)")
    blended, alone = qualities.copy(), qualities.copy()
    for fold in range(N_FOLDS):
        fitted, asked = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        weight = trust(len(fitted))
        alone[asked] = predicted(table, fitted, asked, fold)
        blended[asked] = weight * alone[asked] + (1 - weight) * qualities[asked]
    frontier(report, table, curve_of(table, blended), judged=False)
    add_barred(report, "ECE of P(success), heads alone", [ece_of(alone, table.rewards)], "", goals.SUCCESS_ECE)
    train, test = data.nine("train"), data.nine("test")
    report.say(f"  the official test part, {len(test)} rows, readings and outcomes of the train part")
    of_test = read_after(data.vectors, train, np.arange(len(train)), test.prompts)
    learner = taught(train, readings[: len(train)], np.arange(len(train)))
    frontier(report, test, curve_of(test, means_of(learner, test.agents, of_test)), judged=False)


def posteriors(table: OutcomeTable, readings: list[Intents], folds: Ints) -> Floats:
    """Posterior means, shape (n, n_agents), each fold's after the outcomes of the others."""
    found = np.empty_like(table.rewards)
    for fold in np.unique(folds):
        learner = taught(table, readings, np.flatnonzero(folds != fold))
        asked = np.flatnonzero(folds == fold)
        found[asked] = means_of(learner, table.agents, [readings[place] for place in asked])
    return found


def taught(table: OutcomeTable, readings: list[Intents], rows: Ints) -> Learner:
    """A learner that was told what every agent made of these rows; half is declared of all."""
    stream = stream_of(table, readings, rows)
    learner = learner_of(stream, np.full(len(table.agents), 0.5))
    for key, rewards in zip(keys_of(table.agents), stream.rewards.T, strict=True):
        for intents, reward in zip(stream.intents, rewards.tolist(), strict=True):
            learner.learn_one(Lesson(key, intents, reward, "caller", None, None, 0), _OFFLINE)
    return learner


def means_of(learner: Learner, agents: tuple[str, ...], readings: list[Intents]) -> Floats:
    """Merit by posterior means, shape (n, n_agents)."""
    keys = keys_of(agents)
    found = []
    for intents in readings:
        alpha, beta = (np.array(each) for each in learner.posterior(keys, intents, _OFFLINE))
        found.append(intents[0][1] * alpha / (alpha + beta))
    return np.array(found)


def frontier(report: Report, table: OutcomeTable, curve: Curve, *, judged: bool) -> None:
    """Cost to equal the best single model, gain over it, cost of 95 % of it."""
    draws = np.random.default_rng(1)
    n = len(table)
    samples = [_figures(table, curve, draws.integers(n, size=n)) for _ in range(_N_BOOTSTRAPS)]
    told = _figures(table, curve, np.arange(n))
    named = (
        ("cost to equal the best single", "%", goals.COST_TO_EQUAL),
        ("gain over the best single", "points", goals.GAIN_POINTS),
        ("cost of 95 % of it", "%", goals.COST_OF_95),
    )
    for place, (name, unit, bar) in enumerate(named):
        low, high = np.percentile([each[place] for each in samples], (5, 95)).tolist()
        scale = 100 if unit == "%" else 1
        note = f"{scale * low:.1f} to {scale * high:.1f} in bootstrap samples of the requests"
        if judged:
            add_barred(report, name, [told[place]], unit, bar, note)
        else:
            report.add(f"  {name}", told[place], unit, note=note)
    if judged:
        saved = 1 - told[0]
        best_of_task = sum(
            table.rewards[np.array(table.groups) == each].mean(axis=0).max() * table.groups.count(each)
            for each in set(table.groups)
        )
        most = 100 * float(best_of_task / len(table) - table.rewards.mean(axis=0).max())
        report.add("  the most that the best model of each task would gain", most, "points")
        report.add("cost saved at no loss, against always the strongest", saved, "%", goals.COST_SAVED)


def _figures(table: OutcomeTable, curve: Curve, rows: Ints) -> tuple[float, float, float]:
    means = table.rewards[rows].mean(axis=0)
    best = int(means.argmax())
    costs = curve.costs[:, rows].mean(axis=1) / table.costs[rows, best].mean()
    rewards = curve.rewards[:, rows].mean(axis=1)
    gain = 100 * float(rewards.max() - means[best])
    return least_cost(costs, rewards, means[best]), gain, least_cost(costs, rewards, 0.95 * means[best])


def online_row(report: Report, data: LearningData, cache: Path, n_seeds: int) -> None:
    """One outcome a row."""
    table = data.nine("all")
    readings, _ = read_by_others(data.vectors, table, cache)
    report.section(f"nine models, online, {len(table):,} outcomes, {n_seeds} orders, lambda {LAMBDA:g}")
    runs = [_online(table, readings, seed) for seed in range(n_seeds)]
    utilities = runs[0].stream.utilities()
    fixed, clairvoyant = float(utilities.mean(axis=0).max()), _clairvoyant(table)
    report.add("control: random", float(utilities.mean()), "")
    report.add_spread("control: static, declared quality", [each.static for each in runs], "")
    report.add("control: best fixed in hindsight", fixed, "")
    report.add("control: clairvoyant by task", clairvoyant, "")
    report.add("headroom", 100 * (clairvoyant - fixed), "points")
    mine = [float(taken(each.stream.utilities(), each.played.choices).mean()) for each in runs]
    add_barred(report, "learner: reward", mine, "", goals.ONLINE_REWARD, "all outcomes, the first ones too")
    lead = [100 * (each - fixed) for each in mine]
    report.add_spread("  less the best fixed in hindsight", lead, "points", Goal(">=", -1))
    report.add_spread("  share of the gap static to clairvoyant", [
        (reward - each.static) / (clairvoyant - each.static) for reward, each in zip(mine, runs, strict=True)
    ], "")  # fmt: skip
    quality, cost = zip(*(_last_quarter(each) for each in runs), strict=True)
    add_barred(report, "last quarter: quality by that of the strongest", quality, "%", goals.ONLINE_QUALITY)
    add_barred(report, "last quarter: cost by that of the strongest", cost, "%", goals.ONLINE_COST)
    saved = [1 - each for each in cost]
    report.add_spread("last quarter: cost saved against always the strongest", saved, "%", Goal(">=", 0.3))


class Online(NamedTuple):
    """One order of the rows."""

    stream: Stream
    played: Played
    static: float


def _online(table: OutcomeTable, readings: list[Intents], seed: int) -> Online:
    stream = stream_of(table, readings, np.random.default_rng([seed, 3]).permutation(len(table)))
    declared = declared_of(table.rewards.mean(axis=0), seed)
    static = stream.utilities()[:, int((declared - LAMBDA * stream.shares).argmax())].mean()
    played = play(stream, learner_of(stream, declared), LearningPolicy(mode="explore"), seed)
    return Online(stream, played, float(static))


def _clairvoyant(table: OutcomeTable) -> float:
    shares = table.costs.mean(axis=0) / table.costs.mean(axis=0).max()
    utilities = table.rewards - LAMBDA * shares
    groups = np.array(table.groups)
    best = [utilities[groups == each].mean(axis=0).max() * (groups == each).sum() for each in np.unique(groups)]
    return float(sum(best) / len(table))


def _last_quarter(run: Online) -> tuple[float, float]:
    rows = slice(3 * len(run.stream) // 4, None)
    strongest = int(run.stream.rewards.mean(axis=0).argmax())
    quality = taken(run.stream.rewards, run.played.choices)[rows].mean() / run.stream.rewards[rows, strongest].mean()
    cost = taken(run.stream.costs, run.played.choices)[rows].mean() / run.stream.costs[rows, strongest].mean()
    return float(quality), float(cost)
