from __future__ import annotations

import asyncio
import gzip
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from intent.llm.client import MAX_BODY_BYTES, Endpoint, Form, LlmClient
from models.errors import ConfigError
from models.language_model import (
    InvalidChoiceError,
    LanguageModelError,
    ModelBusyError,
    ModelFailedError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnreachableError,
    Option,
    Question,
)
from tests.builders import FakeClock
from tests.llm_server import Asked, LlmServer, Reply, fails, picks, says, silent
from tests.router.waiting import eventually

QUESTION = Question(
    "I do not want it any more",
    (Option("kzrtw", "cancels an order", ("stop my order",)), Option("bnvcx", "says where an order is")),
    nonce="0f0f",
    max_answer_tokens=32,
)
CANCEL = picks("cancels an order")
LONG_S = 20.0


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with LlmServer(CANCEL) as running:
        yield running


def endpoint_of(server: LlmServer, **fields: Any) -> Endpoint:
    return Endpoint(**{"base_url": server.base_url, "model": "scripted", "key": "sk-secret", **fields})


async def ask(server: LlmServer, question: Question = QUESTION, *, timeout_s: float = LONG_S, **fields: Any) -> Any:
    async with LlmClient(endpoint_of(server, **fields), FakeClock()) as client:
        return await client.choose(question, timeout_s=timeout_s)


async def error_of(server: LlmServer, **fields: Any) -> LanguageModelError:
    with pytest.raises(LanguageModelError) as caught:
        await ask(server, **fields)
    assert "secret" not in str(caught.value)
    return caught.value


async def test_an_offered_id_is_a_choice_with_its_tokens(server: LlmServer) -> None:
    server.script = picks("says where an order is", n_tokens=77)
    choice = await ask(server)
    assert (choice.id, choice.n_tokens) == ("bnvcx", 77)


async def test_none_is_a_choice(server: LlmServer) -> None:
    server.script = lambda _: says('{"choice": "none"}')
    assert (await ask(server)).id is None


@pytest.mark.parametrize("usage", [{"total_tokens": wrong} for wrong in (None, -5, 10**9, "9", 1.5, True)] + [None, 7])
async def test_tokens_that_cannot_be_are_not_believed(server: LlmServer, usage: object) -> None:
    def script(asked: Asked) -> Reply:
        completion = json.loads(CANCEL(asked).body)
        return Reply(json.dumps({**completion, "usage": usage}).encode())

    server.script = script
    assert (await ask(server)).n_tokens is None


async def test_the_request_is_the_one_of_the_settings(server: LlmServer) -> None:
    await ask(server)
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer sk-secret"
    assert (asked.body["model"], asked.body["max_tokens"], asked.body["temperature"]) == ("scripted", 32, 0.0)
    assert asked.utterance == QUESTION.utterance


async def test_models_that_think_aloud_get_other_fields(server: LlmServer) -> None:
    await ask(server, tokens_field="max_completion_tokens")
    body = server.asked[0].body
    assert body["max_completion_tokens"] == 32
    assert not {"max_tokens", "temperature"} & body.keys()


async def test_the_environment_of_openai_is_not_sent(server: LlmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://leaked.invalid")
    await ask(server, key="")
    assert "leaked" not in json.dumps(dict(server.asked[0].headers))


async def test_json_schema_offers_the_ids_strictly(server: LlmServer) -> None:
    await ask(server, form=Form.JSON_SCHEMA)
    wanted = server.asked[0].body["response_format"]
    assert (wanted["type"], wanted["json_schema"]["strict"]) == ("json_schema", True)
    assert wanted["json_schema"]["schema"]["properties"]["choice"]["enum"] == ["kzrtw", "bnvcx", "none"]


async def test_json_object_has_the_schema_beside_it_and_in_the_prompt(server: LlmServer) -> None:
    await ask(server, form=Form.JSON_OBJECT)
    (asked,) = server.asked
    wanted = asked.body["response_format"]
    assert wanted["type"] == "json_object"
    assert wanted["schema"]["properties"]["choice"]["enum"] == ["kzrtw", "bnvcx", "none"]
    assert json.dumps(wanted["schema"]) in asked.system


def knows_json_object_only(status: int) -> Any:
    return lambda asked: CANCEL(asked) if asked.form == "json_object" else fails(status)


@pytest.mark.parametrize("status", [400, 422, 500, 501])
async def test_auto_goes_over_to_json_object_once_and_for_good(server: LlmServer, status: int) -> None:
    server.script = knows_json_object_only(status)
    async with LlmClient(endpoint_of(server), FakeClock()) as client:
        for _ in range(3):
            assert (await client.choose(QUESTION, timeout_s=LONG_S)).id == "kzrtw"
    assert [asked.form for asked in server.asked] == ["json_schema", *["json_object"] * 3]


async def test_auto_stays_where_the_other_form_is_refused_too(server: LlmServer) -> None:
    server.script = lambda _: fails(400)
    async with LlmClient(endpoint_of(server), FakeClock()) as client:
        for _ in range(2):
            with pytest.raises(ModelRefusedError):
                await client.choose(QUESTION, timeout_s=LONG_S)
        server.script = CANCEL
        await client.choose(QUESTION, timeout_s=LONG_S)
    assert [asked.form for asked in server.asked] == [*["json_schema", "json_object"] * 2, "json_schema"]


async def test_auto_does_not_take_a_server_that_breaks_for_one_that_refuses(server: LlmServer) -> None:
    async with LlmClient(endpoint_of(server), FakeClock()) as client:
        await client.choose(QUESTION, timeout_s=LONG_S)
        server.script = knows_json_object_only(500)
        with pytest.raises(ModelFailedError):
            await client.choose(QUESTION, timeout_s=LONG_S)
        server.script = CANCEL
        await client.choose(QUESTION, timeout_s=LONG_S)
        # a clear refusal is heard at any time
        server.script = knows_json_object_only(400)
        await client.choose(QUESTION, timeout_s=LONG_S)
    assert [asked.form for asked in server.asked] == [*["json_schema"] * 4, "json_object"]


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_server_that_is_away_is_asked_once(server: LlmServer, status: int) -> None:
    server.script = lambda _: fails(status)
    assert type(await error_of(server)) is ModelFailedError
    assert len(server.asked) == 1


@pytest.mark.parametrize("form", [Form.JSON_SCHEMA, Form.JSON_OBJECT])
async def test_a_form_that_was_set_is_kept(server: LlmServer, form: Form) -> None:
    server.script = lambda _: fails(400)
    await error_of(server, form=form)
    assert [asked.form for asked in server.asked] == [form]


@pytest.mark.parametrize("form", [Form.JSON_SCHEMA, Form.JSON_OBJECT])
@pytest.mark.parametrize(
    "content",
    [
        "The customer wants to cancel: kzrtw",
        '```json\n{"choice": "kzrtw"}\n```',
        '{"choice": "kzrtw"}\n{"choice": "bnvcx"}',
        '```json\n{"choice": "kzrtw"}\n```\n```json\n{"choice": "bnvcx"}\n```',
        '{"choice": "cancel_order"}',
        '{"choice": 0}',
        '{"choice": 1}',
        '{"choice": "kzrtw", "confidence": 1}',
        '{"choice": "订单"}',
        "",
        None,
        [{"type": "text", "text": '{"choice": "kzrtw"}'}],
    ],
)
async def test_all_but_an_offered_id_is_invalid(server: LlmServer, content: object, form: Form) -> None:
    server.script = lambda _: says(content, n_tokens=50)
    error = await error_of(server, form=form)
    assert isinstance(error, InvalidChoiceError)
    assert (error.n_tokens, error.is_fault, len(server.asked)) == (50, False, 1)


@pytest.mark.parametrize(
    ("status", "kind", "is_fault"),
    [
        (302, ModelRefusedError, True),
        (400, ModelRefusedError, False),
        (401, ModelRefusedError, True),
        (403, ModelRefusedError, True),
        (404, ModelRefusedError, True),
        (408, ModelTimeoutError, True),
        (409, ModelRefusedError, True),
        (413, ModelRefusedError, False),
        (418, ModelRefusedError, True),
        (422, ModelRefusedError, False),
        (429, ModelBusyError, True),
        (500, ModelFailedError, True),
        (503, ModelFailedError, True),
    ],
)
async def test_every_status_has_its_error_and_is_asked_once(
    server: LlmServer, status: int, kind: type[LanguageModelError], is_fault: bool
) -> None:
    elsewhere = f"{server.base_url}/elsewhere"
    server.script = lambda _: fails(status, {"location": elsewhere}, message="your key sk-secret", code="oops")
    error = await error_of(server, form=Form.JSON_SCHEMA)
    assert type(error) is kind
    assert error.is_fault is is_fault
    assert f"status {status}, oops" in str(error)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "value", "ms"),
    [
        ("retry-after", "7", 7000.0),
        ("retry-after", "0.5", 500.0),
        ("retry-after", "Tue, 14 Nov 2023 22:14:20 GMT", 60_000.0),
        ("retry-after", "Tue, 14 Nov 2022 22:14:20 GMT", 0.0),
        ("retry-after-ms", "120", 120.0),
    ],
)
async def test_retry_after_is_read(server: LlmServer, status: int, header: str, value: str, ms: float) -> None:
    server.script = lambda _: fails(status, {header: value})
    error = await error_of(server)
    assert isinstance(error, ModelBusyError)
    assert error.retry_after_ms == ms
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Bad gateway</html>",
        b"",
        b"null",
        b"[]",
        b"\xff\xfe\xfa",
        b"[" * 50_000,
        b'{"error": {"message": "overloaded"}}',
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": "x"}}, {"message": {"content": "x"}}]}',
        b'{"choices": [{"text": "x"}]}',
        b'{"choices": {"message": 1}}',
        b'{"choices": [7]}',
    ],
)
async def test_a_body_that_is_no_chat_completion_is_a_failure(server: LlmServer, body: bytes) -> None:
    server.script = lambda _: Reply(body)
    assert type(await error_of(server)) is ModelFailedError


async def test_a_body_without_its_content_type_is_read_all_the_same(server: LlmServer) -> None:
    server.script = lambda asked: replace(CANCEL(asked), headers={"content-type": "text/plain"})
    assert (await ask(server)).id == "kzrtw"


@pytest.mark.parametrize("sent_bytes", [0, 1, 60])
@pytest.mark.parametrize("status", [200, 400, 500])
async def test_half_a_body_is_a_lost_connection(server: LlmServer, sent_bytes: int, status: int) -> None:
    server.script = lambda asked: replace(CANCEL(asked), status=status, sent_bytes=sent_bytes)
    error = await error_of(server)
    # what the answer cost is not known
    assert (type(error), error.n_tokens) == (ModelUnreachableError, None)


@pytest.mark.parametrize("is_zipped", [False, True])
async def test_a_huge_body_is_not_read_to_its_end(server: LlmServer, is_zipped: bool) -> None:
    huge = b" " * (MAX_BODY_BYTES * 50)
    server.script = lambda _: (
        Reply(gzip.compress(huge), headers={"content-encoding": "gzip"}) if is_zipped else Reply(huge)
    )
    error = await error_of(server)
    assert type(error) is ModelFailedError
    assert "longer than" in str(error)


@pytest.mark.parametrize("status", [302, 400, 429, 500])
async def test_a_huge_error_is_not_read_at_all(server: LlmServer, status: int) -> None:
    # it never ends, so reading it would be a time-out
    server.script = lambda _: fails(status, {"content-length": str(10**9), "retry-after": "7"})
    error = await error_of(server, form=Form.JSON_SCHEMA)
    assert f"status {status}" in str(error)
    assert getattr(error, "retry_after_ms", 7000.0) == 7000.0


async def test_what_claims_to_be_zipped_and_is_not_is_ours_too(server: LlmServer) -> None:
    server.script = lambda _: Reply(b"plain", headers={"content-encoding": "gzip"})
    await error_of(server)


async def test_nobody_there_is_unreachable(server: LlmServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = await error_of(server, base_url=f"http://127.0.0.1:{port}/v1")
    # nothing was sent, so nothing was spent
    assert (type(error), error.n_tokens) == (ModelUnreachableError, 0)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_server_that_speaks_something_else_is_unreachable(server: LlmServer, scheme: str) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.org ready\r\n\r\n")
        await writer.drain()
        writer.close()

    other = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with other:
        port = other.sockets[0].getsockname()[1]
        error = await error_of(server, base_url=f"{scheme}://127.0.0.1:{port}/v1")
    assert type(error) is ModelUnreachableError


async def test_a_name_that_does_not_exist_is_unreachable(server: LlmServer) -> None:
    # how long a resolver tries is not ours to say
    error = await error_of(server, base_url="http://model.invalid/v1", timeout_s=5.0)
    assert isinstance(error, ModelUnreachableError | ModelTimeoutError)


@pytest.mark.parametrize("form", [Form.JSON_SCHEMA, Form.JSON_OBJECT])
async def test_silence_is_a_timeout_and_the_connection_is_given_up(server: LlmServer, form: Form) -> None:
    server.script = silent
    began = time.monotonic()
    assert type(await error_of(server, form=form, timeout_s=0.2)) is ModelTimeoutError
    assert time.monotonic() - began < 3.0
    await eventually(lambda: server.n_lost == 1)


async def test_a_body_that_trickles_is_a_timeout(server: LlmServer) -> None:
    # headers and half a body at once, the rest never: no single read is waited for longer than the whole may take
    server.script = lambda asked: replace(CANCEL(asked), headers={"content-length": "9999"})
    began = time.monotonic()
    assert type(await error_of(server, timeout_s=0.3)) is ModelTimeoutError
    assert time.monotonic() - began < 3.0


async def test_the_second_form_gets_no_time_of_its_own(server: LlmServer) -> None:
    server.script = lambda asked: fails(400) if asked.form == "json_schema" else silent(asked)
    began = time.monotonic()
    assert type(await error_of(server, timeout_s=0.3)) is ModelTimeoutError
    assert time.monotonic() - began < 3.0


async def test_cancelling_is_no_error_of_ours(server: LlmServer) -> None:
    server.script = silent
    task = asyncio.create_task(ask(server))
    await eventually(lambda: bool(server.asked))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://host/v1", "http://", "file:///etc/passwd", "http://me:pw@host/v1"]
)
def test_a_base_url_nothing_could_be_sent_to_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base URL"):
        Endpoint(url, "model")


def test_a_model_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="name"):
        Endpoint("http://host/v1", "")


def test_the_key_is_not_shown() -> None:
    endpoint = Endpoint("http://host/v1", "m", "sk-secret")
    assert "secret" not in repr(endpoint)
    assert "secret" not in LlmClient(endpoint, FakeClock()).model_id


def test_without_openai_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError, match=r"pip install 'agency-router\[llm\]'"):
        LlmClient(Endpoint("http://host/v1", "m"), FakeClock())


def test_openai_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, intent.llm.client, intent.llm.escalate; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
