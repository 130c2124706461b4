"""Scene: a namespace of its own on a router, with real agents in it and a policy of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import httpx

from router.schemas import compile_schema
from tests.service import agents
from tests.service.agents import Agent
from tests.service.orchestrator import Orchestrator
from tests.service.server import Server

T = TypeVar("T")

INTENT = "echo"
CALLER = "planner"
TIMEOUT_MS = 500
OPEN_MS = 1000
BREAKER = {"min_calls": 2, "open_ms": 60_000, "jitter": 0.0}
RECOVERING = {**BREAKER, "open_ms": OPEN_MS}
LEFT_OUT = {"enabled": False}
DECIDED = ["request", "read:sure", "route:invoke", "response:invoke"]
"""The events of a decision that names an agent."""

WAIT_S = 20.0
_LOOK_S = 0.01
_fits = compile_schema("text").is_valid


class Scene:
    """Lets agents in, makes callers and requests, and tells what the router shows of it."""

    def __init__(self, server: Server, name: str, stack: AsyncExitStack) -> None:
        self.server = server
        self.name = name
        self._stack = stack
        self._n_texts = 0
        self._from_ms = int(time.time() * 1000)

    def rule(self, *, quotas: list[dict[str, Any]] | None = None, **policy: Any) -> None:
        """The policy from now on: breakers that open soon and stay so, nobody ejected, and what is given here."""
        here = {"breaker": BREAKER, "ejection": LEFT_OUT, **policy}
        # who is chosen is to be a matter of live state alone: what is learned has scenes of its own
        body = {"namespaces": {self.name: here}, "quotas": quotas or [], "learning": {"mode": "observe"}}
        response = self.server.client.put("/policy", json=body)
        assert response.status_code == 200, response.text

    def agent(self, agent_id: str, quality: float = 0.9, **card: Any) -> Agent:
        """An agent that listens, with its card."""
        agent = self._stack.enter_context(agents.serving())
        self.card(agent_id, agent.endpoint, quality, **card)
        return agent

    def card(self, agent_id: str, endpoint: str, quality: float = 0.9, **card: Any) -> str:
        """Put a card; its digest."""
        served = {"intent": INTENT, "quality": quality, "input_schema": "text", "output_schema": "text"}
        fields = {"endpoint": endpoint, "timeout_ms": TIMEOUT_MS, "retry": {"backoff_ms": 20}, **card}
        response = self.server.client.put(
            f"/agents/{agent_id}?namespace={self.name}", json={"version": "1.0.0", "capabilities": [served], **fields}
        )
        assert response.is_success, response.text
        digest: str = response.json()["digest"]
        return digest

    async def caller(self, name: str = CALLER, **how: Any) -> Orchestrator:
        """A caller that is known to post outcomes."""
        router = httpx.AsyncClient(base_url=self.server.client.base_url, timeout=WAIT_S)
        calls = httpx.AsyncClient()
        for client in (router, calls):
            await self._stack.enter_async_context(client)
        return Orchestrator(router, calls, name, _fits, **how)

    def request(self, text: str | None = None, **fields: Any) -> dict[str, Any]:
        """A request of the scene; one without a text says what none said before, as what fails twice may be poison."""
        if text is None:
            self._n_texts += 1
            text = f"words {self._n_texts}"
        return {"namespace": self.name, "intent": INTENT, "payload": {"text": text}, **fields}

    def breakers(self, caller: str = CALLER) -> dict[str, tuple[str, int, int]]:
        """Of the scene's agents and dependencies: state, calls, failures."""
        found = self.server.client.get("/breakers").json()["breakers"]
        return {
            each["agent_id"] or each["dependency"]: (each["state"], each["n_calls"], each["n_failures"])
            for each in found
            if each["namespace"] == self.name and each["caller"] in (caller, None)
        }

    def state(self, name: str) -> str:
        """Of the breaker of an agent or a dependency; one that is not listed is closed and had no calls lately."""
        return self.breakers().get(name, ("closed", 0, 0))[0]

    def health(self, agent_id: str) -> dict[str, Any]:
        health: dict[str, Any] = self.server.client.get(f"/agents/{agent_id}/health?namespace={self.name}").json()
        return health

    def beat(self, agent_id: str, digest: str) -> int:
        """Send a heartbeat; the status of its answer."""
        path = f"/agents/{agent_id}/heartbeat?namespace={self.name}"
        return self.server.client.post(path, json={"digest": digest}).status_code

    def told(self, decision: dict[str, Any]) -> list[str]:
        """The events of a decision's trace, in their order.

        That an open time is over is left out: the next outcome tells it or the next tick, whichever comes first.
        """
        events = self.server.client.get(f"/traces/{decision['trace_id']}").json()["events"]
        written = [event["seq"] for event in events if event["seq"] is not None]
        assert written == sorted(written)
        return [name for name in map(_named, events) if name != "breaker:half_open"]

    def changes(self, subject: str) -> list[str]:
        """What became of an agent or a dependency in the order of all events, those caused by no request included."""
        events = self.server.client.get(f"/events?limit=1000&from={self._from_ms}").json()["events"]
        return [
            _named(event)
            for event in events
            if event["event_type"] in ("breaker", "state")
            and event["payload"].get("namespace") == self.name
            and subject in (event["payload"].get("agent_id"), event["payload"].get("dependency"))
        ]


def left_out(decision: dict[str, Any]) -> dict[str, str]:
    """The candidates that were taken out, and where."""
    return {each["agent_id"]: each["excluded"] for each in decision["candidates"] if each["excluded"]}


def planned(decision: dict[str, Any]) -> list[str]:
    """The agents of a plan, step by step."""
    return [step["target"]["agent_id"] for step in decision["plan"]]


async def at_once(n: int, ask: Callable[[], Awaitable[T]]) -> list[T]:
    """What so many get who ask at the same instant."""
    return await asyncio.gather(*(ask() for _ in range(n)))


async def until_answered(scene: Scene, caller: Orchestrator) -> None:
    """Ask until agent a has answered."""
    ends_at = time.monotonic() + WAIT_S
    while True:
        done = await caller.ask(**scene.request())
        if [each[:2] for each in done.attempts] == [("a", "succeeded")]:
            return
        assert time.monotonic() < ends_at, done
        await asyncio.sleep(_LOOK_S)


async def until(claim: Callable[[], T], wanted: object, what: str) -> T:
    """Look until `claim()` is `wanted`; AssertionError with what it was last after `WAIT_S`."""
    ends_at = time.monotonic() + WAIT_S
    while (found := claim()) != wanted:
        assert time.monotonic() < ends_at, f"{what}: {found!r}"
        await asyncio.sleep(_LOOK_S)
    return found


def _named(event: dict[str, Any]) -> str:
    decision = event["decision"]
    return event["event_type"] if decision is None else f"{event['event_type']}:{decision}"
