"""Poison: requests that fail wherever they go, and are therefore themselves the cause."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from models.card import AgentKey
from models.live_policy import PoisonPolicy
from router.live.keys import CallId

MAX_REQUESTS = 10_000
MAX_FAILURES = 128
"""Of one request; more than the most agents that a policy can ask for."""


class Verdict(NamedTuple):
    """Whose fault a failure is.

    Attributes:
        is_poison: the request's; if not, it is charged to the agent like any other.
        take_back: earlier calls of that request whose failures were charged to agents and must no longer be.
    """

    is_poison: bool
    take_back: tuple[CallId, ...] = ()


class _Failure(NamedTuple):
    agent: AgentKey
    at_ms: float


class _Request:
    __slots__ = ("failures", "n_needed", "until_ms")

    def __init__(self) -> None:
        self.failures: OrderedDict[CallId, _Failure] = OrderedDict()
        self.n_needed = 2
        self.until_ms: float | None = None

    def n_agents(self) -> int:
        # versions of an agent share their faults, so they are no evidence against the request
        return len({failure.agent[:2] for failure in self.failures.values()})


class Poison:
    """Failures by the request's fingerprint.

    Failures count for `ttl_ms`, as does poison from the failure that made it such. Bounds: `max_requests` fingerprints,
    of which the one that failed or was refused longest ago is forgotten (it may then be tried again), and the latest
    `MAX_FAILURES` failures of each (older ones stay charged as they are).

    >>> poison, policy, (a, b) = Poison(), PoisonPolicy(agents=2), [("default", name, "1.0.0") for name in "ab"]
    >>> poison.failed("f", a, ("d1", 1), now_ms=0.0, policy=policy)
    Verdict(is_poison=False, take_back=())
    >>> poison.failed("f", b, ("d1", 2), now_ms=5.0, policy=policy), poison.is_poison("f", now_ms=6.0)
    (Verdict(is_poison=True, take_back=(('d1', 1),)), True)
    >>> poison.take_back(("d1", 2)), poison.is_poison("f", now_ms=7.0)
    ((('d1', 1),), False)
    """

    def __init__(self, *, max_requests: int = MAX_REQUESTS) -> None:
        self._max_requests = max_requests
        self._requests: OrderedDict[str, _Request] = OrderedDict()
        self._fingerprint_of: dict[CallId, str] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def is_poison(self, fingerprint: str, now_ms: float) -> bool:
        """Whether the request is to be refused."""
        request = self._requests.get(fingerprint)
        if request is None or request.until_ms is None:
            return False
        if request.until_ms <= now_ms:
            self._forget(fingerprint)
            return False
        self._requests.move_to_end(fingerprint)
        return True

    def failed(
        self, fingerprint: str, agent: AgentKey, call_id: CallId, now_ms: float, policy: PoisonPolicy
    ) -> Verdict:
        """A call failed; the same call again changes nothing."""
        is_poison = self.is_poison(fingerprint, now_ms)
        if call_id in self._fingerprint_of:
            return Verdict(is_poison)
        request = self._remember(fingerprint)
        if not is_poison:
            self._drop_old(request, now_ms - policy.ttl_ms)
        before = tuple(request.failures)
        self._add(request, fingerprint, call_id, _Failure(agent, now_ms))
        if is_poison:
            return Verdict(True)
        request.n_needed = policy.agents
        if request.n_agents() < request.n_needed:
            return Verdict(False)
        request.until_ms = now_ms + policy.ttl_ms
        return Verdict(True, before)

    def take_back(self, call_id: CallId) -> tuple[CallId, ...]:
        """An amended outcome: this call was no failure of the agent after all.

        Returns:
            Calls whose failures are to be charged to their agents again, as the request is poison no longer.
        """
        fingerprint = self._fingerprint_of.pop(call_id, None)
        if fingerprint is None:
            return ()
        request = self._requests[fingerprint]
        del request.failures[call_id]
        if not request.failures:
            self._forget(fingerprint)
            return ()
        if request.until_ms is None or request.n_agents() >= request.n_needed:
            return ()
        request.until_ms = None
        return tuple(request.failures)

    def succeeded(self, fingerprint: str) -> tuple[CallId, ...]:
        """An agent has served the request: nothing is wrong with it, and its failures are forgotten.

        Returns:
            Calls whose failures are to be charged to their agents again, where it was poison till now.
        """
        request = self._requests.get(fingerprint)
        if request is None:
            return ()
        self._forget(fingerprint)
        return () if request.until_ms is None else tuple(request.failures)

    def _remember(self, fingerprint: str) -> _Request:
        request = self._requests.get(fingerprint)
        if request is not None:
            self._requests.move_to_end(fingerprint)
            return request
        request = self._requests[fingerprint] = _Request()
        if len(self._requests) > self._max_requests:
            self._forget(next(iter(self._requests)))
        return request

    def _add(self, request: _Request, fingerprint: str, call_id: CallId, failure: _Failure) -> None:
        request.failures[call_id] = failure
        self._fingerprint_of[call_id] = fingerprint
        if len(request.failures) > MAX_FAILURES:
            del self._fingerprint_of[request.failures.popitem(last=False)[0]]

    def _drop_old(self, request: _Request, since_ms: float) -> None:
        for call_id in [key for key, failure in request.failures.items() if failure.at_ms <= since_ms]:
            del request.failures[call_id], self._fingerprint_of[call_id]

    def _forget(self, fingerprint: str) -> None:
        for call_id in self._requests.pop(fingerprint).failures:
            del self._fingerprint_of[call_id]
