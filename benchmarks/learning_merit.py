"""Calibration of merit: what the router takes for the probability of success against what came of its choices.

The learner goes over a table once, in random order, in the mode as shipped (`exploit`) and in `explore`; merit is
confidence^w1 * (posterior mean)^w2 of the agent that is called, with the exponents learned so far, as it was before the
outcome. ECE is over 15 equal bins (Guo et al. 2017). Intents: of the nine models as the product's intake reads them, of
MMLU the subject and of GSM8K one, named by the caller. Declared is the true mean with an error of N(0, 0.1).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import learning_goals as goals
from benchmarks.learning_data import LearningData, OutcomeTable
from benchmarks.learning_fixture import N_OUTCOMES, fixture
from benchmarks.learning_fixture import stream_of as fixture_stream
from benchmarks.learning_nine import stream_of
from benchmarks.learning_readings import read_by_others
from benchmarks.learning_stream import Floats, Intents, Stream, declared_of, learner_of, play, taken
from benchmarks.report import Report
from intent.exam import expected_calibration_error
from models.learning_policy import LearningMode, LearningPolicy

_MODES: tuple[LearningMode, ...] = ("exploit", "explore")


def merit_row(report: Report, data: LearningData, cache: Path, n_seeds: int) -> None:
    """ECE of every table."""
    report.section(f"calibration of merit, {n_seeds} orders of each table")
    nine = data.nine("all")
    readings, _ = read_by_others(data.vectors, nine, cache)
    tables = {"nine models": (nine, readings)}
    for name in ("mmlu", "gsm8k"):
        table = data.routellm(name)
        tables[name.upper()] = (table, [((group, 1.0),) for group in table.groups])
    for name, (table, of_table) in tables.items():
        for mode in _MODES:
            found = [
                ece(_ordered(table, of_table, seed), table.rewards.mean(axis=0), mode, seed) for seed in range(n_seeds)
            ]
            report.add_spread(f"{name}, {mode}: ECE of merit", found, "", goals.MERIT_ECE)
    for mode in _MODES:
        known = fixture()
        streams = [fixture_stream(known, N_OUTCOMES, seed) for seed in range(n_seeds)]
        found = [ece(stream, known.success.mean(axis=0), mode, seed) for seed, stream in enumerate(streams)]
        report.add_spread(f"fixture, {mode}: ECE of merit", found, "", goals.MERIT_ECE)


def ece(stream: Stream, means: Floats, mode: LearningMode, seed: int) -> float:
    """Of the choices on a stream."""
    policy = LearningPolicy(mode=mode)
    played = play(stream, learner_of(stream, declared_of(means, seed)), policy, seed)
    rewards: Any = taken(stream.rewards, played.choices)  # partial ones count in their parts
    return expected_calibration_error(played.merits, rewards)


def _ordered(table: OutcomeTable, readings: list[Intents], seed: int) -> Stream:
    return stream_of(table, readings, np.random.default_rng([seed, 5]).permutation(len(table)))
