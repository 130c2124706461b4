from __future__ import annotations

import doctest

from models.card import AgentKey
from router.live import sessions as module
from router.live.sessions import SessionKey, Sessions, Waiting

A: AgentKey = ("default", "a", "1.0.0")
B: AgentKey = ("default", "b", "1.0.0")
S1 = SessionKey("shop", "default", "s1")


def key(n: int) -> SessionKey:
    return SessionKey("shop", "default", f"s{n}")


def test_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0


def test_an_agent_that_asked_back_waits_for_its_time() -> None:
    sessions = Sessions()
    sessions.awaits(S1, A, "refund", 100.0, 900.0)

    assert sessions.waiting(S1, 999.0) == Waiting(A, "refund", 1000.0)
    assert sessions.waiting(S1, 1000.0) is None
    assert len(sessions) == 0


def test_neither_another_caller_nor_another_namespace_gets_the_session() -> None:
    sessions = Sessions()
    sessions.awaits(S1, A, "refund", 0.0, 900.0)

    for other in (S1._replace(caller="thief"), S1._replace(caller=None), S1._replace(namespace="other")):
        assert sessions.waiting(other, 1.0) is None
        assert not sessions.done(other)
    assert sessions.waiting(S1, 1.0) is not None


def test_the_agent_that_asked_last_waits() -> None:
    sessions = Sessions()
    sessions.awaits(S1, A, "refund", 0.0, 900.0)
    sessions.awaits(S1, B, "booking", 10.0, 900.0)

    assert sessions.waiting(S1, 10.0) == Waiting(B, "booking", 910.0)


def test_once_answered_nobody_waits() -> None:
    sessions = Sessions()
    sessions.awaits(S1, A, "refund", 0.0, 900.0)

    assert [sessions.done(S1), sessions.done(S1)] == [True, False]
    assert sessions.waiting(S1, 1.0) is None


def test_a_time_of_0_leaves_it_out() -> None:
    sessions = Sessions()
    sessions.awaits(S1, A, "refund", 0.0, 900.0)
    sessions.awaits(S1, B, "booking", 0.0, 0.0)

    assert sessions.waiting(S1, 0.0) is None
    assert len(sessions) == 0


def test_of_too_many_sessions_the_one_heard_of_longest_ago_is_forgotten() -> None:
    sessions = Sessions(max_sessions=3)
    for n in range(3):
        sessions.awaits(key(n), A, "refund", 0.0, 900.0)
    sessions.awaits(key(0), A, "refund", 1.0, 900.0)
    sessions.awaits(key(3), A, "refund", 1.0, 900.0)

    assert [n for n in range(4) if sessions.waiting(key(n), 1.0)] == [0, 2, 3]


def test_sessions_that_are_over_go_as_others_come() -> None:
    sessions = Sessions()
    for n in range(1000):
        sessions.awaits(key(n), A, "refund", float(n), 50.0)
        sessions.failed_again(key(n), float(n), 50.0)

    assert len(sessions) == 100


def test_failures_count_in_a_row() -> None:
    sessions = Sessions()

    assert [sessions.failed_again(S1, float(n), 900.0) for n in range(3)] == [1, 2, 3]
    assert sessions.n_failures(S1, 2.0) == 3
    sessions.succeeded(S1)
    assert sessions.n_failures(S1, 2.0) == 0
    assert sessions.failed_again(S1, 2.0, 900.0) == 1


def test_failures_count_by_session_and_caller() -> None:
    sessions = Sessions()
    sessions.failed_again(S1, 0.0, 900.0)

    assert sessions.n_failures(key(2), 0.0) == 0
    assert sessions.n_failures(S1._replace(caller="other"), 0.0) == 0


def test_failures_are_forgotten_some_time_after_the_last() -> None:
    sessions = Sessions()
    sessions.failed_again(S1, 0.0, 900.0)
    sessions.failed_again(S1, 800.0, 900.0)

    assert [sessions.n_failures(S1, ms) for ms in (1699.0, 1700.0)] == [2, 0]
    assert sessions.failed_again(S1, 1700.0, 900.0) == 1


def test_of_too_many_failing_sessions_the_one_heard_of_longest_ago_counts_from_0() -> None:
    sessions = Sessions(max_sessions=2)
    for n in (0, 1, 0, 2):
        sessions.failed_again(key(n), 0.0, 900.0)

    assert [sessions.n_failures(key(n), 0.0) for n in range(3)] == [2, 0, 1]
    sessions.failed_again(key(2), 0.0, 900.0)
    assert [sessions.n_failures(key(n), 0.0) for n in range(3)] == [2, 0, 2]


def test_an_answer_ends_the_wait_and_not_the_count() -> None:
    sessions = Sessions()
    sessions.failed_again(S1, 0.0, 900.0)
    sessions.awaits(S1, A, "refund", 0.0, 900.0)
    sessions.done(S1)

    assert sessions.n_failures(S1, 1.0) == 1


def test_a_session_is_forgotten_for_one_caller_or_for_all() -> None:
    other = S1._replace(caller="other")
    for caller, left in (("shop", [False, True]), (None, [False, False])):
        sessions = Sessions()
        for session in (S1, other):
            sessions.awaits(session, A, "refund", 0.0, 900.0)
            sessions.failed_again(session, 0.0, 900.0)
        sessions.awaits(key(2), A, "refund", 0.0, 900.0)
        sessions.forget("s1", caller)

        assert [sessions.waiting(session, 1.0) is not None for session in (S1, other)] == left
        assert [sessions.n_failures(session, 1.0) > 0 for session in (S1, other)] == left
        assert sessions.waiting(key(2), 1.0) is not None
