"""What a learner takes and gives: lessons, what came of them, and state as rows."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from feedback.costs import Costs
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
        is_amended: whether it replaces one of the same call that was told before: it is evidence in its place, but
            drift and cost have seen the call already.
    """

    agent: AgentKey
    intents: Sequence[tuple[str, float]]
    reward: float
    caller: str
    features: tuple[float, float, float, float] | None
    cost_usd: float | None
    at_ms: int
    base: tuple[float, float, float, float] = BASE
    is_amended: bool = False


class Learnt(NamedTuple):
    """What changed.

    Attributes:
        rows: differences of evidence and states that replace earlier ones, for the store.
        contribution: what `unlearn_one` needs to undo it, JSON-able; None where there is nothing to undo. One that
            comes back from `unlearn_one` was not undone: learning is frozen, it is to be kept for later.
        is_alarm: whether the agent was demoted by it.
    """

    rows: list[WeightRow | LearnerRow]
    contribution: dict[str, Any] | None = None
    is_alarm: bool = False


class AgentState:
    """What is known of an agent beside evidence.

    Attributes:
        drift: what is watched of it.
        costs: what its calls cost.
        routed: requests of its namespace up to which its evidence has decayed; counts from the start of the process.
    """

    __slots__ = ("costs", "drift", "routed")

    def __init__(self, drift: Drift | None = None, costs: Costs | None = None) -> None:
        self.drift = drift or Drift()
        self.costs = costs or Costs()
        self.routed = 0

    def forget(self, caller: str) -> bool:
        """What a caller put in counts as nobody's; whether there was any."""
        is_in_drift = self.drift.forget(caller)
        return self.costs.forget(caller) or is_in_drift

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
            "costs": self.costs.body(),
        }
        return encoded(told)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> AgentState:
        """The state that `body` told of."""
        rest = dict(body)
        costs = Costs.of(rest.pop("costs"))
        return cls(Drift(**rest), costs)

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
        self.costs.merge(other.costs)


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
    """Weights and states as compressed JSON; the same ones give the same bytes, whichever order weights come in.

    To be run in a thread: it does nothing long in one step, which would hold up other threads.
    """
    by_agent: dict[tuple[str, ...], list[WeightRow]] = {}
    for row in weights:
        by_agent.setdefault(row[:3], []).append(row)
    parts = [orjson.dumps([list(row) for row in sorted(by_agent[agent])])[1:-1] for agent in sorted(by_agent)]
    told = orjson.dumps([list(state[:4]) for state in states])
    return zlib.compress(b'{"weights":[%s],"states":%s}' % (b",".join(parts), told), 6)


def unpack(snapshot: bytes, at_ms: int = 0) -> tuple[list[WeightRow], list[LearnerRow]]:
    """The weights and states that `pack` was given; may be run in a thread.

    Raises:
        ValueError: these are no such bytes.
    """
    try:
        told = orjson.loads(zlib.decompress(snapshot))
        names: dict[str, str] = {}  # each of them once: they are hashed over and over
        weights = [
            WeightRow._make([*[names.setdefault(name, name) for name in row[:5]], *row[5:]]) for row in told["weights"]
        ]
        return weights, [
            LearnerRow(namespace, agent_id, version, body, at_ms)
            for namespace, agent_id, version, body in told["states"]
        ]
    except (zlib.error, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this is no snapshot of a learner: {error}") from error
