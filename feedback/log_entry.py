"""LogEntry: a decision and what came of it, as offline analysis reads it out of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from models.card import AgentKey
from models.outcome import Outcome


class Option(NamedTuple):
    """An agent that could have been chosen.

    Attributes:
        similarity: as it counted, as do `quality`, `health` and `load`; 0..1, larger is better.
        cost: in the unit that all options of the entry have in common.
        latency_ms: expected; 0 while unknown.
        propensity: the probability with which it was to be chosen.
    """

    agent: AgentKey
    similarity: float
    quality: float
    health: float
    load: float
    cost: float
    latency_ms: float
    share_weight: float
    propensity: float


class LoggedOutcome(NamedTuple):
    """What came of one attempt, the newest that was told of it.

    Attributes:
        agent: which was called.
        charged: to whom it was charged (`feedback.attribution.Party`).
        reward: 0..1; None where the agent is not to be judged by it.
        at_ms: when it came (epoch).
    """

    attempt: int
    agent: AgentKey
    outcome: Outcome
    charged: str
    reward: float | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A recorded decision that could name an agent.

    Attributes:
        at_ms: when it was made (epoch).
        caller: in whose name it was asked.
        utterance: None where the request had none, or it is not kept.
        intent: the one that was routed by.
        intents: (intent, confidence) of the reading, the one routed by first.
        options: all that could have been chosen, best first.
        chosen: place of the one that was, among the options.
        preference: "auto", "cheapest" or "best".
        mode: of learning; "" where nothing was learned yet.
        weights: version of the weights.
        caller_choice: the agent that the caller called instead; None where it asked in earnest.
        outcomes: by attempt.
    """

    decision_id: str
    trace_id: str
    at_ms: int
    namespace: str
    caller: str
    session_id: str | None
    utterance: str | None
    language: str | None
    intent: str
    intents: tuple[tuple[str, float], ...]
    options: tuple[Option, ...]
    chosen: int
    preference: str
    mode: str
    weights: int
    caller_choice: AgentKey | None = None
    outcomes: tuple[LoggedOutcome, ...] = ()

    @property
    def propensity(self) -> float:
        """The probability with which the chosen one was to be chosen."""
        return self.options[self.chosen].propensity

    @property
    def reward(self) -> float | None:
        """Of the first attempt; None where there is none, or the agent is not to be judged by it."""
        return next((each.reward for each in self.outcomes if each.attempt == 1), None)
