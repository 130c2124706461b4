from __future__ import annotations

import doctest
import tracemalloc

import pytest

from models.card import AgentKey
from router.live import leases as module
from router.live.leases import Lease, Leases

A: AgentKey = ("default", "a", "1.0.0")
B: AgentKey = ("default", "b", "1.0.0")


def test_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0


def test_of_many_at_once_as_many_get_a_place_as_there_are() -> None:
    leases = Leases()

    taken = [leases.take(f"d{n}", A, 32, expires_ms=1000.0, now_ms=0.0) for n in range(100)]

    assert taken == [True] * 32 + [False] * 68
    assert leases.in_flight(A) == len(leases) == 32


def test_agents_and_their_versions_have_places_of_their_own() -> None:
    leases = Leases()
    newer = ("default", "a", "2.0.0")

    assert all(leases.take(str(agent), agent, 1, 1000.0, 0.0) for agent in (A, B, newer))
    assert [leases.in_flight(agent) for agent in (A, B, newer)] == [1, 1, 1]


def test_a_place_is_given_back_once() -> None:
    leases = Leases()
    leases.take("d", A, 1, 1000.0, 0.0)

    assert leases.holds("d")
    assert [leases.give_back("d"), leases.give_back("d"), leases.give_back("never")] == [True, False, False]
    assert not leases.holds("d")
    assert (leases.in_flight(A), len(leases), leases.expire(2000.0)) == (0, 0, [])


def test_a_lease_expires_at_its_instant_and_once() -> None:
    leases = Leases()
    leases.take("late", A, 5, 1000.0, 0.0)
    leases.take("early", B, 5, 500.0, 0.0)

    assert leases.expire(499.9) == []
    assert leases.expire(1000.0) == [Lease("early", B, 500.0), Lease("late", A, 1000.0)]
    assert leases.expire(1000.0) == []
    assert [leases.give_back("late"), leases.in_flight(A), len(leases)] == [False, 0, 0]


def test_a_lease_taken_twice_is_a_mistake() -> None:
    leases = Leases()
    leases.take("d", A, 5, 1000.0, 0.0)

    with pytest.raises(ValueError, match=r"'d' holds a place at .*'a'.*'b'"):
        leases.take("d", B, 5, 1000.0, 0.0)
    assert (leases.in_flight(A), leases.in_flight(B)) == (1, 0)


def test_a_refused_lease_may_try_another_agent() -> None:
    leases = Leases()
    leases.take("other", A, 1, 1000.0, 0.0)

    assert not leases.take("d", A, 1, 1000.0, 0.0)
    assert not leases.holds("d")
    assert leases.take("d", B, 1, 1000.0, 0.0)


def test_no_place_is_to_be_had_where_there_are_none_and_any_where_there_is_no_limit() -> None:
    leases = Leases()

    assert not leases.take("d", A, 0, 1000.0, 0.0)
    assert all(leases.take(str(n), A, None, 1000.0, 0.0) for n in range(1000))
    assert leases.in_flight(A) == 1000


def test_a_lease_that_is_over_keeps_nobody_out_and_is_listed_later() -> None:
    leases = Leases()
    leases.take("over", A, 1, 100.0, 0.0)

    assert not leases.take("d", A, 1, 1000.0, now_ms=99.0)
    assert leases.take("d", A, 1, 1000.0, now_ms=100.0)
    assert not leases.give_back("over")
    assert leases.expire(100.0) == [Lease("over", A, 100.0)]
    assert leases.expire(100.0) == []


def test_a_moved_lease_frees_its_place_and_holds_one_also_where_all_are_taken() -> None:
    leases = Leases()
    leases.take("d", A, 1, 1000.0, 0.0)
    leases.take("other", B, 1, 1000.0, 0.0)

    assert leases.move("d", B, 2000.0)
    assert (leases.in_flight(A), leases.in_flight(B), len(leases)) == (0, 2, 2)
    assert leases.expire(1999.0) == [Lease("other", B, 1000.0)]
    assert leases.expire(2000.0) == [Lease("d", B, 2000.0)]


def test_a_retry_on_the_same_agent_holds_the_same_place_for_longer() -> None:
    leases = Leases()
    leases.take("d", A, 1, 1000.0, 0.0)

    assert leases.move("d", A, 3000.0)
    assert leases.in_flight(A) == 1
    assert leases.expire(1000.0) == []
    assert leases.expire(3000.0) == [Lease("d", A, 3000.0)]


def test_a_lease_that_is_over_moves_nowhere() -> None:
    leases = Leases()
    leases.take("d", A, 1, 1000.0, 0.0)
    leases.expire(1000.0)

    assert not leases.move("d", B, 5000.0)
    assert leases.in_flight(B) == 0


def test_a_lease_given_back_may_be_taken_again_and_keeps_its_new_time() -> None:
    leases = Leases()
    leases.take("d", A, 1, 100.0, 0.0)
    leases.give_back("d")
    leases.take("d", A, 1, 1000.0, 50.0)

    assert leases.expire(100.0) == []
    assert leases.expire(1000.0) == [Lease("d", A, 1000.0)]


def test_memory_does_not_grow_with_what_is_over() -> None:
    leases = Leases()
    leases.take("moving", A, None, 1e12, 0.0)
    tracemalloc.start()
    try:
        for n in range(20_000):
            leases.take(f"d{n}", ("default", f"agent{n}", "1.0.0"), 1, 1e9 + n, float(n))
            leases.move("moving", B, 1e12 + n)
            leases.give_back(f"d{n}")
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(leases) == 1
    assert grown < 50_000
