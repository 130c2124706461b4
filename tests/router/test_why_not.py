from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.candidate import Change, WhyNot
from router.scorer import Blend, Choice, Contender, Scored, choose, order, score
from router.why_not import apply, why_not
from tests.router.contenders import MERIT_FEATURES, blends, contender, contenders


def explain(given_order: list[Contender], agent_id: str, blend: Blend, draw: float = 0.0) -> WhyNot:
    ranked = order(score(given_order, blend))
    index = [scored.contender.agent_id for scored in ranked].index(agent_id)
    return why_not(ranked, index, choose(ranked, blend, draw), blend)


def lead(ranked: list[Scored], index: int, changes: list[Change], blend: Blend) -> float:
    """By how much the candidate leads all others after `changes`."""
    others = [scored.contender for scored in [*ranked[:index], *ranked[index + 1 :]]]
    own, *rest = score([apply(ranked[index], changes), *others], blend)
    return own.utility - max(other.utility for other in rest)


def part(changes: list[Change], fraction: float) -> list[Change]:
    return [
        Change(feature=change.feature, from_=change.from_, to=change.from_ + fraction * (change.to - change.from_))
        for change in changes
    ]


def changes_only(answer: WhyNot, feature: str, start: float, end: float) -> bool:
    """Whether one feature moves, from `start` to just beyond `end`."""
    [change] = answer.changes
    outward = end <= change.to + 1e-12 and change.to == pytest.approx(end, rel=1e-6)
    return change.feature == feature and change.from_ == pytest.approx(start) and outward


@settings(max_examples=400, deadline=None)
@given(contenders(min_size=2), blends(), st.floats(0, 1, exclude_max=True))
def test_the_change_makes_it_the_best_and_half_of_it_does_not(
    given_order: list[Contender], blend: Blend, draw: float
) -> None:
    ranked = order(score(given_order, blend))
    choice = choose(ranked, blend, draw)
    for index in set(range(len(ranked))) - {choice.index}:
        answer = why_not(ranked, index, choice, blend)
        if not answer.changes:
            assert ranked[index].utility == pytest.approx(ranked[0].utility, abs=1e-11)
            continue
        gained = lead(ranked, index, answer.changes, blend)
        if "drawn level" in answer.text:
            assert ranked[0].utility == 1.0
            assert gained == 0
        else:
            assert gained > 0
        assert lead(ranked, index, part(answer.changes, 0.5), blend) < 0
        assert all(0 <= change.from_ < change.to <= 1 for change in answer.changes)


@settings(max_examples=400, deadline=None)
@given(contenders(min_size=2), blends())
def test_no_feature_wins_with_a_smaller_change_and_a_joint_one_means_that_none_wins_alone(
    given_order: list[Contender], blend: Blend
) -> None:
    ranked = order(score(given_order, blend))
    choice = choose(ranked, blend, 0.0, shares=False)
    for index in range(1, len(ranked)):
        changes = why_not(ranked, index, choice, blend).changes
        if not changes:
            continue
        smallest = changes[0].to - changes[0].from_ if len(changes) == 1 else 1.0
        for whole in whole_ways(ranked[index], blend):
            way = whole.to - whole.from_
            shorter = part([whole], min(1.0, smallest / way * (1 - 1e-6)))
            assert lead(ranked, index, shorter, blend) <= 1e-12


def whole_ways(scored: Scored, blend: Blend) -> list[Change]:
    ways = [(feature, max(0.01, getattr(scored.contender, feature))) for feature in MERIT_FEATURES]
    ways += [("cost", 1 - scored.cost_share)]
    if blend.latency_weight > 0:
        ways += [("latency", 1 - scored.latency_share)]
    return [Change.model_validate({"feature": name, "from": start, "to": 1.0}) for name, start in ways if start < 1]


def test_quality_is_found_in_closed_form() -> None:
    # utilities 0.9 - 0.1 = 0.8 and 0.72 - 0.02 = 0.70: 0.9 * q - 0.02 = 0.8
    answer = explain(
        [contender("dear", quality=0.9, cost=5), contender("b", similarity=0.9, quality=0.8, cost=1)], "b", Blend()
    )
    assert changes_only(answer, "quality", 0.8, 0.82 / 0.9)
    assert answer.text == "quality 0.8 -> 0.912 would have been enough"


def test_exponents_count() -> None:
    answer = explain([contender("a", quality=0.81), contender("b", load=0.25)], "b", Blend(quality=1, load=0.5))
    assert changes_only(answer, "load", 0.25, 0.81**2)


def test_a_feature_without_weight_is_never_named() -> None:
    answer = explain([contender("a", health=0.7), contender("b", quality=0.01, health=0.6)], "b", Blend(quality=0))
    assert changes_only(answer, "health", 0.6, 0.7)


def test_a_change_starts_from_the_value_that_counted() -> None:
    assert explain([contender("a", quality=0.5), contender("b", quality=0.0)], "b", Blend()).changes[0].from_ == 0.01


def test_a_lower_cost_is_measured_on_a_reference_that_others_hold() -> None:
    # 1 - 0.1 * s = 0.98 - 0.1 * 0.2, from s = 0.8
    given_order = [contender("dear", quality=0.5, cost=5), contender("a", quality=0.98, cost=1), contender("b", cost=4)]
    answer = explain(given_order, "b", Blend())
    assert changes_only(answer, "cost", 0.2, 0.6)


def test_the_only_dearest_brings_the_reference_down_with_itself() -> None:
    # b pays 0.1 whatever it costs above 1; a pays 0.1 * 1 / cost: level where 0.95 - 0.1 / cost = 0.9, at a cost of 2
    ranked = order(score([contender("a", quality=0.95, cost=1), contender("b", cost=4)], Blend()))
    answer = why_not(ranked, 1, Choice(0, 1.0, (1.0,)), Blend())
    assert changes_only(answer, "cost", 0.0, 0.5)
    assert apply(ranked[1], answer.changes).cost == pytest.approx(2.0, rel=1e-6)


def test_below_the_others_the_reference_rests() -> None:
    # down to a cost of 1 b pays 0.3 whatever it costs; below, level where 0.75 - 0.3 * cost = 0.9 - 0.3, at 0.5
    given_order = [contender("a", quality=0.9, cost=1), contender("b", quality=0.75, cost=4)]
    answer = explain(given_order, "b", Blend(cost_weight=0.3))
    assert changes_only(answer, "cost", 0.0, 0.875)


def test_against_free_ones_only_nothing_is_cheap_enough() -> None:
    answer = explain([contender("a", quality=0.95), contender("b", cost=4)], "b", Blend())
    assert changes_only(answer, "cost", 0.0, 1.0)


def test_latency_counts_where_it_weighs() -> None:
    blend = Blend(latency_weight=0.2)
    answer = explain([contender("a", quality=0.9, latency_ms=100), contender("b", latency_ms=1000)], "b", blend)
    # level where 0.9 - 0.2 * 100 / x = 0.8, at 200 ms
    assert changes_only(answer, "latency", 0.0, 0.8)


def test_where_no_feature_suffices_all_move_by_the_same_fraction() -> None:
    given_order = [contender("a", quality=0.9, cost=1), contender("b", similarity=0.5, health=0.2, cost=1)]
    answer = explain(given_order, "b", Blend())
    assert [change.feature for change in answer.changes] == ["similarity", "health", "cost"]
    fractions = [(change.to - change.from_) / (1 - change.from_) for change in answer.changes]
    assert fractions == pytest.approx([fractions[0]] * 3)
    assert answer.text.endswith(" together would have been enough")


def test_a_perfect_winner_can_only_be_drawn_level_with() -> None:
    answer = explain([contender("a"), contender("b", quality=0.5, cost=3)], "b", Blend())
    assert [(change.feature, change.to) for change in answer.changes] == [("quality", 1.0), ("cost", 1.0)]
    assert answer.text == "quality 0.5 -> 1, cost 0 -> 1 together would have drawn level with a, which is perfect"


def test_the_best_that_lost_the_draw_lacked_nothing() -> None:
    given_order = [contender("a", share_weight=1), contender("b", quality=0.99, share_weight=3)]
    answer = explain(given_order, "a", Blend(), draw=0.9)
    assert answer.changes == []
    assert answer.text == (
        "had the highest utility; b won the draw among 2 near-equals, where this one had propensity 0.25"
    )


def test_a_near_equal_that_lost_the_draw_is_told_its_propensity() -> None:
    answer = explain([contender("a", quality=0.9), contender("b", quality=0.89)], "b", Blend())
    assert changes_only(answer, "quality", 0.89, 0.9)
    assert answer.text.endswith("would have been enough; it took part in the draw, with propensity 0.5")


def test_a_lost_tie_is_called_one() -> None:
    ranked = order(score([contender("a"), contender("b")], Blend()))
    answer = why_not(ranked, 1, choose(ranked, Blend(), 0.0, shares=False), Blend())
    assert (answer.changes, answer.text) == (
        [],
        "as high a utility as a, which comes first among equals (lower cost, then name)",
    )


def test_the_best_passed_over_by_the_caller_of_selection_is_called_that() -> None:
    ranked = order(score([contender("a"), contender("b", quality=0.5)], Blend()))
    answer = why_not(ranked, 0, Choice(1, 1.0, (1.0,)), Blend())
    assert (answer.changes, answer.text) == ([], "had the highest utility; b was preferred for another reason")


def test_numbers_in_the_text_are_enough_as_they_are_read() -> None:
    answer = explain([contender("a", quality=0.80004), contender("b", quality=0.80001)], "b", Blend())
    assert answer.text.startswith("quality 0.80001 -> 0.800041 would have been enough")


def test_the_chosen_has_no_why_not() -> None:
    ranked = order(score([contender("a"), contender("b")], Blend()))
    with pytest.raises(ValueError, match="candidate 0 of 2 is the chosen one"):
        why_not(ranked, 0, Choice(0, 1.0, (1.0,)), Blend())


def test_changes_are_written_with_from_and_to() -> None:
    answer = explain([contender("a", quality=0.9), contender("b", quality=0.5)], "b", Blend())
    assert set(answer.model_dump(by_alias=True)["changes"][0]) == {"feature", "from", "to"}


def test_apply_leaves_everything_else_as_it_was() -> None:
    scored = score(
        [contender("a", quality=0.5, cost=2, latency_ms=40), contender("b", cost=4, latency_ms=80)], Blend()
    )[0]
    changes = [
        Change(feature="quality", from_=0.5, to=0.7),
        Change(feature="cost", from_=0.5, to=0.75),
        Change(feature="latency", from_=0.5, to=1.0),
    ]
    assert apply(scored, changes) == scored.contender._replace(quality=0.7, cost=1.0, latency_ms=0.0)
