"""A seeded world of agents whose decisions fill a store, for the tests of the policy lab.

Decisions are made by the product's own formula and draws, and written as the service writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.events import DecisionRow, OutcomeRow, Row
from router.draw import draw_of
from router.learned import Learned
from router.scorer import Blend, Contender
from router.stores.feedback_log import LogQuery, RecordedDecision
from router.target_policy import decided

START_MS = 1_700_000_000_000
SUCCESS = {"refund": {"cheap": 0.55, "dear": 0.9}, "track": {"cheap": 0.85, "dear": 0.88}}
"""Intent → agent → probability of success."""

COST_USD = {"cheap": 0.01, "dear": 0.05, "own": 0.02}
LATENCY_MS = {"cheap": 200.0, "dear": 800.0, "own": 300.0}


@dataclass(frozen=True)
class World:
    """How the log comes about.

    Attributes:
        mode: of learning; None records no posteriors.
        floor: of exploration.
        declared: quality of the agents, where nothing is learned.
        evidence: outcomes that the posteriors are made of.
        cost_weight: lambda of the policy that decided.
        caller_share: of (intent, agent) chosen by callers beside the router; empty where nobody does.
    """

    mode: Any = "explore"
    floor: float = 0.1
    declared: dict[str, float] = field(default_factory=lambda: {"cheap": 0.7, "dear": 0.72})
    evidence: float = 20.0
    cost_weight: float = 0.1
    caller_share: dict[str, dict[str, float]] = field(default_factory=dict)
    utterance: str | None = "please help with my order"

    def rows(self, n: int, seed: int = 0) -> Iterator[Row]:
        """n decisions with their outcomes."""
        rng = np.random.default_rng(seed)
        for number in range(n):
            yield from self.one(number, rng)

    def one(self, number: int, rng: np.random.Generator) -> list[Row]:
        """A decision and its outcome."""
        intent = str(rng.choice(sorted(SUCCESS)))
        seed = int(rng.integers(2**63))
        learned, contenders = self._contenders(intent)
        blend = Blend(cost_weight=self.cost_weight)
        ranked, choice = decided(contenders, blend, learned, seed)
        shares = {each.contender.agent_id: share for each, share in zip(ranked, choice.propensities, strict=False)}
        chosen = ranked[choice.index].contender
        called = chosen.agent_id
        request: dict[str, Any] = {"utterance": self.utterance, "intent": intent}
        if self.caller_share:
            names = sorted(self.caller_share[intent])
            called = str(rng.choice(names, p=[self.caller_share[intent][name] for name in names]))
            request["caller_choice"] = {"agent_id": called}
        decision_id = f"d{number:06}"
        decision = decision_row(
            decision_id,
            intent,
            chosen,
            request=request,
            at_ms=START_MS + number,
            inputs={
                "seed": seed,
                "blend": list(blend),
                "learned": None if learned is None else learned._asdict(),
                "contenders": [sealed(each) for each in contenders],
                "propensities": [shares.get(each.agent_id, 0.0) for each in contenders],
            },
        )
        is_success = rng.random() < SUCCESS[intent].get(called, 0.5)
        status = "succeeded" if is_success else "failed"
        told: dict[str, Any] = {
            "latency_ms": LATENCY_MS[called] * (0.5 + draw_of(seed, 9)),
            "cost_usd": COST_USD[called],
        }
        return [decision, outcome_row(decision_id, status, at_ms=START_MS + number, **told)]

    def _contenders(self, intent: str) -> tuple[Learned | None, list[Contender]]:
        names = sorted(SUCCESS[intent])
        quality = dict(self.declared)
        learned = None
        if self.mode is not None:
            alpha = tuple([SUCCESS[intent][name] * self.evidence for name in names])
            beta = tuple([(1 - SUCCESS[intent][name]) * self.evidence for name in names])
            learned = Learned(self.mode, alpha, beta, 0.0 if self.mode == "observe" else self.floor, 0.5, 7)
            if self.mode != "observe":
                quality = dict(zip(names, learned.means, strict=True))
        cost = {"cheap": 1.0, "dear": 5.0}
        return learned, [contender(name, quality[name], cost[name]) for name in names]


def contender(agent_id: str, quality: float = 0.8, cost: float = 1.0, **values: Any) -> Contender:
    """One that is perfect but for its quality."""
    usual = {"namespace": "default", "version": "1.0.0", "similarity": 0.9, "health": 1.0, "load": 1.0}
    return Contender(agent_id, quality=quality, cost=cost, **{**usual, **values})


def sealed(one: Contender) -> list[Any]:
    """A contender as records hold it."""
    name = f"{one.namespace}/{one.agent_id}/{one.version}"
    return [name, one.quality, one.cost, one.health, one.load, one.share_weight, one.latency_ms]


def decision_row(
    decision_id: str,
    intent: str,
    chosen: Contender,
    *,
    request: dict[str, Any] | None = None,
    inputs: dict[str, Any] | None = None,
    at_ms: int = START_MS,
    reason: str = "selected",
    confidence: float = 0.9,
    **columns: Any,
) -> DecisionRow:
    """A record of a decision for one agent."""
    target = {"agent_id": chosen.agent_id, "namespace": chosen.namespace, "version": chosen.version, "intent": intent}
    answer = {
        "language": "en",
        "intent": {"name": intent, "confidence": confidence, "source": "lexical", "alternatives": []},
        "target": target,
        "plan": [{"target": target, "timeout_ms": 2000}],
        "generations": {"cards": 1, "index": 1, "classifier": 1, "weights": 7, "policy": 1},
    }
    reading = {"intent": intent, "confidence": confidence, "preference": None}
    row = DecisionRow(
        decision_id=decision_id,
        trace_id=f"t-{decision_id}",
        caller="key",
        namespace="default",
        action="invoke",
        reason=reason,
        intent=intent,
        agent_id=chosen.agent_id,
        request=json.dumps({"intent": intent} if request is None else request),
        answer=json.dumps(answer),
        inputs=json.dumps({"grants": {"permissions": None}, "reading": reading, **(inputs or {})}),
        happened_at=at_ms,
        session_id=None,
        asker="shop",
    )
    return row._replace(**columns)


def outcome_row(decision_id: str, status: str, *, at_ms: int = START_MS, attempt: int = 1, **told: Any) -> OutcomeRow:
    """An outcome that is charged to the agent."""
    body = {"decision_id": decision_id, "attempt": attempt, "status": status, **told}
    return OutcomeRow(decision_id, attempt, None, "shop", json.dumps(body), "agent", at_ms)


class Pages:
    """Recorded decisions in memory, as a store gives them.

    Attributes:
        n_pages: how many were asked for.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.n_pages = 0
        outcomes: dict[str, list[OutcomeRow]] = {}
        decisions = []
        for row in rows:
            if isinstance(row, DecisionRow):
                decisions.append(row)
            elif isinstance(row, OutcomeRow):
                outcomes.setdefault(row.decision_id, []).append(row)
        self.rows = [RecordedDecision(row, tuple(outcomes.get(row.decision_id, ()))) for row in decisions]

    async def page(self, query: LogQuery, after: tuple[int, str] | None, limit: int) -> Sequence[RecordedDecision]:
        """The oldest first, whatever is asked for."""
        self.n_pages += 1
        return [
            row for row in self.rows if after is None or (row.decision.happened_at, row.decision.decision_id) > after
        ][:limit]
