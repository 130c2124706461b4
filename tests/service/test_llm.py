"""`POST /route` where a language model is asked: the whole service and the bundled encoder, and a scripted model."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from intent.embedder import bundled
from models.ports import Embedder
from tests.llm_desk import INTENTS, RESERVE_MS, Desk, agent_files, desk_of
from tests.llm_server import Asked, LlmServer, Reply, fails, says, silent
from tests.llm_world import CANCEL, TEXT
from tests.service.server import Server

FORMS = ("json_schema", "json_object")
TIME_MS = 2500


@pytest.fixture(scope="module")
def encoder() -> Embedder:
    return bundled()


@asynccontextmanager
async def scripted(
    folder: Path, encoder: Embedder, script: Callable[[Asked], Reply] = CANCEL, form: str = "auto", **llm: Any
) -> AsyncIterator[tuple[Desk, LlmServer]]:
    async with LlmServer(script) as server, desk_of(folder, encoder, server.base_url, form, **llm) as desk:
        yield desk, server


def chosen_id(asked: Asked) -> str:
    return asked.ids["cancels an order"]


@pytest.mark.parametrize("form", FORMS)
async def test_an_offered_id_decides_and_the_event_says_what_it_cost(
    tmp_path: Path, encoder: Embedder, form: str
) -> None:
    async with scripted(tmp_path, encoder, form=form) as (desk, server):
        decision = await desk.route()
        assert (decision["action"], decision["target"]["agent_id"]) == ("invoke", "cancel_order_desk")
        assert (decision["intent"]["source"], decision["degraded"]) == ("llm", [])
        [asked] = server.asked
        assert (asked.form, asked.utterance, set(asked.ids)) == (
            form, TEXT, {"cancels an order", "says where an order is", "gives money back"},
        )  # fmt: skip
        event = await desk.read_event(decision)
        assert (event["decision"], event["cost_tokens"]) == ("sure", 100)
        assert event["payload"]["llm"] == {"status": "chosen", "origin": "call"}
        again = await desk.read_event(await desk.route())
        assert (again["cost_tokens"], again["payload"]["llm"]) == (0, {"status": "chosen", "origin": "cache"})
        assert len(server.asked) == 1


async def test_a_sentence_that_is_sure_asks_nobody(tmp_path: Path, encoder: Embedder) -> None:
    async with scripted(tmp_path, encoder) as (desk, server):
        decision = await desk.route("stop my order")
        assert (decision["action"], decision["intent"]["source"]) == ("invoke", "lexical")
        event = await desk.read_event(decision)
        assert ("llm" in event["payload"], event["cost_tokens"], server.asked) == (False, 0, [])


def saying(content: Callable[[Asked], object]) -> Callable[[Asked], Reply]:
    return lambda asked: says(content(asked), n_tokens=70)


def fenced(text: str) -> str:
    return f"```json\n{text}\n```"


INVALID: dict[str, Callable[[Asked], object]] = {
    "prose": lambda asked: f"The customer wants to cancel, so {chosen_id(asked)}.",
    "fenced JSON": lambda asked: fenced(f'{{"choice": "{chosen_id(asked)}"}}'),
    "two blocks": lambda asked: "\n".join(fenced(f'{{"choice": "{each}"}}') for each in asked.ids.values()),
    "two objects": lambda asked: "\n".join(f'{{"choice": "{each}"}}' for each in asked.ids.values()),
    "an id that was not offered": lambda _: '{"choice": "aaaaa"}',
    "the intent": lambda _: '{"choice": "cancel_order"}',
    "index 0": lambda _: '{"choice": 0}',
    "index 1": lambda _: '{"choice": 1}',
    "index 0 as a string": lambda _: '{"choice": "0"}',
    "index 1 as a string": lambda _: '{"choice": "1"}',
    "half an object": lambda asked: f'{{"choice": "{chosen_id(asked)}',
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("form", FORMS)
async def test_what_is_no_offered_id_is_discarded_and_the_local_ranking_stands(
    tmp_path: Path, encoder: Embedder, form: str
) -> None:
    async with scripted(tmp_path, encoder, form=form) as (desk, server):
        local = await desk.local_ranking()
        assert {option["intent"] for option in local["clarify"]["options"]} == INTENTS
        for number, (name, content) in enumerate(INVALID.items(), start=1):
            server.script = saying(content)
            decision = await desk.route()
            assert decision["degraded"] == ["llm: llm_invalid"], name
            assert (decision["clarify"], decision["intent"]) == (local["clarify"], local["intent"]), name
            event = await desk.read_event(decision)
            assert (event["decision"], event["cost_tokens"]) == ("ambiguous", 70)
            assert event["payload"]["llm"] == {"status": "llm_invalid", "origin": "call"}
            # nothing of it is kept, and nobody is shut out by it
            assert len(server.asked) == number


FAILING: dict[str, tuple[Callable[[Asked], Reply], dict[str, str], bool]] = {
    # script; what the event says; whether tokens may have been spent
    "too many requests": (lambda _: fails(429, {"retry-after": "30"}), {"code": "llm_busy"}, False),
    "half a body": (lambda asked: replace(CANCEL(asked), sent_bytes=60), {"code": "llm_unreachable"}, True),
    "it broke": (lambda _: fails(500), {"code": "llm_failed"}, True),
    "a wrong key": (lambda _: fails(401), {"code": "llm_refused"}, False),
    "no completion": (lambda _: Reply(b"<html>"), {"code": "llm_failed"}, True),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("script", "said", "costs"), FAILING.values(), ids=FAILING)
async def test_a_server_that_fails_leaves_the_local_ranking(
    tmp_path: Path, encoder: Embedder, form: str, script: Callable[[Asked], Reply], said: dict[str, str], costs: bool
) -> None:
    async with scripted(tmp_path, encoder, script, form) as (desk, server):
        local = await desk.local_ranking()
        decision = await desk.route()
        assert (decision["clarify"], decision["degraded"]) == (local["clarify"], ["llm: llm_error"])
        event = await desk.read_event(decision)
        assert event["payload"]["llm"] == {"status": "llm_error", "origin": "call", **said}
        assert (event["cost_tokens"] > 0) is costs
        assert len(server.asked) == 1


async def test_a_server_that_wants_to_be_left_alone_is(tmp_path: Path, encoder: Embedder) -> None:
    async with scripted(tmp_path, encoder, lambda _: fails(429, {"retry-after": "30"})) as (desk, server):
        await desk.route()
        server.script = CANCEL
        decision = await desk.route("I changed my mind")
        assert (decision["action"], decision["degraded"]) == ("clarify", ["llm: skipped_breaker"])
        event = await desk.read_event(decision)
        assert event["payload"]["llm"] == {"status": "skipped_breaker", "origin": "local"}
        assert len(server.asked) == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("script", [silent, lambda asked: replace(CANCEL(asked), headers={"content-length": "9999"})])
async def test_a_slow_model_never_delays_beyond_the_deadline(
    tmp_path: Path, encoder: Embedder, form: str, script: Callable[[Asked], Reply]
) -> None:
    async with scripted(tmp_path, encoder, script, form) as (desk, server):
        local = await desk.local_ranking()
        began = time.monotonic()
        decision = await desk.route(response_timeout_ms=TIME_MS)
        took_ms = (time.monotonic() - began) * 1000
        assert (decision["clarify"], decision["degraded"]) == (local["clarify"], ["llm: llm_timeout"])
        # it was given all of the time but the reserve, which is for the way home
        assert TIME_MS - RESERVE_MS - 100 < decision["elapsed_ms"] < took_ms < TIME_MS
        assert (await desk.read_event(decision))["payload"]["llm"] == {"status": "llm_timeout", "origin": "call"}
        assert len(server.asked) == 1


async def test_without_enough_time_nobody_is_asked(tmp_path: Path, encoder: Embedder) -> None:
    async with scripted(tmp_path, encoder, silent, least_ms=30_000) as (desk, server):
        decision = await desk.route()
        assert (decision["degraded"], server.asked) == (["llm: skipped_deadline"], [])


async def test_neither_texts_nor_key_are_in_the_log_even_at_its_most_talkative(tmp_path: Path) -> None:
    cards, policy = agent_files(tmp_path)
    async with LlmServer(CANCEL) as model:
        asking = {"LLM_URL": model.base_url, "LLM_MODEL": "scripted", "LLM_KEY": "sk-secret", "LOG_LEVEL": "debug"}
        env = {f"AGENCY_ROUTER_{name}": value for name, value in asking.items()}
        server = Server(tmp_path, "--cards", str(cards), "--policy", str(policy), env=env).start()
        try:
            async with httpx.AsyncClient(base_url=str(server.client.base_url)) as client:
                decision = (await client.post("/route", json={"utterance": TEXT})).json()
        finally:
            assert server.stop() == 0
        assert (decision["intent"]["source"], len(model.asked)) == ("llm", 1)
    assert " DEBUG " in server.log
    assert not [line for line in server.log.splitlines() if TEXT in line or "sk-secret" in line]
