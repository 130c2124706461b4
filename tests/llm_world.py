"""An escalation that asks a scripted server over HTTP, under a clock that a test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from intent.llm.breaker import LlmBreaker
from intent.llm.client import Endpoint, LlmClient
from intent.llm.escalate import Escalation
from intent.llm.escalated import Escalated, EscalationStatus
from intent.llm.prompt import IntentText
from models.policy import LlmPolicy
from tests.builders import FakeClock
from tests.llm_server import Asked, LlmServer, Reply, fails, picks

CANDIDATES = (
    IntentText("cancel_order", "cancels an order", ("stop my order",)),
    IntentText("track_order", "says where an order is", ("where is my parcel",)),
    IntentText("refund", "gives money back", ("I want my money",)),
)
CANCEL = picks("cancels an order")
TEXT = "I do not want it any more"
LONG_MS = 60_000.0
LIMITS = LlmPolicy(timeout_ms=20_000)


class World:
    """A scripted server and an escalation that asks it, under a clock that stands still."""

    def __init__(self, server: LlmServer, client: LlmClient, clock: FakeClock, limits: LlmPolicy) -> None:
        self.server = server
        self.clock = clock
        self.breaker = LlmBreaker(clock, failures=2, open_ms=1000.0)
        seeds = iter(range(1_000_000))
        self.escalation = Escalation(client, clock, self.breaker, limits, seeds=lambda: next(seeds))

    async def ask(self, text: str = TEXT, *, remaining_ms: float = LONG_MS, **fields: Any) -> Escalated:
        candidates = fields.pop("candidates", CANDIDATES)
        return await self.escalation.ask(text, candidates, remaining_ms=remaining_ms, **fields)

    async def status(self, text: str = TEXT, **fields: Any) -> EscalationStatus:
        return (await self.ask(text, **fields)).status

    async def trip(self) -> None:
        """Open the breaker, by two failures."""
        was, self.server.script = self.server.script, lambda _: fails(503)
        for _ in range(2):
            assert await self.status("trip") is EscalationStatus.LLM_ERROR
        self.server.script = was

    @property
    def n_asked(self) -> int:
        return len(self.server.asked)


@asynccontextmanager
async def world_of(script: Callable[[Asked], Reply] = CANCEL, **limits: Any) -> AsyncIterator[World]:
    clock = FakeClock()
    async with LlmServer(script) as server, LlmClient(Endpoint(server.base_url, "scripted"), clock) as client:
        world = World(server, client, clock, LIMITS.model_copy(update=limits))
        async with world.escalation:
            yield world
