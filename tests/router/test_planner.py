from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.card import MAX_RETRIES, AgentCard, Capability, Retry
from models.decision import Attempt
from router.planner import JITTER, USABLE, Callee, plan, target_of

ECHO = Capability(intent="echo", cost_level=3)


def callee(agent_id: str, timeout_ms: int = 1000, **card: Any) -> Callee:
    """One whose work may be done twice, unless said otherwise."""
    return Callee(AgentCard(agent_id=agent_id, **{"idempotent": True, **card}), ECHO, timeout_ms)


def steps(target: Callee, remaining_ms: float, backup: Callee | None = None, seed: int = 7) -> list[Attempt]:
    return plan(target, backup=backup, remaining_ms=remaining_ms, key="k-1", seed=seed)


def names(attempts: list[Attempt]) -> list[str]:
    return [attempt.target.agent_id for attempt in attempts]


def test_the_target_comes_first_with_its_suggested_timeout() -> None:
    first = steps(callee("a", 1000), 1500)[0]
    assert (first.timeout_ms, first.target.timeout_ms, first.backoff_ms, first.on) == (1000, 1000, 0, [])


def test_the_target_has_what_is_left_if_that_is_less() -> None:
    [only] = steps(callee("a", 1000), 800.9, callee("b", 100))
    assert (only.timeout_ms, only.target.timeout_ms) == (800, 800)


def test_with_time_enough_there_is_one_retry_and_then_the_backup() -> None:
    attempts = steps(callee("a"), 20_000, callee("b"))
    assert names(attempts) == ["a", "a", "b"]
    assert [attempt.on for attempt in attempts] == [
        [],
        ["timed_out", "unreachable"],
        ["timed_out", "unreachable", "failed"],
    ]
    assert 400 <= attempts[1].backoff_ms <= 600
    assert attempts[2].backoff_ms == 0


def test_retries_wait_half_a_second_then_one_and_a_half() -> None:
    attempts = steps(callee("a", retry=Retry(max_attempts=2)), 20_000)
    assert names(attempts) == ["a", "a", "a"]
    assert 400 <= attempts[1].backoff_ms <= 600
    assert 1200 <= attempts[2].backoff_ms <= 1800


def test_no_card_gets_more_retries_than_the_most() -> None:
    assert len(steps(callee("a", retry=Retry(max_attempts=10)), 1_000_000)) == 1 + MAX_RETRIES


@pytest.mark.parametrize(
    ("retry", "on"),
    [(Retry(retry_on=["timeout"]), ["timed_out"]), (Retry(retry_on=["connection"]), ["unreachable"])],
)
def test_retries_follow_only_what_the_card_retries_on(retry: Retry, on: list[str]) -> None:
    assert steps(callee("a", retry=retry), 20_000)[1].on == on


@pytest.mark.parametrize("retry", [Retry(max_attempts=0), Retry(retry_on=[])])
def test_a_card_may_forbid_retries(retry: Retry) -> None:
    assert names(steps(callee("a", retry=retry), 20_000, callee("b"))) == ["a", "b"]


def test_a_retry_needs_time_for_its_wait_and_the_whole_timeout() -> None:
    waited = steps(callee("a"), 20_000)[1].backoff_ms
    assert names(steps(callee("a"), 2000 + waited)) == ["a", "a"]
    assert names(steps(callee("a"), 2000 + waited - 1)) == ["a"]


def test_the_backup_comes_before_retries_when_time_is_short() -> None:
    assert names(steps(callee("a"), 3000, callee("b"))) == ["a", "b"]
    assert names(steps(callee("a"), 3000)) == ["a", "a"]


def test_with_a_default_card_and_a_default_budget_the_backup_keeps_what_is_left() -> None:
    attempts = steps(callee("a", 15_000), 19_800, callee("b", 15_000))
    assert [(attempt.target.agent_id, attempt.timeout_ms) for attempt in attempts] == [("a", 15_000), ("b", 4800)]


@pytest.mark.parametrize(("remaining_ms", "planned"), [(1250, ["a", "b"]), (1249, ["a"])])
def test_a_backup_without_usable_time_is_not_in_the_plan(remaining_ms: int, planned: list[str]) -> None:
    assert names(steps(callee("a"), remaining_ms, callee("b"))) == planned


def test_retry_safe_is_what_each_card_says() -> None:
    attempts = steps(callee("a", idempotent=False), 20_000, callee("b"))
    assert [attempt.retry_safe for attempt in attempts] == [False, False, True]


def test_all_attempts_have_the_key_of_the_work() -> None:
    assert {attempt.idempotency_key for attempt in steps(callee("a"), 20_000, callee("b"))} == {"k-1"}


def test_work_that_may_not_be_done_twice_is_not_tried_again_once_it_may_have_begun() -> None:
    once = callee("a", idempotent=False, retry=Retry(max_attempts=2))
    attempts = steps(once, 60_000, callee("b"))
    assert names(attempts) == ["a", "a", "a", "b"]
    assert [attempt.on for attempt in attempts] == [[], ["unreachable"], ["unreachable"], ["unreachable", "failed"]]


def test_retries_on_time_outs_alone_are_none_for_such_work() -> None:
    once = callee("a", idempotent=False, retry=Retry(retry_on=["timeout"]))
    assert names(steps(once, 60_000)) == ["a"]


def test_the_jitter_is_the_seed_s() -> None:
    waits = [steps(callee("a"), 20_000, seed=seed)[1].backoff_ms for seed in range(200)]
    assert waits == [steps(callee("a"), 20_000, seed=seed)[1].backoff_ms for seed in range(200)]
    assert min(waits) < 420
    assert max(waits) > 580


def test_without_time_there_is_no_plan() -> None:
    with pytest.raises(ValueError, match=r"remaining_ms is 0\.5"):
        steps(callee("a"), 0.5)


def test_the_target_tells_what_a_caller_needs() -> None:
    card = AgentCard(agent_id="a", namespace="shop", version="1.2.0", endpoint="http://a.example/run", protocol="a2a")
    assert target_of(card, ECHO, 900).model_dump() == {
        "agent_id": "a",
        "namespace": "shop",
        "version": "1.2.0",
        "endpoint": "http://a.example/run",
        "protocol": "a2a",
        "intent": "echo",
        "timeout_ms": 900,
        "cost_level": 3,
    }


@given(
    timeouts=st.tuples(st.integers(1, 30_000), st.integers(1, 30_000)),
    remaining_ms=st.floats(1, 100_000),
    retry=st.builds(
        Retry,
        max_attempts=st.integers(0, 10),
        backoff_ms=st.integers(0, 5000),
        multiplier=st.floats(1, 10),
        retry_on=st.lists(st.sampled_from(["timeout", "connection"]), unique=True),
    ),
    has_backup=st.booleans(),
    seed=st.integers(0, 2**63),
)
def test_a_plan_fits_even_if_all_of_it_goes_wrong(
    timeouts: tuple[int, int], remaining_ms: float, retry: Retry, has_backup: bool, seed: int
) -> None:
    target, backup = callee("a", timeouts[0], retry=retry), callee("b", timeouts[1]) if has_backup else None
    attempts = steps(target, remaining_ms, backup, seed)
    assert sum(attempt.backoff_ms + attempt.timeout_ms for attempt in attempts) <= remaining_ms
    for nth, attempt in enumerate(attempts[1:], start=1):
        if attempt.target.agent_id == "a":
            assert attempt.timeout_ms == timeouts[0]
            assert JITTER[0] * retry.wait_ms(nth) - 0.5 <= attempt.backoff_ms <= JITTER[1] * retry.wait_ms(nth) + 0.5
        else:
            assert nth == len(attempts) - 1
            assert attempt.timeout_ms >= USABLE * timeouts[1]
