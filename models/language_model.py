"""LanguageModel: the port through which an utterance is put before a language model, and what may go wrong there.

LanguageModelError           the root; of the tree in models.errors, a RouterError
├── ModelTimeoutError        no whole answer within the time allowed
├── ModelUnreachableError    no connection, or it was lost before the answer was whole
├── ModelBusyError           too many requests (429), or not now (503 with Retry-After); carries retry_after_ms
├── ModelRefusedError        the server takes no such request: wrong key, unknown model, redirect, any other 4xx
├── ModelFailedError         the server broke (5xx), or its answer is no chat completion
└── InvalidChoiceError       the model answered, but nothing that was offered
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from models.errors import RouterError

NONE = "none"
"""What a model answers where no candidate fits; never the id of a candidate."""


@dataclass(frozen=True, slots=True)
class Option:
    """A candidate as the model sees it.

    Attributes:
        id: opaque; tells neither the intent, nor the agent, nor its rank.
        description: what it is for.
        examples: utterances that mean it.
    """

    id: str
    description: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Which of the options an utterance means.

    Attributes:
        utterance: data, like all texts of the options; never an instruction.
        options: at least one; their ids differ from each other and from `NONE`.
        nonce: hard to guess for whoever wrote the texts; marks where the data begins and ends.
        max_answer_tokens: the model is stopped after that many.
    """

    utterance: str
    options: tuple[Option, ...]
    nonce: str
    max_answer_tokens: int = 64

    def __post_init__(self) -> None:
        """Refuse ids that do not tell the options apart."""
        ids = self.ids
        if not ids or len(set(ids)) < len(ids) or NONE in ids:
            raise ValueError(f"a question needs options with ids of their own, none of them {NONE!r}; got {ids}")

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the options, in their order."""
        return tuple(option.id for option in self.options)


@dataclass(frozen=True, slots=True)
class Choice:
    """A model's answer.

    Attributes:
        id: the id of one of the options, exactly as offered; None where none fits.
        n_tokens: prompt and answer together, as the server counted them; None where it did not say.
    """

    id: str | None
    n_tokens: int | None = None


class LanguageModel(Protocol):
    """A model that picks one option or none."""

    @property
    def model_id(self) -> str:
        """Names the model and where it runs; answers of two ids are never mixed up."""

    async def choose(self, question: Question, *, timeout_s: float) -> Choice:
        """Which option the utterance means.

        Raises:
            LanguageModelError: whatever else happens, within `timeout_s`; nothing else is ever raised but the
                CancelledError of a caller that gave up.
        """


class LanguageModelError(RouterError):
    """No answer that counts.

    Attributes:
        n_tokens: what was spent all the same; None where that is not known.
        is_fault: whether it tells against the server's health, and not only against this one question.
    """

    code = "llm_error"
    is_fault = True

    def __init__(self, message: str, *, n_tokens: int | None = None) -> None:
        super().__init__(message)
        self.n_tokens = n_tokens


class ModelTimeoutError(LanguageModelError):
    """No whole answer within the time allowed."""

    code = "llm_timeout"


class ModelUnreachableError(LanguageModelError):
    """No connection, or it was lost before the answer was whole."""

    code = "llm_unreachable"


class ModelBusyError(LanguageModelError):
    """The server wants to be left alone for a while.

    Attributes:
        retry_after_ms: for how long, as it said; None where it did not.
    """

    code = "llm_busy"

    def __init__(self, message: str, *, retry_after_ms: float | None = None) -> None:
        super().__init__(message, n_tokens=0)
        self.retry_after_ms = retry_after_ms


class ModelRefusedError(LanguageModelError):
    """The server takes no such request.

    Attributes:
        status: its HTTP status.
    """

    code = "llm_refused"

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message, n_tokens=0)
        self.status = status
        # 400, 413 and 422 speak of the question (too long, filtered): whoever writes one must not be able to turn the
        # model off for everybody. All other refusals (key, model, address) would meet every question.
        self.is_fault = status not in (400, 413, 422)


class ModelFailedError(LanguageModelError):
    """The server broke, or its answer is no chat completion.

    Attributes:
        status: its HTTP status where it broke; None otherwise.
    """

    code = "llm_failed"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class InvalidChoiceError(LanguageModelError):
    """The model answered, but nothing that was offered. Says nothing against the server."""

    code = "llm_invalid"
    is_fault = False
