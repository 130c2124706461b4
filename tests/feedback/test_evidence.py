from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedback.caller_cap import Cap
from feedback.cell import Counted, Told
from feedback.evidence import Evidence, split
from models.card import AgentKey
from models.events import EVIDENCE_UNIT, WeightRow

AGENT: AgentKey = ("default", "helper", "1.0.0")
U = EVIDENCE_UNIT


CAP = Cap(0.1, 0)


def post(evidence: Evidence, caller: str, n: int, reward: float = 1.0, intent: str = "billing") -> None:
    evidence.grow(AGENT, (intent, n * U, round(n * U * reward)), caller)


def led_by_nobody() -> Evidence:
    # three callers who tell of other agents keep anybody from being the fleet's main one
    evidence = Evidence()
    for caller in ("x", "y", "z"):
        for nth in range(6):
            evidence.add(WeightRow("default", f"other{nth}", "1.0.0", "billing", caller, U, U))
    return evidence


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


def test_what_a_caller_alone_tells_counts() -> None:
    evidence = Evidence()
    post(evidence, "ann", 500)

    assert evidence.counted(AGENT, "billing", CAP) == Counted((500 * U, 500 * U))
    assert evidence.share(AGENT, "ann", CAP) == 1.0


def test_what_nobody_else_tells_counts_for_nobody_else() -> None:
    evidence = led_by_nobody()
    post(evidence, "liar", 1000)

    assert evidence.counted(AGENT, "billing", CAP) == Counted((0, 0), (Told("liar", 1000 * U, 1000 * U),))
    assert evidence.counted(AGENT, "billing", Cap(0.1, 5 * U)).sums == (5 * U, 5 * U)
    assert evidence.of(AGENT, "billing") == (1000 * U, 1000 * U)


def test_a_caller_counts_as_far_as_another_has_told_as_much() -> None:
    evidence = led_by_nobody()
    for caller, n in (("ann", 50), ("bob", 20), ("cid", 3)):
        post(evidence, caller, n, reward=0.8)

    assert evidence.counted(AGENT, "billing", CAP) == Counted((43 * U, round(34.4 * U)), (Told("ann", 30 * U, 24 * U),))


def test_a_caller_counts_up_to_its_share_of_what_many_tell() -> None:
    evidence = led_by_nobody()
    for nth in range(100):
        post(evidence, f"c{nth}", 9, reward=0.8)
    post(evidence, "ann", 500, reward=0.8)
    ((caller, n, _),) = evidence.counted(AGENT, "billing", CAP).beyond

    assert (caller, n) == ("ann", 400 * U)
    assert evidence.share(AGENT, "ann", CAP) == pytest.approx(0.1)
    assert evidence.of_caller(AGENT, "ann", CAP) == 100.0
    assert evidence.counted(AGENT, "billing", Cap(1.0, 0)) == Counted((1400 * U, 1120 * U))


def test_who_contradicts_all_others_counts_for_nobody_else() -> None:
    evidence = led_by_nobody()
    for nth in range(10):
        post(evidence, f"c{nth}", 20, reward=0.8)
    honest = evidence.counted(AGENT, "billing", CAP)
    post(evidence, "liar", 1000, reward=0.0)
    post(evidence, "small", 15, reward=0.0)

    assert evidence.counted(AGENT, "billing", CAP).sums == honest.sums
    assert evidence.is_contradicted(AGENT, "billing", "liar", CAP)
    assert not evidence.is_contradicted(AGENT, "billing", "c1", CAP)
    assert not evidence.is_contradicted(AGENT, "billing", "nobody", CAP)
    assert not evidence.is_contradicted(AGENT, "refund", "liar", CAP)


def test_chance_is_no_contradiction() -> None:
    evidence = led_by_nobody()
    for nth in range(10):
        post(evidence, f"c{nth}", 20, reward=0.8)
    post(evidence, "unlucky", 4, reward=0.25)

    assert evidence.counted(AGENT, "billing", CAP).beyond == ()


def test_a_caller_whose_traffic_the_fleet_mainly_has_leads_it_until_others_have_as_much() -> None:
    evidence = Evidence()
    for nth in range(6):
        post(evidence, "main", 100, reward=0.8, intent=f"i{nth}")
    post(evidence, "eve", 1000, reward=0.0, intent="i0")
    post(evidence, "eve", 1000, reward=0.0, intent="i1")

    assert evidence.leader("default") == "main"
    assert evidence.counted(AGENT, "i0", CAP).sums == (100 * U, 80 * U)
    assert evidence.counted(AGENT, "i5", CAP) == Counted((100 * U, 80 * U))
    for nth in range(2, 6):
        post(evidence, "eve", 1, intent=f"i{nth}")
    assert evidence.leader("default") == "main"
    for nth in range(2, 6):
        post(evidence, "eve", 9, intent=f"i{nth}")
    assert evidence.leader("default") is None
    assert evidence.counted(AGENT, "i5", CAP).sums == (20 * U, 18 * U)


CALLERS = st.sampled_from(["", "ann", "bob", "cid", "dan"])
ADDED = st.tuples(CALLERS, st.integers(0, 2), st.integers(1, 50), st.floats(0, 1))


@given(st.lists(ADDED, max_size=20), st.lists(ADDED, max_size=5), st.randoms(use_true_random=False))
def test_what_counts_depends_on_the_sums_alone(kept: list[Any], undone: list[Any], random: Any) -> None:
    def part(added: Any) -> tuple[tuple[str, int, int], str]:
        caller, intent, n, reward = added
        return (f"i{intent}", n * U, round(n * U * reward)), caller

    plain, other = Evidence(), Evidence()
    for added in kept:
        plain.grow(AGENT, *part(added))
    for added in undone:
        other.grow(AGENT, *part(added))
    for added in random.sample(kept, len(kept)):
        other.grow(AGENT, *part(added))
    for added in random.sample(undone, len(undone)):
        other.take_back(AGENT, *part(added))

    assert other.leader("default") == plain.leader("default")
    for intent in ("i0", "i1", "i2"):
        counted = plain.counted(AGENT, intent, CAP)
        assert other.counted(AGENT, intent, CAP) == counted
        n = counted.sums[0] + sum([told.n for told in counted.beyond])
        s = counted.sums[1] + sum([told.s for told in counted.beyond])
        assert (n, s) == plain.of(AGENT, intent)
        assert all(0 <= told.s <= told.n for told in counted.beyond)
        assert 0 <= counted.sums[1] <= counted.sums[0]


@given(st.lists(ADDED, min_size=1, max_size=12))
def test_more_of_one_caller_takes_nothing_from_what_another_may_count_for(told: list[Any]) -> None:
    # without contradictions: all tell the same
    before, after = led_by_nobody(), led_by_nobody()
    for caller, _, n, _ in told:
        post(before, caller, n, reward=0.5)
        post(after, caller, n, reward=0.5)
    post(after, "late", 7, reward=0.5)

    assert after.counted(AGENT, "billing", CAP).sums[0] >= before.counted(AGENT, "billing", CAP).sums[0]


def test_differences_say_how_sums_changed() -> None:
    evidence, stored = Evidence(), Evidence()
    for caller, n in (("ann", 30), ("bob", 60), ("ann", 40)):
        for _ in range(n):
            stored.add(evidence.grow(AGENT, ("billing", U, U // 3), caller))
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
    folded = evidence.fold(CAP)

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
    evidence.fold_caller("ann", CAP)
    evidence.take_back(AGENT, ("billing", U, U), "ann")

    assert list(evidence.rows()) == []


def test_what_is_copied_is_what_the_rows_say() -> None:
    evidence = Evidence(max_caller_cells=3)
    for nth in range(60):
        post(evidence, f"c{nth % 5}", 1, intent=f"i{nth % 3}")
        evidence.fold(CAP)
    evidence.scale(AGENT, 0.5, 0.4)
    evidence.take_back(AGENT, ("i0", 100 * U, 0), "c0")
    evidence.fold_caller("c1", CAP)

    assert sorted(evidence.copied()) == list(evidence.rows())
    assert len(evidence.copied()) > 3


def test_of_a_folded_caller_stays_what_counted_for_others() -> None:
    evidence = led_by_nobody()
    for nth in range(10):
        post(evidence, f"c{nth}", 20, reward=0.8)
    post(evidence, "liar", 1000, reward=0.0)
    post(evidence, "busy", 100, reward=0.8)
    before = evidence.counted(AGENT, "billing", CAP).sums
    rows = [*evidence.fold_caller("liar", CAP), *evidence.fold_caller("busy", CAP)]

    assert evidence.counted(AGENT, "billing", CAP).sums == before
    assert {row.caller: row.n for row in rows} == {"liar": -1000 * U, "busy": -100 * U, "": 22_222_222}
