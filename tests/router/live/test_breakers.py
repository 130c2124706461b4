from __future__ import annotations

from random import Random

import pytest

from models.card import AgentKey
from models.live_policy import BreakerPolicy, DependencyPolicy
from router.live.breaker_state import BreakerReason, BreakerState, DependencyKey, TargetKey, Transition
from router.live.breakers import Breakers
from router.live.keys import CallId

POLICY = BreakerPolicy(min_calls=5, open_ms=1000, jitter=0.0, window_ms=10_000)
SHARED = DependencyPolicy(min_calls=5, open_ms=1000, jitter=0.0, window_ms=10_000, min_agents=2)
CRM = DependencyKey("crm", "default")


def agent(name: str) -> AgentKey:
    return ("default", name, "1.0.0")


def key_of(name: str, caller: str = "planner") -> TargetKey:
    return TargetKey(caller, agent(name))


def call(n: int) -> CallId:
    return ("decision", n)


def board_of(max_breakers: int = 100) -> Breakers:
    return Breakers(Random(0), max_breakers)


def open_it(board: Breakers, key: TargetKey, now_ms: float = 0.0) -> tuple[Transition, ...]:
    changes: tuple[Transition, ...] = ()
    for n in range(5):
        changes += board.record(key, call(n), True, now_ms, POLICY)
    return changes


def names(board: Breakers, now_ms: float = 0.0) -> list[tuple[str, BreakerState]]:
    return [(view.key[1][1], view.state) for view in board.listed(now_ms)]


def test_what_nothing_is_known_of_is_admitted_and_looking_makes_no_breaker() -> None:
    board = board_of()
    assert board.admits(key_of("a"), 0, POLICY)
    assert board.take(key_of("a"), call(1), 0, POLICY)
    board.take_back(key_of("a"), call(1), 0)
    board.give_up(key_of("a"), call(1))
    assert (len(board), board.listed(0), board.view(key_of("a"), 0)) == (0, [], None)


def test_a_breaker_is_between_one_caller_and_one_version_of_an_agent() -> None:
    board = board_of()
    assert [change.key for change in open_it(board, key_of("a"))] == [key_of("a")]
    assert not board.admits(key_of("a"), 0, POLICY)
    assert not board.take(key_of("a"), call(9), 0, POLICY)
    assert board.admits(key_of("a", caller="other"), 0, POLICY)
    assert board.admits(key_of("b"), 0, POLICY)
    assert board.admits(TargetKey("planner", ("default", "a", "1.0.1")), 0, POLICY)


def test_targets_in_trouble_are_those_of_the_caller_until_they_close() -> None:
    board = board_of()
    open_it(board, key_of("a"))
    board.record(key_of("b"), call(1), True, 0, POLICY)
    assert list(board.troubled_targets("planner")) == [agent("a")]
    assert list(board.troubled_targets("other")) == []
    assert board.take(key_of("a"), call(50), 1000, POLICY)
    assert list(board.troubled_targets("planner")) == [agent("a")]
    changes = board.record(key_of("a"), call(50), False, 1010, POLICY)
    assert [change.after for change in changes] == [BreakerState.HALF_OPEN, BreakerState.CLOSED]
    assert list(board.troubled_targets("planner")) == []
    assert board.admits(key_of("a"), 1010, POLICY)


def test_a_probe_given_up_frees_its_place() -> None:
    board = board_of()
    open_it(board, key_of("a"))
    assert board.take(key_of("a"), call(50), 1000, POLICY)
    assert not board.admits(key_of("a"), 1000, POLICY)
    board.give_up(key_of("a"), call(50))
    assert board.admits(key_of("a"), 1000, POLICY)


def test_open_times_that_are_over_are_told_once_in_the_order_of_their_ends() -> None:
    board = board_of()
    open_it(board, key_of("late"), 200)
    board.record(key_of("early"), call(1), True, 100, POLICY, retry_after_ms=300)
    assert board.due(399) == []
    assert [(change.key, change.at_ms) for change in board.due(5000)] == [
        (key_of("early"), 400),
        (key_of("late"), 1200),
    ]
    assert board.due(5000) == []


def test_outcomes_taken_back_leave_the_counts() -> None:
    board = board_of()
    for n in range(4):
        board.record(key_of("a"), call(n), True, 0, POLICY)
    board.take_back(key_of("a"), call(0), 0)
    view = board.view(key_of("a"), 0)
    assert view is not None
    assert (view.n_calls, view.n_failures) == (3, 3)
    assert board.record(key_of("a"), call(9), True, 0, POLICY) == ()


def test_those_in_trouble_are_listed_first() -> None:
    board = board_of()
    board.record(key_of("well"), call(1), False, 0, POLICY)
    open_it(board, key_of("ill"))
    assert names(board) == [("ill", BreakerState.OPEN), ("well", BreakerState.CLOSED)]
    assert names(board, 1000) == [("ill", BreakerState.HALF_OPEN), ("well", BreakerState.CLOSED)]


def test_closed_ones_whose_window_is_empty_are_let_go_of_as_outcomes_come() -> None:
    board = board_of()
    for n in range(50):
        board.record(key_of(f"old-{n}"), call(n), False, 0, POLICY)
    for n in range(50):
        board.record(key_of("new"), call(n), False, 10_000 + n, POLICY)
    assert names(board) == [("new", BreakerState.CLOSED)]


def test_at_the_bound_the_closed_one_with_the_oldest_outcome_goes() -> None:
    board = board_of(max_breakers=3)
    for name in ("a", "b", "c", "a"):
        board.record(key_of(name), call(1), True, 0, POLICY)
    board.record(key_of("d"), call(1), True, 0, POLICY)
    assert [name for name, _ in names(board)] == ["c", "a", "d"]


def test_an_open_one_is_never_forgotten_before_a_closed_one() -> None:
    board = board_of(max_breakers=3)
    open_it(board, key_of("ill"))
    for n in range(20):
        assert board.record(key_of(f"well-{n}"), call(1), True, 0, POLICY) == ()
    assert [name for name, _ in names(board)] == ["ill", "well-18", "well-19"]


def test_where_all_are_open_the_oldest_is_forgotten_and_told() -> None:
    board = board_of(max_breakers=2)
    open_it(board, key_of("a"))
    open_it(board, key_of("b"))
    assert board.record(key_of("c"), call(1), True, 500, POLICY) == (
        Transition(key_of("a"), BreakerState.OPEN, BreakerState.CLOSED, BreakerReason.FORGOTTEN, 500, None),
    )
    assert len(board) == 2
    assert list(board.troubled_targets("planner")) == [agent("b")]
    assert board.admits(key_of("a"), 500, POLICY)


def test_switching_it_off_admits_all_and_the_next_outcome_forgets_the_breaker() -> None:
    board, off = board_of(), POLICY.model_copy(update={"enabled": False})
    open_it(board, key_of("a"))
    assert board.admits(key_of("a"), 0, off)
    changes = board.record(key_of("a"), call(9), True, 0, off)
    assert [(change.after, change.reason) for change in changes] == [(BreakerState.CLOSED, BreakerReason.SWITCHED_OFF)]
    assert board.record(key_of("a"), call(9), True, 0, off) == ()
    assert len(board) == 0
    assert board.admits(key_of("a"), 0, POLICY)


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_breakers >= 1, got 0"):
        board_of(0)


def failing(board: Breakers, names: str, n_dependents: int, named: bool = False) -> list[BreakerReason]:
    """Reasons of changes after failures of these agents, one call each."""
    return [
        change.reason
        for n, name in enumerate(names)
        for change in board.record_dependency(CRM, call(n), True, agent(name), n_dependents, 0, SHARED, named=named)
    ]


def test_a_dependency_opens_where_several_agents_failed() -> None:
    board = board_of()
    assert failing(board, "aaaaaaaaa", n_dependents=3) == []
    board = board_of()
    assert failing(board, "aaaab", n_dependents=3) == [BreakerReason.FAILURE_SHARE]
    assert not board.admits(CRM, 0, SHARED)
    assert board.admits(DependencyKey("crm", "other"), 0, SHARED)
    assert board.troubled_targets("crm") == {}


def test_of_one_dependent_its_own_failures_open_a_dependency() -> None:
    assert failing(board_of(), "aaaaa", n_dependents=1) == [BreakerReason.FAILURE_SHARE]


def test_an_outcome_that_names_the_dependency_opens_it_for_all() -> None:
    board = board_of()
    failing(board, "aaaaa", n_dependents=3)
    changes = board.record_dependency(CRM, call(9), True, agent("a"), 3, 0, SHARED, named=True)
    assert [change.after for change in changes] == [BreakerState.OPEN]


def test_a_named_failure_among_few_calls_does_not_open_a_dependency() -> None:
    assert failing(board_of(), "aaaa", n_dependents=3, named=True) == []


def test_successes_of_all_agents_count_in_the_share_of_a_dependency() -> None:
    board = board_of()
    for n in range(20):
        board.record_dependency(CRM, ("well", n), False, agent("c"), 3, 0, SHARED)
    assert failing(board, "aabbc", n_dependents=3) == []
    assert board.record_dependency(CRM, call(8), True, agent("a"), 3, 0, SHARED)[0].after is BreakerState.OPEN


def test_a_dependency_closes_by_a_probe_of_any_agent() -> None:
    board = board_of()
    failing(board, "aabbb", n_dependents=3)
    assert [board.take(CRM, call(n), 1000, SHARED) for n in (50, 51)] == [True, False]
    changes = board.record_dependency(CRM, call(50), False, agent("c"), 3, 1001, SHARED)
    assert changes[-1].after is BreakerState.CLOSED
    assert board.admits(CRM, 1001, SHARED)
