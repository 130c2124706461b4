"""A service that asks a language model: three agents, and the whole way from a call to the journal."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from models.ports import Embedder
from tests.builders import capability, card
from tests.llm_world import CANDIDATES, TEXT
from tests.router.asgi import speaking

RESERVE_MS = 1000
"""Kept back of every deadline; enough for a busy machine too."""

INTENTS = {text.intent for text in CANDIDATES}


def agent_files(folder: Path, **llm: Any) -> tuple[Path, Path]:
    """Files of cards, with an agent for each candidate, and of a policy with these limits of the language model.

    Only a sentence that stands on a card word for word is read without asking; nothing is out of scope.
    """
    cards, policy = folder / "cards.json", folder / "policy.json"
    agents = [
        card(f"{text.intent}_desk", capability(text.intent, text.examples, description=text.description))
        for text in CANDIDATES
    ]
    cards.write_text(json.dumps({"agents": [each.model_dump(mode="json", exclude_unset=True) for each in agents]}))
    defaults = {"confidence": {"accept": 1.0, "plausible": 0.0}, "deadline_reserve_ms": RESERVE_MS}
    policy.write_text(json.dumps({"defaults": defaults, "llm": llm}))
    return cards, policy


@dataclass
class Desk:
    """The service, spoken to over HTTP."""

    client: httpx.AsyncClient

    async def route(self, utterance: str = TEXT, **fields: Any) -> dict[str, Any]:
        """The decision."""
        response = await self.client.post("/route", json={"utterance": utterance, **fields})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def read_event(self, decision: dict[str, Any]) -> dict[str, Any]:
        """The event that tells how the utterance was read."""
        trace = (await self.client.get(f"/traces/{decision['trace_id']}")).json()
        [event] = [each for each in trace["events"] if each["event_type"] == "read"]
        found: dict[str, Any] = event
        return found

    async def local_ranking(self) -> dict[str, Any]:
        """What is answered where the model may not be asked for want of money."""
        asked = await self.route(budget_tokens=0)
        assert asked["degraded"] == ["llm: skipped_budget"]
        return asked


@asynccontextmanager
async def desk_of(
    folder: Path, encoder: Embedder, llm_url: str, llm_form: str = "auto", **llm: Any
) -> AsyncIterator[Desk]:
    """A service with its files in `folder` and with these limits, whose settings name the model's server."""
    cards, policy = agent_files(folder, **llm)
    reading = {"cards": (cards,), "policy": policy, "watch": False, "classifier": False}
    asking = {"llm_url": llm_url, "llm_form": llm_form, "llm_model": "any", "llm_key": "sk-secret"}
    async with speaking(folder, embedder=encoder, **reading, **asking) as (client, parts):
        await parts["readiness"].ready.wait()
        yield Desk(client)
