from __future__ import annotations

import doctest

from models.card import AgentKey
from models.live_policy import PoisonPolicy
from router.live import poison as module
from router.live.poison import MAX_FAILURES, Poison, Verdict

A: AgentKey = ("default", "a", "1.0.0")
B: AgentKey = ("default", "b", "1.0.0")
C: AgentKey = ("default", "c", "1.0.0")
TWO = PoisonPolicy(agents=2, ttl_ms=1000)
THREE = PoisonPolicy(agents=3, ttl_ms=1000)


def poisoned() -> Poison:
    poison = Poison()
    poison.failed("f", A, ("d1", 1), 0.0, TWO)
    assert poison.failed("f", B, ("d1", 2), 10.0, TWO) == Verdict(True, (("d1", 1),))
    return poison


def test_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0


def test_one_agent_may_fail_a_request_as_often_as_it_likes() -> None:
    poison = Poison()

    verdicts = [poison.failed("f", A, ("d", n), float(n), TWO) for n in range(5)]

    assert verdicts == [Verdict(False)] * 5
    assert not poison.is_poison("f", 5.0)


def test_the_failure_on_a_second_agent_takes_back_all_that_were_charged() -> None:
    poison = Poison()
    for n in range(3):
        poison.failed("f", A, ("d", n), 0.0, TWO)

    assert poison.failed("f", B, ("d", 3), 0.0, TWO) == Verdict(True, (("d", 0), ("d", 1), ("d", 2)))
    assert poison.failed("f", C, ("d", 4), 0.0, TWO) == Verdict(True)


def test_as_many_agents_as_the_policy_says_make_it_poison() -> None:
    poison = Poison()

    verdicts = [poison.failed("f", agent, (agent[1], 1), 0.0, THREE) for agent in (A, B, C)]

    assert verdicts == [Verdict(False), Verdict(False), Verdict(True, (("a", 1), ("b", 1)))]


def test_versions_of_an_agent_are_one_agent() -> None:
    poison = Poison()
    poison.failed("f", A, ("d", 1), 0.0, TWO)

    assert not poison.failed("f", ("default", "a", "2.0.0"), ("d", 2), 0.0, TWO).is_poison
    assert poison.failed("f", ("other", "a", "1.0.0"), ("d", 3), 0.0, TWO).is_poison


def test_other_requests_are_not_concerned() -> None:
    poison = poisoned()

    assert not poison.is_poison("g", 10.0)
    assert poison.failed("g", B, ("d2", 1), 10.0, TWO) == Verdict(False)


def test_poison_lasts_for_its_time_and_failures_then_count_anew() -> None:
    poison = poisoned()

    assert [poison.is_poison("f", ms) for ms in (1009.0, 1010.0, 1009.0)] == [True, False, False]
    assert poison.failed("f", C, ("d2", 1), 1010.0, TWO) == Verdict(False)


def test_failures_far_apart_are_no_evidence() -> None:
    poison = Poison()
    poison.failed("f", A, ("d1", 1), 0.0, TWO)

    assert poison.failed("f", B, ("d2", 1), 1000.0, TWO) == Verdict(False)
    assert poison.failed("f", A, ("d3", 1), 1999.0, TWO) == Verdict(True, (("d2", 1),))


def test_the_same_call_counts_once() -> None:
    poison = Poison()
    poison.failed("f", A, ("d", 1), 0.0, TWO)

    assert poison.failed("f", B, ("d", 1), 0.0, TWO) == Verdict(False)
    assert poison.failed("f", B, ("d", 2), 0.0, TWO) == Verdict(True, (("d", 1),))
    assert poison.failed("f", B, ("d", 2), 0.0, TWO) == Verdict(True)


def test_without_the_amended_failure_the_others_are_charged_again() -> None:
    poison = poisoned()

    assert poison.take_back(("d1", 2)) == (("d1", 1),)
    assert not poison.is_poison("f", 10.0)
    assert poison.take_back(("d1", 2)) == ()
    assert poison.failed("f", C, ("d2", 1), 20.0, TWO) == Verdict(True, (("d1", 1),))


def test_it_stays_poison_while_enough_agents_have_failed() -> None:
    poison = poisoned()
    poison.failed("f", C, ("d2", 1), 20.0, TWO)

    assert poison.take_back(("d1", 1)) == ()
    assert poison.is_poison("f", 20.0)
    assert poison.take_back(("d1", 2)) == (("d2", 1),)
    assert not poison.is_poison("f", 20.0)


def test_a_failure_taken_back_before_is_no_evidence() -> None:
    poison = Poison()
    poison.failed("f", A, ("d", 1), 0.0, TWO)

    assert poison.take_back(("d", 1)) == ()
    assert len(poison) == 0
    assert poison.failed("f", B, ("d", 2), 0.0, TWO) == Verdict(False)


def test_a_success_clears_the_request() -> None:
    poison = Poison()
    poison.failed("f", A, ("d", 1), 0.0, TWO)

    assert poison.succeeded("f") == ()
    assert poison.failed("f", B, ("d", 2), 0.0, TWO) == Verdict(False)
    assert poison.succeeded("never") == ()


def test_a_success_of_what_was_poison_charges_the_agents_again() -> None:
    poison = poisoned()

    assert poison.succeeded("f") == (("d1", 1), ("d1", 2))
    assert not poison.is_poison("f", 10.0)
    assert poison.take_back(("d1", 1)) == ()


def test_of_too_many_requests_the_one_heard_of_longest_ago_is_forgotten() -> None:
    poison = Poison(max_requests=2)
    poison.failed("f", A, ("f", 1), 0.0, TWO)
    poison.failed("f", B, ("f", 2), 0.0, TWO)
    poison.failed("g", A, ("g", 1), 0.0, TWO)
    assert poison.is_poison("f", 0.0)
    poison.failed("h", A, ("h", 1), 0.0, TWO)

    assert (len(poison), poison.is_poison("f", 0.0)) == (2, True)
    assert poison.failed("g", B, ("g", 2), 0.0, TWO) == Verdict(False)
    assert poison.take_back(("g", 1)) == ()


def test_a_request_that_fails_again_is_kept_before_others() -> None:
    poison = Poison(max_requests=2)
    for nth, name in enumerate("fgfh"):
        poison.failed(name, A, ("d", nth), 0.0, TWO)

    assert poison.failed("f", B, ("e", 1), 0.0, TWO).is_poison


def test_of_too_many_failures_the_latest_are_taken_back() -> None:
    poison = Poison()
    for n in range(MAX_FAILURES + 10):
        poison.failed("f", A, ("d", n), 0.0, TWO)

    verdict = poison.failed("f", B, ("e", 1), 0.0, TWO)

    assert verdict == Verdict(True, tuple(("d", n) for n in range(10, MAX_FAILURES + 10)))
    assert poison.take_back(("d", 0)) == ()
