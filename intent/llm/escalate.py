"""Escalation: asks a language model where the local reading is not sure, if time, money and the model's health allow.

Whatever goes wrong is a status, never an exception: the local ranking stands.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from intent.llm.breaker import LlmBreaker, Ticket
from intent.llm.cache import AnswerCache, Key, question_key
from intent.llm.escalated import Escalated, EscalationStatus, Origin
from intent.llm.prompt import IntentText, Posed, estimate_tokens, pose
from intent.llm.window import Use, Window
from models.language_model import (
    Choice,
    InvalidChoiceError,
    LanguageModel,
    LanguageModelError,
    ModelBusyError,
    ModelFailedError,
    ModelTimeoutError,
    ModelUnreachableError,
)
from models.policy import LlmPolicy
from models.ports import Clock

log = logging.getLogger(__name__)

_MINUTE_MS = 60_000.0
_HOUR_MS = 3_600_000.0

SHIPPED = LlmPolicy()
"""The limits where nobody states any."""


@dataclass(slots=True, eq=False)
class _Flight:
    """A question under way and the requests that wait for it."""

    task: asyncio.Task[Choice]
    posed: Posed
    spent: Use
    n_waiting: int = 0

    def intent_of(self, choice: Choice) -> str | None:
        """The intent behind the id that was chosen."""
        return None if choice.id is None else self.posed.intents[choice.id]


class Escalation:
    """Asks a language model, sparingly.

    Attributes:
        limits: swapped by one assignment; holds from the next question on.
    """

    def __init__(
        self,
        model: LanguageModel | None,
        clock: Clock,
        breaker: LlmBreaker,
        limits: LlmPolicy = SHIPPED,
        *,
        seeds: Callable[[], int] = lambda: secrets.randbits(64),
    ) -> None:
        """Put the parts together.

        Args:
            model: None where none is configured: every question is then DISABLED.
            clock: for the limits, the breaker and the cache; the waits themselves are the event loop's.
            breaker: guards the model; nobody else's.
            limits: what is allowed.
            seeds: one number per question, unknown to callers; decides ids, order and nonce.
        """
        self.limits = limits
        self._model = model
        self._clock = clock
        self._breaker = breaker
        self._seeds = seeds
        self._calls = Window(_MINUTE_MS)
        self._tokens = Window(_HOUR_MS)
        self._cache = AnswerCache()
        self._flights: dict[Key, _Flight] = {}

    async def __aenter__(self) -> Self:
        """Nothing to open."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """End the calls that no request waits for any more."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(
        self, text: str, candidates: Sequence[IntentText], *, remaining_ms: float, budget_tokens: int | None = None
    ) -> Escalated:
        """Which of the candidates the text means, in the model's eyes.

        Args:
            text: the normalized utterance.
            candidates: the permitted ones only, best first, each intent once.
            remaining_ms: what the request's deadline leaves; the answer is there before, or there is none.
            budget_tokens: what the request may spend on language models; None sets no bound.
        """
        if self._model is None:
            return Escalated(None, EscalationStatus.DISABLED)
        wait_ms = min(remaining_ms, self.limits.timeout_ms)
        until_s = asyncio.get_running_loop().time() + wait_ms / 1000
        shown = candidates[: self.limits.max_candidates]
        if len({candidate.intent for candidate in shown}) < len(shown):
            raise ValueError(f"each intent once, got {[candidate.intent for candidate in shown]}")
        if not shown:
            return Escalated(None, EscalationStatus.SKIPPED_CANDIDATES)
        key = question_key(self._model.model_id, text, shown)
        cached = self._cache.get(key, self._clock.monotonic_ms(), self.limits.cache_ttl_ms)
        if cached is not None:
            (intent,) = cached
            return Escalated(intent, _status(intent), Origin.CACHE)
        if wait_ms <= 0 or remaining_ms < self.limits.least_ms:
            return Escalated(None, EscalationStatus.SKIPPED_DEADLINE)
        flight = self._flights.get(key)
        if flight is not None:
            shared = await self._wait(key, flight, until_s)
            return replace(shared, origin=Origin.SHARED, n_tokens=0)
        posed = pose(text, shown, seed=self._seeds(), max_answer_tokens=self.limits.max_answer_tokens)
        started = self._start(self._model, key, posed, budget_tokens)
        return started if isinstance(started, Escalated) else await self._wait(key, started, until_s)

    def _start(self, model: LanguageModel, key: Key, posed: Posed, budget_tokens: int | None) -> _Flight | Escalated:
        """Begin to ask, or say why not. Nothing is used up unless it begins."""
        now_ms, limits = self._clock.monotonic_ms(), self.limits
        n_tokens = estimate_tokens(posed.question)
        if budget_tokens is not None and n_tokens > budget_tokens:
            return Escalated(None, EscalationStatus.SKIPPED_BUDGET)
        if self._tokens.used(now_ms) + n_tokens > limits.tokens_per_hour:
            return Escalated(None, EscalationStatus.SKIPPED_SPEND)
        if len(self._flights) >= limits.max_in_flight or self._calls.used(now_ms) + 1 > limits.calls_per_minute:
            return Escalated(None, EscalationStatus.SKIPPED_RATE)
        # last, since a half-open breaker has one ticket only
        ticket = self._breaker.admit()
        if ticket is None:
            return Escalated(None, EscalationStatus.SKIPPED_BREAKER)
        self._calls.take(now_ms, 1)
        spent = self._tokens.take(now_ms, n_tokens)
        # bounded by the operator's time, not the request's: others may join that have more of it
        asking = _choose(model, posed, limits.timeout_ms / 1000)
        flight = _Flight(asyncio.create_task(asking, name="ask the language model"), posed, spent)
        self._flights[key] = flight
        # not in the task itself: one that is cancelled before its first step would never settle its ticket
        flight.task.add_done_callback(lambda _: self._land(key, flight, ticket))
        return flight

    async def _wait(self, key: Key, flight: _Flight, until_s: float) -> Escalated:
        """Wait for a flight that others may share.

        One that is too slow for all of them flies on to its own end: it says whether the server is slow or only the
        request was short of time, and its answer goes into the cache. One that nobody wants any more is ended.
        """
        flight.n_waiting += 1
        intent: str | None = None
        detail = ""
        try:
            async with asyncio.timeout_at(until_s):
                choice = await asyncio.shield(flight.task)
        except (TimeoutError, ModelTimeoutError):
            status = EscalationStatus.LLM_TIMEOUT
        except InvalidChoiceError:
            status = EscalationStatus.LLM_INVALID
        except LanguageModelError as error:
            status, detail = EscalationStatus.LLM_ERROR, error.code
        except asyncio.CancelledError:
            if _is_cancelled():
                if flight.n_waiting == 1:
                    flight.task.cancel()
                    self._forget(key, flight)
                raise
            # only the call was ended, as all are when this escalation closes
            status, detail = EscalationStatus.LLM_ERROR, ModelUnreachableError.code
        else:
            intent = flight.intent_of(choice)
            status = _status(intent)
        finally:
            flight.n_waiting -= 1
        return Escalated(intent, status, Origin.CALL, flight.spent.amount, detail)

    def _land(self, key: Key, flight: _Flight, ticket: Ticket) -> None:
        """What follows from how a call ended; runs before those who wait for it wake up."""
        self._forget(key, flight)
        if flight.task.cancelled():
            self._breaker.dropped(ticket)
            return
        error = flight.task.exception()
        if error is None:
            choice = flight.task.result()
            intent = flight.intent_of(choice)
            self._cache.put(key, intent, self._clock.monotonic_ms(), self.limits.cache_entries)
            self._breaker.succeeded(ticket)
            self._tokens.settle(flight.spent, choice.n_tokens)
        elif isinstance(error, LanguageModelError):
            self._judge(error, ticket)
            self._tokens.settle(flight.spent, error.n_tokens)

    def _judge(self, error: LanguageModelError, ticket: Ticket) -> None:
        if isinstance(error, InvalidChoiceError):
            self._breaker.succeeded(ticket)
        elif error.is_fault:
            self._breaker.failed(ticket, error.retry_after_ms if isinstance(error, ModelBusyError) else None)
        else:
            self._breaker.dropped(ticket)

    def _forget(self, key: Key, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


async def _choose(model: LanguageModel, posed: Posed, timeout_s: float) -> Choice:
    # what follows is promised by the port; nothing else may pass, whoever wrote the adapter
    try:
        choice = await model.choose(posed.question, timeout_s=timeout_s)
    except LanguageModelError:
        raise
    except Exception as error:
        log.exception("the language model's adapter failed")
        raise ModelFailedError(f"the language model's adapter failed ({type(error).__name__})") from None
    if choice.id is not None and choice.id not in posed.intents:
        raise InvalidChoiceError("the answer is no id that was offered", n_tokens=choice.n_tokens)
    return choice


def _is_cancelled() -> bool:
    """Whether the request itself is to end, and not only what it waits for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _status(intent: str | None) -> EscalationStatus:
    return EscalationStatus.NONE if intent is None else EscalationStatus.CHOSEN
