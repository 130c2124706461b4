"""Escalated: how asking a language model ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EscalationStatus(StrEnum):
    """How an escalation ended."""

    CHOSEN = "chosen"
    NONE = "none"
    DISABLED = "disabled"
    SKIPPED_CANDIDATES = "skipped_candidates"
    SKIPPED_DEADLINE = "skipped_deadline"
    SKIPPED_BUDGET = "skipped_budget"
    SKIPPED_BREAKER = "skipped_breaker"
    SKIPPED_RATE = "skipped_rate"
    SKIPPED_SPEND = "skipped_spend"
    LLM_INVALID = "llm_invalid"
    LLM_ERROR = "llm_error"
    LLM_TIMEOUT = "llm_timeout"


class Origin(StrEnum):
    """Where an outcome came from."""

    LOCAL = "local"
    CALL = "call"
    SHARED = "shared"
    CACHE = "cache"


@dataclass(frozen=True, slots=True)
class Escalated:
    """The outcome of an escalation.

    Attributes:
        intent: what the model chose among the intents offered; None under every status but CHOSEN.
        status: how it ended.
        origin: LOCAL: nothing was asked; CALL: asked for this request; SHARED: asked for an identical one that was
            under way; CACHE: asked not long ago.
        n_tokens: spent for this request: counted by the server, else our estimate; 0 unless `origin` is CALL.
        detail: the error's code where the status is LLM_ERROR ("llm_busy", …), else "".
    """

    intent: str | None
    status: EscalationStatus
    origin: Origin = Origin.LOCAL
    n_tokens: int = 0
    detail: str = ""

    @property
    def is_answer(self) -> bool:
        """Whether the model gave an answer that counts, be it that no candidate fits."""
        return self.status in (EscalationStatus.CHOSEN, EscalationStatus.NONE)
