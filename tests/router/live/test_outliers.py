from __future__ import annotations

import doctest
from itertools import count

import pytest

from models.card import AgentKey
from models.live_policy import EjectionPolicy
from router.live import peer_medians
from router.live.keys import CallId
from router.live.outliers import Ejection, EjectionReason, Group, Outliers

GROUP: Group = ("default", "refund_status")
POLICY = EjectionPolicy(
    consecutive_failures=3, min_calls=5, window_ms=1000, base_ms=100, max_ms=250, max_ejected_share=0.5
)
COMPARED = POLICY.model_copy(update={"consecutive_failures": 1000})
_NUMBERS = count()


def agent(name: str) -> AgentKey:
    return ("default", name, "1.0.0")


def call() -> CallId:
    return ("decision", next(_NUMBERS))


def answer(
    outliers: Outliers,
    name: str,
    outcomes: str,
    now_ms: float = 0.0,
    *,
    n_agents: int = 4,
    latency_ms: float | None = 100.0,
    policy: EjectionPolicy = POLICY,
    began_ms: float | None = None,
) -> list[Ejection]:
    """The ejections that follow from an agent's outcomes, F a failure and s a success, all at one instant."""
    found = [
        outliers.record(
            GROUP, agent(name), call(), each == "F", latency_ms, n_agents, now_ms, policy, began_ms=began_ms
        )
        for each in outcomes
    ]
    return [each for each in found if each is not None]


def ejected(outliers: Outliers, names: str, now_ms: float = 0.0) -> str:
    return "".join(name for name in names if outliers.is_ejected(agent(name), GROUP, now_ms))


def test_examples_hold() -> None:
    failed, tried = doctest.testmod(peer_medians)
    assert (failed, tried > 0) == (0, True)


def test_failures_in_a_row_eject_for_a_time() -> None:
    outliers = Outliers()
    assert answer(outliers, "a", "FFsFF", 7.0) == []
    found = answer(outliers, "a", "F", 7.0)
    assert found == [Ejection(GROUP, agent("a"), EjectionReason.CONSECUTIVE_FAILURES, 7.0, 107.0, 1)]
    assert outliers.listed(106.9) == found
    assert (ejected(outliers, "ab", 106.9), ejected(outliers, "ab", 107.0)) == ("a", "")
    assert outliers.listed(107.0) == []
    assert not outliers.is_ejected(agent("a"), ("default", "other_intent"), 7.0)


@pytest.mark.parametrize(
    ("n_agents", "share", "expected"),
    [(1, 0.5, ""), (1, 1.0, ""), (2, 0.5, "a"), (3, 0.5, "a"), (3, 0.3, ""), (3, 0.7, "ab"), (4, 0.5, "ab"),
     (3, 1.0, "abc"), (2, 0.49, ""), (3, 0.0, "")],
)  # fmt: skip
def test_the_ejected_share_holds_after_the_act(n_agents: int, share: float, expected: str) -> None:
    outliers, policy = Outliers(), POLICY.model_copy(update={"max_ejected_share": share})
    names = "abcd"[:n_agents]
    for name in names:
        answer(outliers, name, "FFFFFF", n_agents=n_agents, policy=policy)
    assert ejected(outliers, names) == expected


def test_a_share_that_floats_cannot_hold_is_met_exactly() -> None:
    outliers, policy = Outliers(), POLICY.model_copy(update={"max_ejected_share": 0.29})
    for n in range(100):
        answer(outliers, f"agent-{n}", "FFF", n_agents=100, policy=policy)
    assert len(outliers.listed(0.0)) == 29


def test_an_agent_for_which_there_was_no_room_is_ejected_when_there_is() -> None:
    outliers = Outliers()
    answer(outliers, "a", "FFF", 0.0, n_agents=2)
    assert answer(outliers, "b", "FFF", 99.0, n_agents=2) == []
    assert [each.agent for each in answer(outliers, "b", "F", 100.0, n_agents=2)] == [agent("b")]


def test_a_success_rate_far_below_the_peers_ejects() -> None:
    outliers = Outliers()
    for name in "abc":
        answer(outliers, name, "ssssssssss", policy=COMPARED)
    assert answer(outliers, "d", "ssssssFFF", policy=COMPARED)[0].reason is EjectionReason.SUCCESS_RATE


def test_a_success_rate_below_the_peers_by_the_gap_itself_does_not() -> None:
    outliers = Outliers()
    for name in "abc":
        answer(outliers, name, "ssssssssss", policy=COMPARED)
    assert answer(outliers, "d", "sssssssFFF", policy=COMPARED) == []


def test_where_all_do_badly_nobody_is_an_outlier() -> None:
    outliers = Outliers()
    assert [each for name in "abcd" for each in answer(outliers, name, "sFFsFFsFF", policy=COMPARED)] == []


def test_one_peer_or_peers_with_too_few_calls_are_nothing_to_compare_with() -> None:
    outliers = Outliers()
    answer(outliers, "a", "ssssss", policy=COMPARED)
    answer(outliers, "b", "ssss", policy=COMPARED)
    assert answer(outliers, "d", "sFFFFFFF", policy=COMPARED) == []
    answer(outliers, "b", "s", policy=COMPARED)
    assert len(answer(outliers, "d", "F", 20.0, policy=COMPARED)) == 1


def test_a_latency_of_many_times_that_of_the_peers_ejects() -> None:
    outliers = Outliers()
    for name, latency_ms in (("a", 100.0), ("b", 120.0), ("c", 9000.0)):
        answer(outliers, name, "sssss", latency_ms=latency_ms, n_agents=1, policy=COMPARED)
    assert answer(outliers, "d", "sssss", latency_ms=360.0, policy=COMPARED) == []
    assert answer(outliers, "d", "s", latency_ms=365.0, policy=COMPARED)[0].reason is EjectionReason.LATENCY


def test_neither_unknown_latencies_nor_those_of_failures_count() -> None:
    outliers = Outliers()
    for name in "abc":
        answer(outliers, name, "sssss", policy=COMPARED)
    assert answer(outliers, "d", "sssssss", latency_ms=None, policy=COMPARED) == []
    assert answer(outliers, "d", "F", latency_ms=1e6, policy=COMPARED) == []


def test_an_ejected_agent_is_no_peer() -> None:
    outliers = Outliers()
    for name in "ab":
        answer(outliers, name, "sssss", policy=COMPARED)
    answer(outliers, "c", "FFF")
    answer(outliers, "b", "FFF")
    assert ejected(outliers, "abcd") == "bc"
    assert answer(outliers, "d", "sFFFFFF", n_agents=100, policy=COMPARED) == []


def test_times_grow_with_each_ejection_up_to_the_longest() -> None:
    outliers, now_ms, lengths = Outliers(), 0.0, []
    for _ in range(4):
        (ejection,) = answer(outliers, "a", "FFF", now_ms)
        lengths.append(ejection.until_ms - now_ms)
        now_ms = ejection.until_ms
    assert lengths == [100.0, 200.0, 250.0, 250.0]


def test_one_earlier_ejection_is_forgotten_for_each_window_that_an_agent_is_back() -> None:
    outliers = Outliers()
    answer(outliers, "a", "FFF", 0.0)
    assert answer(outliers, "a", "FFF", 100.0)[0][4:] == (300.0, 2)
    assert answer(outliers, "a", "FFF", 1299.0)[0][4:] == (1299.0 + 250.0, 3)
    assert answer(outliers, "a", "FFF", 1549.0 + 2000.0)[0][4:] == (3549.0 + 200.0, 2)
    assert answer(outliers, "a", "FFF", 3749.0 + 9000.0)[0][4:] == (12_749.0 + 100.0, 1)


def test_it_comes_back_with_an_empty_window_and_without_what_began_before() -> None:
    outliers = Outliers()
    answer(outliers, "a", "FFF", 0.0)
    assert answer(outliers, "a", "FFFFF", 50.0) == []
    assert answer(outliers, "a", "FFFFF", 100.0, began_ms=99.0) == []
    assert answer(outliers, "a", "FF", 100.0, began_ms=100.0) == []
    assert len(answer(outliers, "a", "F", 100.0)) == 1


def test_outcomes_taken_back_do_not_eject() -> None:
    outliers = Outliers()
    answer(outliers, "a", "F")
    amended = call()
    outliers.record(GROUP, agent("a"), amended, True, None, 4, 0.0, POLICY)
    outliers.take_back(GROUP, agent("a"), amended, 0.0)
    outliers.take_back(GROUP, agent("unknown"), amended, 0.0)
    assert answer(outliers, "a", "F") == []
    assert len(answer(outliers, "a", "F")) == 1


def test_a_group_panics_where_less_than_the_share_is_able() -> None:
    outliers = Outliers()
    assert not outliers.in_panic(GROUP, 10, 10, 0.0, POLICY)
    for name in "ab":
        answer(outliers, name, "FFF", n_agents=10)
    assert not outliers.in_panic(GROUP, 10, 5, 0.0, POLICY)
    assert outliers.in_panic(GROUP, 10, 6, 0.0, POLICY)
    assert not outliers.in_panic(GROUP, 10, 6, 100.0, POLICY)


def test_the_ends_of_ejections_are_told_once_in_order() -> None:
    outliers = Outliers()
    answer(outliers, "b", "FFF", 10.0)
    answer(outliers, "a", "FFF", 0.0)
    assert outliers.due(99.0) == []
    assert [each.agent for each in outliers.due(200.0)] == [agent("a"), agent("b")]
    assert outliers.due(200.0) == []


def test_switching_it_off_ends_ejections_with_the_next_outcome() -> None:
    outliers = Outliers()
    answer(outliers, "a", "FFF")
    assert answer(outliers, "b", "FFF", policy=POLICY.model_copy(update={"enabled": False})) == []
    assert (ejected(outliers, "ab"), len(outliers)) == ("", 0)


def test_what_has_no_calls_and_nothing_to_remember_is_let_go_of() -> None:
    outliers = Outliers()
    answer(outliers, "ill", "FFF")
    for n in range(50):
        answer(outliers, f"old-{n}", "s")
    answer(outliers, "new", "s" * 60, 1099.0)
    assert len(outliers) == 2
    answer(outliers, "new", "ss", 1100.0)
    assert len(outliers) == 1


def test_at_the_bound_the_oldest_goes_and_an_ejected_one_last() -> None:
    outliers = Outliers(max_records=3)
    answer(outliers, "ill", "FFF")
    for n in range(20):
        answer(outliers, f"well-{n}", "s")
    assert len(outliers) == 3
    assert outliers.is_ejected(agent("ill"), GROUP, 0.0)


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_records >= 1, got 0"):
        Outliers(0)
