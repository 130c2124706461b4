from __future__ import annotations

import random
from math import isclose, log, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.decision import Reason
from models.policy import BlendWeights, CostWeights, NamespacePolicy
from router.draw import draw_of
from router.scorer import (
    FLOOR,
    Blend,
    Choice,
    Contender,
    choose,
    clamped,
    contributions,
    features,
    order,
    reason,
    score,
)
from tests.router.contenders import MERIT_FEATURES, SHARE, blends, contender, contenders

DRAW = st.floats(0, 1, exclude_max=True)


def ids(ranked: list[Contender]) -> list[str]:
    return [scored.contender.agent_id for scored in order(score(ranked, Blend()))]


def test_merit_is_the_product_of_powers() -> None:
    blend = Blend(similarity=2, quality=1, health=0.5, load=0)
    [scored] = score([contender(similarity=0.5, quality=0.8, health=0.25, load=0.3)], blend)
    assert scored.merit == pytest.approx(0.25 * 0.8 * 0.5)


def test_utility_takes_off_the_shares_of_the_dearest_and_the_slowest() -> None:
    blend = Blend(cost_weight=0.3, latency_weight=0.2)
    dear, slow = score(
        [
            contender("dear", quality=0.9, cost=4, latency_ms=500),
            contender("slow", quality=0.8, cost=1, latency_ms=2000),
        ],
        blend,
    )
    assert (dear.cost_share, dear.latency_share) == (1.0, 0.25)
    assert (slow.cost_share, slow.latency_share) == (0.25, 1.0)
    assert dear.utility == pytest.approx(0.9 - 0.3 - 0.05)
    assert slow.utility == pytest.approx(0.8 - 0.075 - 0.2)


def test_where_nothing_costs_anything_shares_are_zero() -> None:
    assert [(s.cost_share, s.latency_share, s.utility) for s in score([contender("a"), contender("b")], Blend())] == [
        (0.0, 0.0, 1.0),
        (0.0, 0.0, 1.0),
    ]


def test_nobody_scores_nothing() -> None:
    assert score([], Blend()) == []


@pytest.mark.parametrize(
    ("raw", "counts"), [(-1.0, FLOOR), (0.0, FLOOR), (0.01, FLOOR), (0.5, 0.5), (1.0, 1.0), (7.0, 1.0)]
)
def test_features_count_within_floor_and_one(raw: float, counts: float) -> None:
    assert clamped(raw) == counts
    assert score([contender(quality=raw)], Blend())[0].merit == counts


def test_a_feature_that_is_not_a_number_counts_least() -> None:
    assert clamped(nan) == FLOOR


@pytest.mark.parametrize(("merit", "first"), [(0.801, "cheap"), (0.799, "dear")])
def test_under_auto_the_free_one_wins_while_its_merit_is_less_than_a_tenth_lower(merit: float, first: str) -> None:
    assert ids([contender("dear", quality=0.9, cost=5), contender("cheap", quality=merit)])[0] == first


@pytest.mark.parametrize(("merit", "first"), [(0.821, "cheap"), (0.819, "dear")])
def test_the_margin_shrinks_with_the_difference_in_cost(merit: float, first: str) -> None:
    # 0.1 * (1 - 1/5) = 0.08
    assert ids([contender("dear", quality=0.9, cost=5), contender("cheap", quality=merit, cost=1)])[0] == first


def test_under_best_cost_does_not_count() -> None:
    blend = Blend.of(NamespacePolicy(), "best")
    ranked = order(score([contender("dear", quality=0.81, cost=5), contender("cheap", quality=0.8)], blend))
    assert ranked[0].contender.agent_id == "dear"


def test_blend_is_read_from_the_policy() -> None:
    policy = NamespacePolicy(
        weights=BlendWeights(similarity=1, quality=2, health=3, load=4),
        cost_weights=CostWeights(best=0.01, auto=0.2, cheapest=0.5),
        latency_weight=0.05,
        share_within=0.1,
    )
    assert Blend.of(policy, "auto") == Blend(1, 2, 3, 4, cost_weight=0.2, latency_weight=0.05, share_within=0.1)
    assert Blend.of(policy, "cheapest").cost_weight == 0.5
    assert Blend.of(policy.model_copy(update={"cost_optimize": False}), "cheapest").cost_weight == 0.01


def test_the_default_blend_is_that_of_the_default_policy() -> None:
    assert Blend.of(NamespacePolicy(), "auto") == Blend()


def test_ties_go_to_the_cheaper_then_by_name_then_namespace_then_the_newest() -> None:
    even = Blend(cost_weight=0)
    wanted = [
        contender("z", cost=1),
        contender("a", namespace="a", cost=2),
        *[contender("a", namespace="b", version=v, cost=2) for v in ["1.10.0", "1.9.0", "1.9.0-rc.10", "1.9.0-rc.9"]],
        contender("b", namespace="a", cost=2),
    ]
    assert [s.contender for s in order(score(wanted[::-1], even))] == wanted


@pytest.mark.parametrize(
    "newest_first",
    [
        # semver.org, 11.4
        ["1.0.0", "1.0.0-rc.1", "1.0.0-beta.11", "1.0.0-beta.2", "1.0.0-beta", "1.0.0-alpha.beta", "1.0.0-alpha.1"],
        ["10.0.0", "9.10.0", "9.9.10", "9.9.9"],
        ["1.0.0+b", "1.0.0+a"],
    ],
)
def test_versions_are_compared_as_semver_says(newest_first: list[str]) -> None:
    ranked = order(score([contender(version=version) for version in newest_first[::-1]], Blend()))
    assert [scored.contender.version for scored in ranked] == newest_first


@given(contenders(), blends(), DRAW, st.randoms(use_true_random=False))
def test_ranking_and_choice_do_not_depend_on_the_order_of_registration(
    given_order: list[Contender], blend: Blend, draw: float, shuffler: random.Random
) -> None:
    ranked = order(score(given_order, blend))
    shuffled = [*given_order]
    shuffler.shuffle(shuffled)
    assert order(score(shuffled, blend)) == ranked
    assert choose(order(score(shuffled, blend)), blend, draw) == choose(ranked, blend, draw)


@given(contenders(), blends())
def test_ranking_falls_in_utility(given_order: list[Contender], blend: Blend) -> None:
    utilities = [scored.utility for scored in order(score(given_order, blend))]
    assert utilities == sorted(utilities, reverse=True)


@given(contenders(), blends(), st.sampled_from(MERIT_FEATURES), SHARE)
def test_utility_never_falls_when_a_feature_rises(
    given_order: list[Contender], blend: Blend, feature: str, value: float
) -> None:
    first, *rest = given_order
    raised = first._replace(**{feature: max(value, getattr(first, feature))})
    assert score([raised, *rest], blend)[0].utility >= score(given_order, blend)[0].utility


@given(contenders(min_size=2), blends(), SHARE)
def test_lead_never_falls_when_the_cost_does(given_order: list[Contender], blend: Blend, part: float) -> None:
    def lead(first: Contender) -> float:
        own, *others = score([first, *given_order[1:]], blend)
        return own.utility - max(other.utility for other in others)

    first = given_order[0]
    assert lead(first._replace(cost=first.cost * part)) >= lead(first) - 1e-12


@given(contenders(), blends(), st.floats(0.01, 100))
def test_the_unit_of_cost_does_not_matter(given_order: list[Contender], blend: Blend, unit: float) -> None:
    converted = [one._replace(cost=one.cost * unit) for one in given_order]
    for here, there in zip(score(given_order, blend), score(converted, blend), strict=True):
        assert isclose(here.utility, there.utility, abs_tol=1e-12)


@given(contenders(), blends(), DRAW)
def test_the_chosen_is_a_near_equal_and_propensities_add_up_to_one(
    given_order: list[Contender], blend: Blend, draw: float
) -> None:
    ranked = order(score(given_order, blend))
    choice = choose(ranked, blend, draw)
    best = ranked[0].utility
    assert ranked[choice.index].utility >= best - blend.share_within * abs(best)
    assert all(scored.utility < best - blend.share_within * abs(best) for scored in ranked[choice.n_near :])
    assert sum(choice.propensities) == pytest.approx(1)
    assert choice.propensity == choice.propensities[choice.index] > 0


def test_near_equals_share_in_proportion_to_their_weights() -> None:
    ranked = order(score([contender(name, share_weight=w) for name, w in [("a", 60), ("b", 0), ("c", 40)]], Blend()))
    drawn = [choose(ranked, Blend(), draw_of(seed)).index for seed in range(20_000)]
    assert choose(ranked, Blend(), 0.0).propensities == (0.6, 0.0, 0.4)
    # four standard deviations of a share of 0.6 in 20,000 draws are 0.0139
    assert drawn.count(0) / 20_000 == pytest.approx(0.6, abs=0.0139)
    assert drawn.count(1) == 0


@pytest.mark.parametrize(("draw", "index"), [(0.0, 0), (0.249, 0), (0.25, 1), (0.999, 1), (1 - 2**-53, 1)])
def test_a_draw_falls_into_the_slices_in_order_of_rank(draw: float, index: int) -> None:
    ranked = order(score([contender("a", share_weight=1), contender("b", share_weight=3)], Blend()))
    assert choose(ranked, Blend(), draw).index == index


def test_equal_shares_where_all_weights_are_zero() -> None:
    ranked = order(score([contender(name, share_weight=0) for name in "abcd"], Blend()))
    assert choose(ranked, Blend(), 0.6) == Choice(2, 0.25, (0.25, 0.25, 0.25, 0.25))


@pytest.mark.parametrize(("quality", "n_near"), [(0.9801, 2), (0.9799, 1)])
def test_near_equal_means_within_two_hundredths_of_the_best(quality: float, n_near: int) -> None:
    ranked = order(score([contender("a"), contender("b", quality=quality)], Blend()))
    assert choose(ranked, Blend(), 0.0).n_near == n_near


def test_near_equals_are_found_below_zero_too() -> None:
    blend = Blend(cost_weight=2)
    ranked = order(score([contender("a", cost=5), contender("b", quality=0.99, cost=5)], blend))
    assert [scored.utility for scored in ranked] == pytest.approx([-1.0, -1.01])
    assert choose(ranked, blend, 0.0).n_near == 2


def test_a_clear_winner_takes_it_all() -> None:
    ranked = order(score([contender("a"), contender("b", quality=0.5)], Blend()))
    assert choose(ranked, Blend(), 0.99) == Choice(0, 1.0, (1.0,))


def test_without_sharing_the_first_takes_it_all() -> None:
    ranked = order(score([contender("a"), contender("b")], Blend()))
    assert choose(ranked, Blend(), 0.99, shares=False) == Choice(0, 1.0, (1.0,))


def test_reason_says_why() -> None:
    def why(*given_order: Contender, blend: Blend = Blend()) -> Reason:  # noqa: B008
        ranked = order(score(given_order, blend))
        return reason(ranked, choose(ranked, blend, 0.0), blend)

    able, cheap = contender("able", quality=0.9, cost=5), contender("cheap", quality=0.85, cost=1)
    assert why(able) is Reason.ONLY_CANDIDATE
    assert why(able, able._replace(agent_id="twin")) is Reason.SHARED
    assert why(able, cheap) is Reason.PREFERRED_CHEAPER
    assert why(able, cheap._replace(quality=0.5)) is Reason.SELECTED
    by_latency = Blend(cost_weight=0, latency_weight=0.3)
    assert why(able._replace(latency_ms=9000.0), cheap, blend=by_latency) is Reason.SELECTED


def test_contributions_are_logs_and_burdens() -> None:
    blend = Blend(similarity=2, quality=0, cost_weight=0.3, latency_weight=0.2)
    half, _ = score(
        [contender(similarity=0.5, quality=0.5, health=0.001, cost=1, latency_ms=1), contender(cost=2, latency_ms=4)],
        blend,
    )
    assert contributions(half, blend).model_dump() == pytest.approx(
        {"similarity": 2 * log(0.5), "quality": 0, "health": log(0.01), "load": 0, "cost": -0.15, "latency": -0.05}
    )


def test_no_contribution_is_minus_zero() -> None:
    text = contributions(score([contender()], Blend())[0], Blend(cost_weight=0)).model_dump_json()
    assert "-0.0" not in text


@given(contenders(), blends())
def test_contributions_make_up_merit_and_utility(given_order: list[Contender], blend: Blend) -> None:
    for scored in score(given_order, blend):
        parts = contributions(scored, blend)
        assert isclose(log(scored.merit), parts.similarity + parts.quality + parts.health + parts.load, abs_tol=1e-9)
        assert isclose(scored.utility, scored.merit + parts.cost + parts.latency, abs_tol=1e-12)


def test_features_are_shown_as_they_counted() -> None:
    shown = features(score([contender(similarity=0, quality=0.7, load=2, cost=1), contender(cost=4)], Blend())[0])
    assert shown.model_dump() == {"similarity": 0.01, "quality": 0.7, "health": 1.0, "load": 1.0, "cost": 0.75}


def test_draws_are_those_of_splitmix64() -> None:
    # the published first outputs for the seed 1234567
    outputs = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [draw_of(1234567, nth) for nth in range(4)] == [(output >> 11) / 2**53 for output in outputs]


@given(st.integers())
def test_a_draw_is_in_zero_to_one_whatever_the_seed(seed: int) -> None:
    assert 0 <= draw_of(seed) < 1
    assert draw_of(seed) == draw_of(seed % 2**64)


def test_draws_of_neighbouring_seeds_are_even() -> None:
    draws = sorted(draw_of(seed) for seed in range(10_000))
    # Kolmogorov-Smirnov, 0.1 % level: 1.95 / sqrt(n)
    assert max(abs(draw - (rank + 0.5) / 10_000) for rank, draw in enumerate(draws)) < 0.0195
