"""RouteLLM's tables of a weak and a strong model: how much of their gap the product's success heads recover.

Heads are fitted on the other folds and asked about their own; C is chosen inside what is fitted on. The measures are
those of `learning_metric`, taken per fold, mean over the folds: one figure a seed, which draws folds and landmarks.
RouteLLM's own routers were trained on preferences of other models' answers; these see outcomes of these two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import learning_goals as goals
from benchmarks.learning_data import LearningData, OutcomeTable
from benchmarks.learning_goals import Bar, add_barred
from benchmarks.learning_metric import GapRecovered, gap_recovered
from benchmarks.report import Goal, Report
from feedback.fit_success import Evidence, fit_success
from intent.exam import expected_calibration_error

N_FOLDS = 5
N_FEW = 1500

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def routellm(report: Report, data: LearningData, n_seeds: int) -> None:
    """The first two rows of the table, and its controls."""
    mmlu, gsm8k = data.routellm("mmlu"), data.routellm("gsm8k")
    report.section(f"RouteLLM's metric, gpt-4-1106 and Mixtral-8x7B; MMLU {len(mmlu):,} rows, GSM8K {len(gsm8k):,}")
    found = [by_folds(mmlu, _random_folds(len(mmlu), seed), seed) for seed in range(n_seeds)]
    named = ("APGR", "share of calls for half the gap (CPT50)", "for 80 % of it (CPT80)")
    for place, (name, bar) in enumerate(zip(named, goals.MMLU, strict=True)):
        add_barred(report, f"MMLU, 5 folds: {name}", [each.gap[place] for each in found], "", bar, _PUBLISHED[place])
    of_gsm8k = [by_folds(gsm8k, _random_folds(len(gsm8k), seed), seed) for seed in range(n_seeds)]
    _apgr(report, "GSM8K, 5 folds: APGR", [each.gap for each in of_gsm8k], goals.GSM8K_APGR, "published best .622")
    few = [with_few(mmlu, seed) for seed in range(n_seeds)]
    _apgr(report, f"MMLU, {N_FEW:,} labels: APGR", few, goals.FEW_LABELS_APGR, "asked about all other rows")
    unseen = [by_folds(mmlu, _subject_folds(mmlu, seed), seed) for seed in range(n_seeds)]
    gaps = [each.gap for each in unseen]
    _apgr(report, "MMLU, subjects that were not fitted on: APGR", gaps, goals.UNSEEN_APGR, "5 folds of subjects")
    add_barred(report, "MMLU, 5 folds: ECE of P(success)", [each.ece for each in found], "", goals.SUCCESS_ECE)
    add_barred(report, "GSM8K, 5 folds: ECE of P(success)", [each.ece for each in of_gsm8k], "", goals.SUCCESS_ECE)
    controls(report, mmlu, gsm8k)


_PUBLISHED = ("published best .603", "published best .354", "published best .703")


def controls(report: Report, mmlu: OutcomeTable, gsm8k: OutcomeTable) -> None:
    """Random orders and the best one, by the same measure."""
    weak, strong = mmlu.rewards.T
    random = [gap_recovered(np.random.default_rng(seed).random(len(mmlu)), weak, strong).apgr for seed in range(20)]
    off = max(abs(each - goals.RANDOM_APGR) for each in random)
    report.add_spread("control: random order on MMLU, APGR", random, "")
    report.add("  the farthest from .5", off, "", Goal("<=", goals.RANDOM_WITHIN))
    for name, table, full in (("MMLU", mmlu, "1.29"), ("GSM8K", gsm8k, "1.13")):
        weak, strong = table.rewards.T
        best = gap_recovered(strong - weak, weak, strong).apgr
        report.add(f"control: the oracle on {name}, APGR", best, "", note=f"{full} on the full set")


class Folded(NamedTuple):
    """What heads make of folds that they were not fitted on.

    Attributes:
        gap: mean over the folds.
        ece: of the predicted success of both agents, over all rows.
    """

    gap: GapRecovered
    ece: float


def by_folds(table: OutcomeTable, folds: Ints, seed: int) -> Folded:
    """Each fold by heads of the others."""
    gaps, probabilities = [], np.empty_like(table.rewards)
    for fold in np.unique(folds):
        asked = np.flatnonzero(folds == fold)
        probabilities[asked] = predicted(table, np.flatnonzero(folds != fold), asked, seed)
        weak, strong = probabilities[asked].T
        gaps.append(gap_recovered(strong - weak, *table.rewards[asked].T))
    return Folded(GapRecovered(*np.mean(gaps, axis=0).tolist()), ece_of(probabilities, table.rewards))


def ece_of(probabilities: Floats, rewards: Any) -> float:
    """Expected calibration error of all agents together; partial rewards count in their parts."""
    return expected_calibration_error(probabilities.ravel(), rewards.ravel())


def with_few(table: OutcomeTable, seed: int) -> GapRecovered:
    """Fitted on 1,500 rows, asked about all others."""
    order = np.random.default_rng(seed).permutation(len(table))
    fitted, asked = order[:N_FEW], order[N_FEW:]
    weak, strong = predicted(table, fitted, asked, seed).T
    return gap_recovered(strong - weak, *table.rewards[asked].T)


def predicted(table: OutcomeTable, fitted: Ints, asked: Ints, seed: int) -> Floats:
    """P(success), shape (n asked, n agents), by heads of other rows."""
    evidence = {agent: Evidence(fitted, table.rewards[fitted, place]) for place, agent in enumerate(table.agents)}
    heads = fit_success(table.features, table.vectors, evidence, encoder_id="", seed=seed)
    order = [heads.agents.index(agent) for agent in table.agents]
    found: Floats = heads.predict_all(table.features[asked], table.vectors[asked]).probabilities[:, order]
    return found


def _random_folds(n: int, seed: int) -> Ints:
    folds: Ints = np.random.default_rng(seed).permutation(n) % N_FOLDS
    return folds


def _subject_folds(table: OutcomeTable, seed: int) -> Ints:
    """Whole subjects in one fold."""
    subjects, of_row = np.unique(table.groups, return_inverse=True)
    folds: Ints = _random_folds(len(subjects), seed)[of_row]
    return folds


def _apgr(report: Report, name: str, found: Iterable[GapRecovered], bar: Bar, note: str) -> None:
    add_barred(report, name, [each.apgr for each in found], "", bar, note)
