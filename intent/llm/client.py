"""LlmClient: any server with OpenAI's chat completions as a LanguageModel."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from intent.llm.answer import answer_schema, read_answer
from intent.llm.errors import translate
from intent.llm.prompt import messages
from models.errors import ConfigError
from models.language_model import (
    Choice,
    InvalidChoiceError,
    LanguageModelError,
    ModelFailedError,
    ModelRefusedError,
    ModelTimeoutError,
    Question,
)
from models.ports import Clock

MAX_BODY_BYTES = 65_536
"""A longer response is not read to its end: an answer with all its trimmings takes a kilobyte."""

MAX_TOKENS_TOLD = 1_000_000
"""A server that claims to have spent more on one question is not believed."""

_REFUSES_FORM = (400, 422)
_MAY_REFUSE_FORM = (500, 501)
"""What llama-cpp-python answers to a form that it does not know, and other servers when they break."""


class Form(StrEnum):
    """How the server is told to answer by a schema.

    `json_schema` is OpenAI's own; `json_object` with a `schema` in it is what llama-cpp-python knows; AUTO begins with
    the first, and goes over to the second, for good, once that has worked where the first was refused. A server that
    breaks (500) may mean to refuse it, unless it has answered to it before.
    """

    AUTO = "auto"
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is and how it wants to be asked.

    Attributes:
        base_url: up to and including `/v1`.
        model: its name there.
        key: sent as bearer token; "" where none is needed.
        form: form of structured output.
        tokens_field: how the bound on the answer is called; OpenAI's reasoning models take the second only, and no
            temperature, which is then left out.
    """

    base_url: str
    model: str
    key: str = field(default="", repr=False)
    form: Form = Form.AUTO
    tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    def __post_init__(self) -> None:
        """Refuse what no request could be sent to."""
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ConfigError("the language model's base URL must be http(s)://host[:port]/path, without a user in it")
        if not self.model:
            raise ConfigError("the language model needs a name")


class LlmClient:
    """A LanguageModel over HTTP; close it after use (`async with`)."""

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        """Load the client, connect to nothing.

        Raises:
            ConfigError: the package openai is not installed.
        """
        try:
            import openai
        except ImportError:
            raise ConfigError(
                "asking a language model needs the package openai: pip install 'agency-router[llm]'"
            ) from None
        self._endpoint = endpoint
        self._clock = clock
        self._form = Form.JSON_OBJECT if endpoint.form is Form.JSON_OBJECT else Form.JSON_SCHEMA
        self._may_change_form = endpoint.form is Form.AUTO
        self._has_answered = False
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.key or "none",
            max_retries=0,
            # a redirect would carry the user's words to wherever the server says
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False, event_hooks={"response": [_leave_long_errors]}
            ),
        )
        # read from the environment by openai, and nobody else's business
        self._client.organization = self._client.project = None
        # looked up here since openai imports this half on first use, for a good part of a second
        self._create: Any = self._client.chat.completions.with_streaming_response.create

    async def __aenter__(self) -> Self:
        """Nothing to open."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self._client.close()

    @property
    def model_id(self) -> str:
        """Model and base URL."""
        return f"{self._endpoint.model} at {self._endpoint.base_url}"

    async def choose(self, question: Question, *, timeout_s: float) -> Choice:
        """See LanguageModel. One request, or two where the form of structured output was refused."""
        try:
            async with asyncio.timeout(timeout_s):
                body = await self._ask(question, timeout_s)
        except TimeoutError:
            raise ModelTimeoutError(f"the language model did not answer within {timeout_s:.3f} s") from None
        content, n_tokens = _of_body(body)
        try:
            return Choice(read_answer(content, question.ids), n_tokens)
        except InvalidChoiceError as error:
            error.n_tokens = n_tokens
            raise

    async def _ask(self, question: Question, timeout_s: float) -> bytes:
        try:
            body = await self._post(question, self._form, timeout_s)
        except (ModelRefusedError, ModelFailedError) as error:
            if not self._is_refused(error):
                raise
        else:
            self._has_answered = True
            return body
        body = await self._post(question, Form.JSON_OBJECT, timeout_s)
        self._form, self._may_change_form = Form.JSON_OBJECT, False
        return body

    def _is_refused(self, error: ModelRefusedError | ModelFailedError) -> bool:
        """Whether it may be the form that the server does not want, and there is another."""
        refusals = _REFUSES_FORM if self._has_answered else _REFUSES_FORM + _MAY_REFUSE_FORM
        return self._may_change_form and error.status in refusals

    async def _post(self, question: Question, form: Form, timeout_s: float) -> bytes:
        endpoint = self._endpoint
        extra: dict[str, Any] = {
            "response_format": _response_format(form, question),
            endpoint.tokens_field: question.max_answer_tokens,
        }
        if endpoint.tokens_field == "max_tokens":
            extra["temperature"] = 0.0
        try:
            # streamed, so that we hold the body's size and see its raw text: openai lets pass what is no JSON
            async with self._create(
                model=endpoint.model, messages=messages(question), extra_body=extra, timeout=timeout_s
            ) as response:
                return await _read(response)
        except LanguageModelError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge: whatever it is becomes ours
            raise translate(error, self._clock.now_ms()) from None


def _response_format(form: Form, question: Question) -> dict[str, Any]:
    schema = answer_schema(question.ids)
    if form is Form.JSON_OBJECT:
        return {"type": "json_object", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "choice", "strict": True, "schema": schema}}


async def _leave_long_errors(response: Any) -> None:
    """Close an error whose body is long, or of a length that nobody told: openai would read it whole."""
    told = response.headers.get("content-length", "")
    if not response.is_success and not (told.isdecimal() and int(told) <= MAX_BODY_BYTES):
        await response.aclose()


async def _read(response: Any) -> bytes:
    body = bytearray()
    async for part in response.iter_bytes():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise ModelFailedError(f"the language model's response is longer than {MAX_BODY_BYTES} bytes")
    return bytes(body)


def _of_body(body: bytes) -> tuple[object, int | None]:
    """(content of the one message, tokens used) of a chat completion.

    Raises:
        ModelFailedError: it is none.
    """
    try:
        completion = json.loads(body)
    except (ValueError, RecursionError):
        raise ModelFailedError("the language model's response is not JSON") from None
    try:
        (choice,) = completion["choices"]
        content = choice["message"]["content"]
    except (KeyError, TypeError, ValueError):
        raise ModelFailedError("the language model's response is no chat completion with one choice") from None
    usage = completion.get("usage")
    n_tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    is_told = type(n_tokens) is int and 0 <= n_tokens <= MAX_TOKENS_TOLD
    return content, n_tokens if is_told else None
