"""What a learner takes and gives: lessons, what came of them, and state as rows."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from feedback.drift import Drift
from models.card import AgentKey
from models.events import LearnerRow, WeightRow

BASE = (1.0, 1.0, 1.0, 1.0)


class Lesson(NamedTuple):
    """An outcome as a learner takes it.

    Attributes:
        agent: which was called.
        intents: (intent, confidence) of the reading, at least one, the one routed by first.
        reward: 0..1 (`feedback.reward`).
        caller: in whose name it came; "" where there is none.
        features: similarity, quality, health and load of the agent as they counted; None leaves exponents alone.
        cost_usd: what the call cost; None where nobody told.
        at_ms: when it came (epoch).
        base: the policy's exponents, in the order of the features.
    """

    agent: AgentKey
    intents: Sequence[tuple[str, float]]
    reward: float
    caller: str
    features: tuple[float, float, float, float] | None
    cost_usd: float | None
    at_ms: int
    base: tuple[float, float, float, float] = BASE


class Learnt(NamedTuple):
    """What changed.

    Attributes:
        rows: differences of evidence and states that replace earlier ones, for the store.
        contribution: what `unlearn_one` needs to undo it, JSON-able; None where there is nothing to undo.
        is_alarm: whether the agent was demoted by it.
    """

    rows: list[WeightRow | LearnerRow]
    contribution: dict[str, Any] | None = None
    is_alarm: bool = False


class AgentState:
    """What is known of an agent beside evidence.

    Attributes:
        cost_usd: EWMA of what its calls cost; None before the first.
        n_costs: calls whose cost was told.
        routed: requests of its namespace up to which its evidence has decayed; counts from the start of the process.
    """

    __slots__ = ("cost_usd", "drift", "n_costs", "routed")

    def __init__(self, drift: Drift | None = None, cost_usd: float | None = None, n_costs: int = 0) -> None:
        self.drift = drift or Drift()
        self.cost_usd = cost_usd
        self.n_costs = n_costs
        self.routed = 0

    def pay(self, cost_usd: float) -> None:
        """Takes the cost of a call: the mean of the first 25, then an EWMA that weighs them 1/25."""
        self.n_costs += 1
        if self.cost_usd is None:
            self.cost_usd = cost_usd
        else:
            self.cost_usd += (cost_usd - self.cost_usd) / min(self.n_costs, 25)

    def body(self) -> str:
        """JSON text, from which `of` makes the same again, to the last bit."""
        drift = self.drift
        told = {
            "cusum": drift.cusum,
            "parts": drift.parts,
            "recent": drift.recent,
            "n_outcomes": drift.n_outcomes,
            "is_demoted": drift.is_demoted,
            "inherited_n": drift.inherited_n,
            "inherited_s": drift.inherited_s,
            "cost_usd": self.cost_usd,
            "n_costs": self.n_costs,
        }
        return encoded(told)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> AgentState:
        """The state that `body` told of."""
        rest = dict(body)
        cost_usd, n_costs = rest.pop("cost_usd"), rest.pop("n_costs")
        return cls(Drift(**rest), cost_usd, n_costs)

    def merge(self, other: AgentState) -> None:
        """Takes what another process saw: of sums the larger, of means that of both."""
        mine, theirs = self.drift, other.drift
        n = mine.n_outcomes + theirs.n_outcomes
        if theirs.recent is not None:
            share = theirs.n_outcomes / n if n else 1.0
            mine.recent = theirs.recent if mine.recent is None else mine.recent + share * (theirs.recent - mine.recent)
        if theirs.cusum > mine.cusum:
            mine.cusum, mine.parts = theirs.cusum, dict(theirs.parts)
        mine.n_outcomes = n
        mine.is_demoted |= theirs.is_demoted
        mine.inherited_n = min(mine.inherited_n, theirs.inherited_n)
        mine.inherited_s = min(mine.inherited_s, theirs.inherited_s)
        if other.cost_usd is not None:
            n_costs = self.n_costs + other.n_costs
            mean = other.cost_usd if self.cost_usd is None else self.cost_usd
            self.cost_usd = mean + (other.cost_usd - mean) * other.n_costs / max(n_costs, 1)
            self.n_costs = n_costs


def encoded(value: object) -> str:
    """JSON text; floats come back to the last bit."""
    return orjson.dumps(value).decode()


def parsed(row: LearnerRow) -> dict[str, Any]:
    """The body of a row.

    Raises:
        ValueError: it is not a JSON object.
    """
    body = json.loads(row.body)
    if not isinstance(body, dict):
        raise ValueError(f"learner row {row[:3]}: the body is {body!r}, not an object")
    return body


def pack(weights: Iterable[WeightRow], states: Iterable[LearnerRow]) -> bytes:
    """Weights and states as compressed JSON; the same ones in the same order give the same bytes."""
    told = {"weights": [list(row) for row in weights], "states": [list(row[:4]) for row in states]}
    return zlib.compress(encoded(told).encode(), 6)


def unpack(snapshot: bytes, at_ms: int) -> tuple[list[WeightRow], list[LearnerRow]]:
    """The weights and states that `pack` was given.

    Raises:
        ValueError: these are no such bytes.
    """
    try:
        told = json.loads(zlib.decompress(snapshot))
        weights = [WeightRow(*row) for row in told["weights"]]
        return weights, [
            LearnerRow(namespace, agent_id, version, body, at_ms)
            for namespace, agent_id, version, body in told["states"]
        ]
    except (zlib.error, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this is no snapshot of a learner: {error}") from error
