"""Planner: the steps a caller takes, each with its slice of the time that is left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from models.card import MAX_RETRIES, AgentCard, Capability
from models.decision import Attempt, Target
from router.draw import draw_of

JITTER = (0.8, 1.2)
"""Retries wait their back-off times a factor from this range (SPEC A10), so that callers do not come back as one."""

USABLE = 0.25
"""A backup's slice may be this part of its suggested timeout, not less.

A suggested timeout is 2 * P95 + 500 ms, a quarter of it about half of the P95: most answers are there by then.
"""

_OUTCOME_OF = {"timeout": "timed_out", "connection": "unreachable"}
_TIMED_OUT = "timed_out"
_MOVES_ON = ("timed_out", "unreachable", "failed")
"""After these another agent may be asked. After a time-out the work may be under way, or done: who does not say that
doing it twice does no harm (`idempotent`) is neither asked again then, nor is another agent (SPEC G2)."""


class Callee(NamedTuple):
    """An agent that may be called, for one of its capabilities.

    Attributes:
        timeout_ms: suggested timeout: the measured one if there is one, else the card's.
    """

    card: AgentCard
    capability: Capability
    timeout_ms: int


def plan(target: Callee, *, backup: Callee | None = None, remaining_ms: float, key: str, seed: int) -> list[Attempt]:
    """The target, retries on it, then its backup: never more than fits into `remaining_ms` if all of it goes wrong.

    A step is taken if the outcome before is among its `on`, else it is passed over. Time is given away in this order:

    1. The target has its suggested timeout, or all that is left if that is less.
    2. The backup keeps its suggested timeout, or what is left if that is still USABLE; else it is not in the plan.
       It comes before retries, as another agent is worth more than the same one again.
    3. Retries on the target (its card's retry policy, at most MAX_RETRIES) have what is then left, as long as it holds
       the wait and the whole suggested timeout once more.

    So a plan has fewer steps the less time there is, and none of them is too short to be of use.

    Args:
        target: the chosen one.
        backup: must have passed every check that the target did.
        remaining_ms: what is left of the deadline, at least 1.
        key: the idempotency key of all attempts, from the meaning of the work (`router.live.fingerprint`).
        seed: the decision's; draw n (from 1) of it is the jitter of retry n, as draw 0 chose among near-equals.

    Raises:
        ValueError: `remaining_ms` is below 1.

    >>> echo = Capability(intent="echo")
    >>> target = Callee(AgentCard(agent_id="a"), echo, timeout_ms=2000)
    >>> backup = Callee(AgentCard(agent_id="b"), echo, timeout_ms=3000)
    >>> steps = plan(target, backup=backup, remaining_ms=8000, key="k", seed=0)
    >>> [(step.target.agent_id, step.backoff_ms, step.timeout_ms) for step in steps]
    [('a', 0, 2000), ('a', 486, 2000), ('b', 0, 3000)]
    """
    if remaining_ms < 1:
        raise ValueError(f"remaining_ms is {remaining_ms}, the least time for a call is 1")
    left_ms = int(remaining_ms)
    slice_ms = min(target.timeout_ms, left_ms)
    left_ms -= slice_ms
    backup_ms = 0 if backup is None else _usable_ms(backup, left_ms)
    first = _first_attempt(target, slice_ms, [], key)
    steps = [first, *_retries(first, target, left_ms - backup_ms, seed)]
    if backup is not None and backup_ms > 0:
        steps.append(_first_attempt(backup, backup_ms, _after(target.card, _MOVES_ON), key))
    return steps


def target_of(card: AgentCard, capability: Capability, timeout_ms: int) -> Target:
    """The agent as a caller has to know it."""
    return Target.of(
        agent_id=card.agent_id,
        namespace=card.namespace,
        version=card.version,
        endpoint=card.endpoint,
        protocol=card.protocol,
        intent=capability.intent,
        timeout_ms=timeout_ms,
        cost_level=capability.cost_level,
    )


def _usable_ms(callee: Callee, left_ms: int) -> int:
    slice_ms = min(callee.timeout_ms, left_ms)
    return slice_ms if slice_ms >= USABLE * callee.timeout_ms else 0


def _after(card: AgentCard, outcomes: Iterable[str]) -> list[str]:
    """Those of the outcomes after which a further step is harmless."""
    return [outcome for outcome in outcomes if card.idempotent or outcome != _TIMED_OUT]


def _first_attempt(callee: Callee, slice_ms: int, on: list[str], key: str) -> Attempt:
    return Attempt.of(
        target=target_of(callee.card, callee.capability, slice_ms),
        timeout_ms=slice_ms,
        backoff_ms=0,
        on=on,
        retry_safe=callee.card.idempotent,
        idempotency_key=key,
    )


def _retries(first: Attempt, target: Callee, left_ms: int, seed: int) -> list[Attempt]:
    """Those that fit into `left_ms`; the same call as `first`, under the same key."""
    if left_ms < target.timeout_ms:
        return []
    policy = target.card.retry_policy
    on = _after(target.card, (_OUTCOME_OF[error] for error in policy.retry_on))
    low, high = JITTER
    steps: list[Attempt] = []
    for nth in range(1, min(policy.max_attempts, MAX_RETRIES) + 1 if on else 1):
        backoff_ms = round(policy.wait_ms(nth) * (low + (high - low) * draw_of(seed, nth)))
        left_ms -= backoff_ms + target.timeout_ms
        if left_ms < 0:
            break
        steps.append(
            Attempt.of(
                target=first.target,
                timeout_ms=first.timeout_ms,
                backoff_ms=backoff_ms,
                on=on,
                retry_safe=first.retry_safe,
                idempotency_key=first.idempotency_key,
            )
        )
    return steps
