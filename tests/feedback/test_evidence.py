from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedback.evidence import Evidence, split
from models.card import AgentKey
from models.events import EVIDENCE_UNIT, WeightRow

AGENT: AgentKey = ("default", "helper", "1.0.0")
U = EVIDENCE_UNIT


def post(evidence: Evidence, caller: str, n: int, reward: float = 1.0, intent: str = "billing", free: int = 20) -> None:
    for _ in range(n):
        evidence.grow(AGENT, (intent, U, round(U * reward)), caller, 0.1, free * U)


def sums_of(evidence: Evidence) -> dict[tuple[str, ...], tuple[int, int]]:
    return {row[:5]: row[5:] for row in evidence.rows()}


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
    st.floats(0, 1),
)
def test_parts_of_an_outcome_add_up_to_one(confidences: list[float], reward: float) -> None:
    parts = split([(f"i{place}", confidence) for place, confidence in enumerate(confidences)], reward)

    assert sum(n for _, n, _ in parts) == U
    assert all(0 <= s <= n for _, n, s in parts)
    assert sum(s for _, _, s in parts) == pytest.approx(U * reward, abs=len(parts))


def test_evidence_adds_up_the_same_in_any_order() -> None:
    rows = [WeightRow(*AGENT, f"i{k % 3}", f"c{k % 2}", U // (k + 1), U // (k + 2)) for k in range(50)]
    forth, back = Evidence(), Evidence()
    for row in rows:
        forth.add(row)
    for row in reversed(rows):
        back.add(row)

    assert list(forth.rows()) == list(back.rows())
    assert forth.total(AGENT) == (sum(row.n for row in rows), sum(row.s for row in rows))


def test_a_caller_alone_is_not_capped() -> None:
    evidence = Evidence()
    post(evidence, "ann", 500)

    assert evidence.of(AGENT, "billing") == (500 * U, 500 * U)
    assert evidence.share(AGENT, "ann") == 1.0


def test_a_caller_who_comes_later_has_at_most_its_share() -> None:
    evidence = Evidence()
    post(evidence, "ann", 900)
    post(evidence, "eve", 1000, reward=0.0)

    assert sums_of(evidence)[*AGENT, "billing", "eve"] == (100 * U, 0)
    assert evidence.of(AGENT, "billing") == (1000 * U, 900 * U)


def test_what_was_counted_before_others_came_stays_and_grows_no_more() -> None:
    evidence = Evidence()
    post(evidence, "ann", 300)
    post(evidence, "bob", 1)
    post(evidence, "ann", 100, reward=0.0)

    n, s = sums_of(evidence)[*AGENT, "billing", "ann"]
    assert n == 300 * U
    # each new outcome pushes out a 300th of the older ones: 300 * (299/300)^100
    assert s / U == pytest.approx(300 * (299 / 300) ** 100, abs=0.01)


def test_so_many_outcomes_count_beyond_the_share() -> None:
    evidence = Evidence()
    post(evidence, "ann", 25)
    post(evidence, "bob", 50, free=20)
    post(evidence, "cid", 50, free=0)

    assert sums_of(evidence)[*AGENT, "billing", "bob"][0] == 20 * U
    assert sums_of(evidence)[*AGENT, "billing", "cid"][0] == 5 * U


def test_where_others_have_told_little_one_caller_has_one_outcome_more_at_most() -> None:
    evidence = Evidence()
    post(evidence, "ann", 1)
    post(evidence, "liar", 500, free=40)

    assert sums_of(evidence)[*AGENT, "billing", "liar"][0] == 2 * U


def test_two_callers_who_post_in_turn_hold_each_other_only_at_what_is_free() -> None:
    evidence = Evidence()
    for _ in range(100):
        post(evidence, "ann", 1, free=40)
        post(evidence, "bob", 1, free=40)

    assert {caller: sums[0] for (*_, caller), sums in sums_of(evidence).items()} == {"ann": 40 * U, "bob": 40 * U}


def test_differences_say_how_sums_changed() -> None:
    evidence, stored = Evidence(), Evidence()
    for caller, n in (("ann", 30), ("bob", 60), ("ann", 40)):
        for _ in range(n):
            stored.add(evidence.grow(AGENT, ("billing", U, U // 3), caller, 0.1, 20 * U)[0])
    for row in evidence.scale(AGENT, 0.5, 0.25):
        stored.add(row)

    assert list(stored.rows()) == list(evidence.rows())


def test_scaled_sums_stay_whole_and_consistent() -> None:
    evidence = Evidence()
    evidence.add(WeightRow(*AGENT, "billing", "ann", 7, 7))
    evidence.scale(AGENT, 0.5, 0.5)

    assert evidence.of(AGENT, "billing") == (3, 3)


def test_taking_back_more_than_there_is_leaves_nothing() -> None:
    evidence = Evidence()
    evidence.add(WeightRow(*AGENT, "billing", "ann", 5, 2))

    assert evidence.take_back(AGENT, ("billing", 9, 9), "ann") == [WeightRow(*AGENT, "billing", "ann", -5, -2)]
    assert evidence.take_back(AGENT, ("refund", 9, 9), "ann") == []
    assert list(evidence.rows()) == []


def test_beyond_the_bound_the_oldest_callers_are_folded() -> None:
    evidence = Evidence(max_caller_cells=2)
    for caller in ("ann", "bob", "ann", "cid"):
        evidence.add(WeightRow(*AGENT, "billing", caller, U, 0))
    folded = evidence.fold()

    assert folded == [WeightRow(*AGENT, "billing", "bob", -U, 0), WeightRow(*AGENT, "billing", "", U, 0)]
    assert sums_of(evidence) == {
        (*AGENT, "billing", ""): (U, 0),
        (*AGENT, "billing", "ann"): (2 * U, 0),
        (*AGENT, "billing", "cid"): (U, 0),
    }
    assert evidence.of(AGENT, "billing") == (4 * U, 0)


def test_what_a_folded_caller_told_can_still_be_taken_back() -> None:
    evidence = Evidence()
    evidence.add(WeightRow(*AGENT, "billing", "ann", U, U))
    evidence.fold_caller("ann")
    evidence.take_back(AGENT, ("billing", U, U), "ann")

    assert list(evidence.rows()) == []


def test_what_is_copied_is_what_the_rows_say() -> None:
    evidence = Evidence(max_caller_cells=3)
    for nth in range(60):
        post(evidence, f"c{nth % 5}", 1, intent=f"i{nth % 3}")
        evidence.fold()
    evidence.scale(AGENT, 0.5, 0.4)
    evidence.take_back(AGENT, ("i0", 100 * U, 0), "c0")
    evidence.fold_caller("c1")

    assert sorted(evidence.copied()) == list(evidence.rows())
    assert len(evidence.copied()) > 3
