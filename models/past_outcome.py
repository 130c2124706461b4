"""PastOutcome: what came of a call that this router did not decide, as a line of a file tells it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from models.contract import AgentId, Contract, IntentName, Namespace, SemanticVersion
from models.outcome import OutcomeStatus

Share = Annotated[float, Field(ge=0, le=1)]
Confidence = Annotated[float, Field(gt=0, le=1)]

OPERATOR = ""
"""The caller of lines that name none: they are the word of who imports them, and count for everybody."""


class PastOutcome(Contract):
    """One outcome of an agent; one of `intent` and `intents`, and one of `status` and `reward`, is needed.

    Attributes:
        version: None means the newest version that a card has, else "0.0.0".
        intent: what the call was for.
        intents: the same where it was not sure: intent → confidence.
        status: as in an outcome; what it is worth is for the policy to say.
        reward: what it was worth, 0..1.
        latency_ms: how long the call took; counts as in an outcome, against the timeout of the agent's card.
        quality: how good the answer was, 0..1.
        caller: in whose name the call was made; it is capped as any caller; none is the operator's own word.
        happened_at: epoch, milliseconds; None where it is not known.
    """

    agent_id: AgentId
    namespace: Namespace = "default"
    version: SemanticVersion | None = None
    intent: IntentName | None = None
    intents: Annotated[dict[IntentName, Confidence], Field(min_length=1, max_length=20)] | None = None
    status: Annotated[OutcomeStatus, Field(strict=False)] | None = None
    reward: Share | None = None
    latency_ms: Annotated[float, Field(ge=0, le=86_400_000)] | None = None
    cost_usd: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    quality: Share | None = None
    caller: Annotated[str, Field(min_length=1, max_length=128)] = OPERATOR
    happened_at: Annotated[int, Field(ge=0, le=2**53)] | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> PastOutcome:
        for one, other in (("intent", "intents"), ("status", "reward")):
            n_given = [getattr(self, name) is not None for name in (one, other)].count(True)
            if n_given == 2:
                raise ValueError(f"only one of '{one}' and '{other}' may be given")
            if not n_given:
                raise ValueError(f"'{one}' or '{other}' is needed")
        return self

    @property
    def read(self) -> list[tuple[str, float]]:
        """(intent, confidence), the surest first."""
        found = {self.intent: 1.0} if self.intent is not None else self.intents or {}
        return sorted(found.items(), key=lambda each: (-each[1], each[0]))
