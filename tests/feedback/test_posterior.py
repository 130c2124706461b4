from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from feedback.cell import Counted
from feedback.posterior import Fleet
from models.card import AgentKey
from models.events import EVIDENCE_UNIT
from models.learning_policy import LearningPolicy

POLICY = LearningPolicy()
U = EVIDENCE_UNIT
AGENTS: tuple[AgentKey, ...] = tuple(("default", name, "1.0.0") for name in ("a", "b", "c"))
INTENTS = ("arc", "math", "mmlu", "trivia")


def fleet(declared: Mapping[AgentKey, Mapping[str, float]]) -> Fleet:
    return Fleet(declared, POLICY.intent_prior)


def mean_of(posterior: tuple[tuple[float, ...], tuple[float, ...]]) -> list[float]:
    return [a / (a + b) for a, b in zip(*posterior, strict=True)]


def evidence(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 60, (len(INTENTS), len(AGENTS)))
    return n.astype(float), rng.binomial(n, 0.6).astype(float)


def test_with_one_declared_figure_per_agent_it_is_the_written_formula() -> None:
    declared = np.array([0.9, 0.6, 0.4])
    n, s = evidence(1)
    own = fleet(
        {agent: dict.fromkeys(INTENTS, figure) for agent, figure in zip(AGENTS, declared.tolist(), strict=True)}
    )
    for i, intent in enumerate(INTENTS):
        for a, agent in enumerate(AGENTS):
            own.put(agent, intent, Counted((int(n[i, a]) * U, int(s[i, a]) * U)))
    mu0 = declared.mean()
    mu = (5 * mu0 + s.sum(1)) / (5 + n.sum(1))
    d = (10 * (declared - mu0) + (s - n * mu[:, None]).sum(0)) / (10 + n.sum(0))
    m = np.clip(mu[:, None] + d, 0.02, 0.98)

    for i, intent in enumerate(INTENTS):
        alpha, beta = own.posterior(AGENTS, [(intent, 1.0)], POLICY)
        assert alpha == pytest.approx(10 * m[i] + s[i], abs=1e-9)
        assert beta == pytest.approx(10 * (1 - m[i]) + n[i] - s[i], abs=1e-9)


def test_without_evidence_each_intent_has_the_quality_declared_for_it() -> None:
    declared = {
        AGENTS[0]: {"arc": 0.9, "math": 0.3},
        AGENTS[1]: {"arc": 0.5},
        AGENTS[2]: {"math": 0.7, "mmlu": 0.1, "arc": 0.6},
    }
    own = fleet(declared)

    for agent, intents in declared.items():
        for intent, figure in intents.items():
            alpha, beta = own.posterior((agent,), [(intent, 1.0)], POLICY)
            assert (alpha[0], beta[0]) == pytest.approx((10 * figure, 10 * (1 - figure)))


def test_an_intent_that_goes_badly_for_one_agent_lowers_the_others() -> None:
    own = fleet({agent: dict.fromkeys(INTENTS, 0.7) for agent in AGENTS})
    own.put(AGENTS[0], "math", Counted((50 * U, 0)))

    means = {i: mean_of(own.posterior(AGENTS, [(i, 1.0)], POLICY)) for i in ("math", "arc")}
    assert means["math"][0] < 0.1
    assert means["math"][1] < 0.3
    assert means["arc"][1] == pytest.approx(0.7)


def test_an_agent_that_does_well_on_one_intent_is_thought_better_of_on_others() -> None:
    own = fleet({agent: dict.fromkeys(INTENTS, 0.5) for agent in AGENTS})
    for agent, s in zip(AGENTS, (30, 10, 10), strict=True):
        own.put(agent, "arc", Counted((30 * U, s * U)))

    means = mean_of(own.posterior(AGENTS, [("math", 1.0)], POLICY))
    assert means[0] > 0.7
    assert means[1] == means[2] < 0.5


def test_quality_on_a_reading_is_the_mean_over_its_intents_by_their_confidences() -> None:
    own = fleet({agent: dict.fromkeys(INTENTS, 0.5) for agent in AGENTS})
    own.put(AGENTS[0], "arc", Counted((40 * U, 24 * U)))
    own.put(AGENTS[0], "math", Counted((40 * U, 4 * U)))
    own.put(AGENTS[1], "math", Counted((10 * U, 7 * U)))
    reading = [("arc", 0.6), ("math", 0.1), ("unknown", 0.05)]
    quality = {i: mean_of(own.posterior(AGENTS, [(i, 1.0)], POLICY)) for i in ("arc", "math")}

    mixed = mean_of(own.posterior(AGENTS, reading, POLICY))
    for place in range(len(AGENTS)):
        # nobody serves what is unknown: it counts for nobody
        summed = 0.6 * quality["arc"][place] + 0.1 * quality["math"][place]
        assert mixed[place] == pytest.approx(summed / 0.7)


def test_a_mixture_has_the_variance_of_the_weighted_mean() -> None:
    own = fleet({AGENTS[0]: {"arc": 0.4, "math": 0.2}})
    (alpha,), (beta,) = own.posterior(AGENTS[:1], [("arc", 0.6), ("math", 0.2)], POLICY)
    total = alpha + beta

    assert alpha / total == pytest.approx(0.75 * 0.4 + 0.25 * 0.2)
    # Beta(4, 6) and Beta(2, 8)
    assert alpha * beta / (total**2 * (total + 1)) == pytest.approx(0.5625 * 0.24 / 11 + 0.0625 * 0.16 / 11)


@pytest.mark.parametrize("reading", [(0.9, 0.05), (0.7, 0.25), (0.5, 0.5), (0.3, 0.6), (0.0, 0.0)])
def test_agents_that_are_alike_on_all_intents_of_a_reading_are_told_apart_as_on_one(
    reading: tuple[float, float],
) -> None:
    own = fleet({AGENTS[0]: {"arc": 0.95, "math": 0.95}, AGENTS[1]: {"arc": 0.75, "math": 0.75}})
    intents = list(zip(("arc", "math"), reading, strict=True))

    assert mean_of(own.posterior(AGENTS[:2], intents, POLICY)) == pytest.approx([0.95, 0.75])


def test_serving_more_of_the_likely_intents_is_no_credit() -> None:
    own = fleet({AGENTS[0]: {"arc": 0.4}, AGENTS[1]: {"arc": 0.4, "math": 0.4}, AGENTS[2]: {"math": 0.9}})
    means = mean_of(own.posterior(AGENTS, [("arc", 0.8), ("math", 0.2)], POLICY))

    assert means == pytest.approx([0.4, 0.4, 0.9])


def test_an_agent_that_is_not_known_or_serves_none_of_the_intents_is_in_the_middle() -> None:
    own = fleet({AGENTS[0]: {"arc": 0.4}, AGENTS[1]: {"math": 0.4}})

    alpha, beta = own.posterior(AGENTS, [("arc", 1.0)], POLICY)
    assert alpha == pytest.approx((4.0, 5.0, 5.0))
    assert beta == pytest.approx((6.0, 5.0, 5.0))
    assert fleet({}).posterior(AGENTS[:1], [("arc", 1.0)], POLICY) == ((5.0,), (5.0,))


def test_an_agents_posterior_does_not_depend_on_who_else_is_asked_for() -> None:
    own = fleet({agent: dict.fromkeys(INTENTS, 0.3 + 0.2 * place) for place, agent in enumerate(AGENTS)})
    n, s = evidence(2)
    for i, intent in enumerate(INTENTS):
        for a, agent in enumerate(AGENTS):
            own.put(agent, intent, Counted((int(n[i, a]) * U, int(s[i, a]) * U)))
    together = own.posterior(AGENTS, [("arc", 0.7), ("math", 0.1)], POLICY)

    for place, agent in enumerate(AGENTS):
        alone = own.posterior((agent,), [("arc", 0.7), ("math", 0.1)], POLICY)
        assert (alone.alpha[0], alone.beta[0]) == (together.alpha[place], together.beta[place])


def test_a_repeated_question_is_answered_anew_once_something_changed() -> None:
    own = fleet({AGENTS[0]: {"arc": 0.5}})
    before = own.posterior(AGENTS[:1], [("arc", 1.0)], POLICY)

    assert own.posterior(AGENTS[:1], [("arc", 1.0)], POLICY) is before
    own.put(AGENTS[0], "arc", Counted((U, U)))
    assert own.posterior(AGENTS[:1], [("arc", 1.0)], POLICY).alpha[0] > before.alpha[0]
    assert own.posterior(AGENTS[:1], [("arc", 1.0)], LearningPolicy(prior=1.0)).alpha[0] < before.alpha[0]


def test_what_is_expected_is_the_mean_over_the_intents_served() -> None:
    own = fleet({AGENTS[0]: {"arc": 0.8, "math": 0.2}, AGENTS[1]: {"arc": 0.8}})

    assert own.expected(AGENTS[0], [("arc", 0.6), ("math", 0.2)], POLICY) == pytest.approx(0.65)
    assert own.expected(AGENTS[1], [("arc", 0.6), ("math", 0.2)], POLICY) == pytest.approx(0.8)
    assert own.expected(AGENTS[1], [("math", 0.2)], POLICY) is None
    assert own.expected(AGENTS[2], [("math", 0.2)], POLICY) is None


def test_what_is_expected_is_the_mean_of_the_posterior() -> None:
    own = fleet({agent: dict.fromkeys(INTENTS, 0.3 + 0.2 * place) for place, agent in enumerate(AGENTS)})
    n, s = evidence(3)
    for i, intent in enumerate(INTENTS):
        for a, agent in enumerate(AGENTS):
            own.put(agent, intent, Counted((int(n[i, a]) * U, int(s[i, a]) * U)))
    for intent in INTENTS:
        means = mean_of(own.posterior(AGENTS, [(intent, 1.0)], POLICY))

        assert [own.expected(agent, [(intent, 1.0)], POLICY) for agent in AGENTS] == pytest.approx(means, abs=1e-12)
