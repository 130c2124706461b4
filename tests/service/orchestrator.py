"""Orchestrator: a caller that does what decisions say: it walks their plans, and tells what came of each attempt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx


class Attempted(NamedTuple):
    """One call of an agent.

    Attributes:
        answer: None where it gave none that is of use.
        charged_to: who the router charged the end to.
    """

    agent_id: str
    status: str
    answer: Any
    charged_to: str


class Done(NamedTuple):
    """What came of a request."""

    decision: dict[str, Any]
    attempts: list[Attempted]

    @property
    def answer(self) -> Any:
        """That of the last attempt; None where there was none."""
        return self.attempts[-1].answer if self.attempts else None


class Orchestrator:
    """Calls agents in the name of one caller.

    Args:
        router: speaks to the router.
        agents: speaks to agents.
        name: of the caller.
        fits: whether an answer fits the intent's output schema.
        judge: how good an answer to a payload is, 0..1; None does not judge.
        least_quality: with less an answer is a failure.
    """

    def __init__(
        self,
        router: httpx.AsyncClient,
        agents: httpx.AsyncClient,
        name: str,
        fits: Callable[[Any], bool],
        judge: Callable[[Any, Any], float] | None = None,
        least_quality: float = 0.0,
    ) -> None:
        self._router = router
        self._agents = agents
        self._name = name
        self._fits = fits
        self._judge = judge
        self._least_quality = least_quality

    async def ask(self, **request: Any) -> Done:
        """Ask for a decision, and carry it out."""
        return await self.carry_out(await self.decide(**request), request.get("payload"))

    async def decide(self, **request: Any) -> dict[str, Any]:
        """Ask for a decision alone; who asks for one owes the outcome."""
        response = await self._router.post("/route", json={"caller": {"agent_id": self._name}, **request})
        response.raise_for_status()
        decision: dict[str, Any] = response.json()
        return decision

    async def carry_out(self, decision: dict[str, Any], payload: Any) -> Done:
        """Walk the plan: a step is taken if the end of the attempt before is among its `on`."""
        attempts: list[Attempted] = []
        for number, step in enumerate(decision["plan"], start=1):
            if attempts and attempts[-1].status not in step["on"]:
                continue
            await asyncio.sleep(step["backoff_ms"] / 1000)
            began = time.monotonic()
            outcome, answer = await self._call(step, payload)
            outcome["latency_ms"] = (time.monotonic() - began) * 1000
            receipt = await self.tell(decision["decision_id"], number, **outcome)
            attempts.append(
                Attempted(step["target"]["agent_id"], outcome["status"], answer, receipt["charged_to"]),
            )
        return Done(decision, attempts)

    async def tell(self, decision_id: str, attempt: int, **outcome: Any) -> dict[str, Any]:
        """Post an outcome; it is stored when this returns, and posting it again changes nothing."""
        outcome = {"decision_id": decision_id, "attempt": attempt, **outcome}
        response = await self._router.post("/feedback", json=outcome)
        response.raise_for_status()
        receipt: dict[str, Any] = response.json()
        return receipt

    async def _call(self, step: dict[str, Any], payload: Any) -> tuple[dict[str, Any], Any]:
        """The outcome of one call, and the answer."""
        target, key = step["target"], {"Idempotency-Key": step["idempotency_key"]}
        body = {"intent": target["intent"], "payload": payload}
        try:
            async with asyncio.timeout(step["timeout_ms"] / 1000):
                response = await self._agents.post(target["endpoint"], json=body, headers=key, timeout=None)
        except TimeoutError:
            return {"status": "timed_out"}, None
        except httpx.ConnectError:
            return {"status": "unreachable"}, None
        except httpx.TransportError as error:
            return {"status": "failed", "error": {"class": type(error).__name__}}, None
        return self._read(response, payload)

    def _read(self, response: httpx.Response, payload: Any) -> tuple[dict[str, Any], Any]:
        if response.is_client_error and response.status_code != 429:
            return {"status": "rejected"}, None
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not response.is_success:
            return {"status": "failed", "error": _error(response, answer)}, None
        if not self._fits(answer):
            return {"status": "schema_mismatch"}, None
        if self._judge is None:
            return {"status": "succeeded"}, answer
        quality = self._judge(payload, answer)
        if quality < self._least_quality:
            return {"status": "failed", "quality": quality}, None
        return {"status": "succeeded", "quality": quality}, answer


def _error(response: httpx.Response, answer: Any) -> dict[str, Any]:
    error: dict[str, Any] = {"class": f"http_{response.status_code}"}
    if isinstance(answer, dict) and "dependency" in answer:
        error["dependency"] = answer["dependency"]
    wait_s = response.headers.get("Retry-After", "")
    if wait_s.isdigit():
        error["retry_after_ms"] = int(wait_s) * 1000
    return error
