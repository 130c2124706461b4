from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from feedback.choices import N_FOLDS, Choices, Floats
from feedback.offpolicy import Log, Method, difference_of, value_of
from feedback.policy_gate import gate
from tests.simulation.fixture import SUCCESS

N_INTENTS, N_AGENTS = SUCCESS.shape
N_RUNS = 200


class Hit(NamedTuple):
    error: float
    in95: bool
    in99: bool


def greedy(rng: np.random.Generator, noise: float, floor: float, spread: float = 0.0) -> Floats:
    """A policy (intents, agents) that follows what it believes of the agents, with draws of that spread and a floor."""
    believed = SUCCESS + rng.normal(0, noise, SUCCESS.shape)
    drawn = believed + rng.normal(0, spread, (400, *SUCCESS.shape)) if spread else believed[None]
    best = drawn.argmax(axis=2)
    share = np.stack([np.bincount(column, minlength=N_AGENTS) / len(drawn) for column in best.T])
    return np.asarray((1 - floor) * share + floor / N_AGENTS)


def logged(rng: np.random.Generator, n: int, logging: Floats, target: Floats) -> tuple[Choices, Floats]:
    """n decisions of a policy on uniform intents with Bernoulli outcomes, and what another one thinks of them."""
    intent = rng.integers(N_INTENTS, size=n)
    agent = (rng.random((n, 1)) > logging[intent].cumsum(axis=1)).sum(axis=1).clip(0, N_AGENTS - 1)
    reward = (rng.random(n) < SUCCESS[intent, agent]).astype(np.float64)
    starts = np.arange(n + 1) * N_AGENTS
    agents = np.tile(np.arange(N_AGENTS), n)
    folds = np.arange(n) % N_FOLDS
    choices = Choices(
        starts, intent, starts[:-1] + agent, folds, agents, logging[intent].ravel(), target[intent].ravel()
    )
    return choices, reward


def worth(policy: Floats) -> float:
    return float((policy * SUCCESS).sum(axis=1).mean())


def run(n: int, seed: int) -> dict[tuple[str, Method], Hit]:
    """Logged by draws with a floor of 2 %; the target is another's belief, followed without exploration."""
    rng = np.random.default_rng([seed, n])
    logging, target = greedy(rng, 0.1, 0.02, spread=0.15), greedy(rng, 0.1, 0.0)
    choices, reward = logged(rng, n, logging, target)
    log = Log.of(choices, reward)
    truth = {"value": worth(target), "difference": worth(target) - worth(logging)}
    hits = {}
    for method in Method:
        for what, estimate in (("value", value_of(log, method)), ("difference", difference_of(log, method))):
            in95 = estimate.low95 <= truth[what] <= estimate.high95
            in99 = estimate.low99 <= truth[what] <= estimate.high99
            hits[what, method] = Hit(estimate.value - truth[what], in95, in99)
    return hits


@pytest.fixture(scope="module")
def runs() -> dict[int, list[dict[tuple[str, Method], Hit]]]:
    return {n: [run(n, seed) for seed in range(N_RUNS)] for n in (1000, 3000)}


@pytest.mark.parametrize("method", [Method.DR, Method.SNDR])
@pytest.mark.parametrize("what", ["value", "difference"])
@pytest.mark.parametrize("n", [1000, 3000])
def test_intervals_hold_what_they_promise(
    runs: dict[int, list[dict[tuple[str, Method], Hit]]], n: int, what: str, method: Method
) -> None:
    # nominal 95 and 99 %; 200 runs know a share to about 2 points
    hits = [each[what, method] for each in runs[n]]
    assert np.mean([hit.in95 for hit in hits]) >= 0.88
    assert np.mean([hit.in99 for hit in hits]) >= 0.95


def test_intervals_of_snips_hold_nearly_what_they_promise(
    runs: dict[int, list[dict[tuple[str, Method], Hit]]],
) -> None:
    hits = [each["difference", Method.SNIPS] for each in runs[3000]]
    assert np.mean([hit.in95 for hit in hits]) >= 0.86


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("n", [1000, 3000])
def test_estimates_are_unbiased(runs: dict[int, list[dict[tuple[str, Method], Hit]]], n: int, method: Method) -> None:
    # self-normalized ones are so in the limit: three standard errors of the mean, and half a point
    errors = np.array([each["difference", method].error for each in runs[n]])
    assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(N_RUNS) + 0.005


def test_the_error_of_sndr_is_what_was_measured_before_the_start(
    runs: dict[int, list[dict[tuple[str, Method], Hit]]],
) -> None:
    # LEARNING's floors for logs by sampling with a 2 % floor
    for n, floor in ((1000, 0.06), (3000, 0.035)):
        assert np.sqrt(np.mean([each["value", Method.SNDR].error ** 2 for each in runs[n]])) < floor


def test_the_outcome_model_makes_estimates_better(runs: dict[int, list[dict[tuple[str, Method], Hit]]]) -> None:
    rmse = {
        method: np.sqrt(np.mean([each["difference", method].error ** 2 for each in runs[1000]])) for method in Method
    }
    assert rmse[Method.SNDR] < rmse[Method.SNIPS]


def test_a_gate_lets_a_much_better_candidate_pass_and_hardly_ever_one_that_is_no_better() -> None:
    n_runs, passed = 100, {"better": 0, "equal": 0}
    best, worst = np.eye(N_AGENTS)[SUCCESS.argmax(axis=1)], np.eye(N_AGENTS)[SUCCESS.argmin(axis=1)]
    for seed in range(n_runs):
        rng = np.random.default_rng([seed, 7])
        logging = greedy(rng, 0.25, 0.1, spread=0.2)
        part = (worth(logging) - worth(worst)) / (worth(best) - worth(worst))
        equal = part * best + (1 - part) * worst
        passed["better"] += gate(*logged(rng, 4000, logging, best)).passed
        passed["equal"] += gate(*logged(rng, 4000, logging, equal)).passed
    assert passed["better"] >= 0.9 * n_runs
    # 2.5 % in the limit
    assert passed["equal"] <= 0.06 * n_runs
