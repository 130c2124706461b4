"""Decisions of mixed kinds, recorded by a running service, then replayed all by one that was started afterwards.

Half of the requests name their intent, half are sentences of the example set; callers, preferences, budgets, payloads
and wishes vary, some are refused or ambiguous. Outcomes of half of the decisions are posted and learned from, with
costs here and there; the policy goes through the three modes of learning, and cards change on the way. At the end of
the first service other cards and another policy are in force. The replaying one opens the store anew and makes each
decision again from its sealed inputs.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import perf_counter
from typing import NamedTuple

from benchmarks.data_sets import example_utterances
from benchmarks.report import Goal, Report
from intent.dummy_embedder import DummyEmbedder
from models.card import AgentCard, Capability
from models.decision import RouteDecision
from models.learning_policy import LearningMode, LearningPolicy
from models.outcome import Outcome, OutcomeStatus
from models.policy import Policy
from models.request import Caller, RouteRequest
from models.settings import Settings
from router.permit import OPEN
from router.replay_log import LogReport, replay_log
from router.running import Parts, running

N_DECISIONS = 100_000
_BATCH = 100
_N_INTENTS, _N_AGENTS = 12, 30
_MODES: tuple[LearningMode, ...] = ("exploit", "explore", "observe")
_N_PHASES = 12
"""In each of them another mode, or other cards."""
_FLUSH_MS = 60_000
_MANY = 1000


def replay_row(report: Report, n: int) -> None:
    """Fill a store, start again, replay all."""
    report.section(f"{n:,} decisions replayed after a restart")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder) / "store.db"
        settings = Settings(store=f"sqlite:///{path}", watch=False, classifier=False)
        began = perf_counter()
        made = asyncio.run(filled(settings, n))
        rate = n / (perf_counter() - began)
        report.add("decisions made and recorded", rate, "a second", note=f"with {made.n_outcomes:,} outcomes")
        report.say("  " + ", ".join(f"{count:,} {reason}" for reason, count in made.reasons.most_common()))
        report.add("size of the store", path.stat().st_size / n / 1000, "kB a decision")
        began = perf_counter()
        found = asyncio.run(replayed(settings))
        _tell(report, found, perf_counter() - began)


class Made(NamedTuple):
    """What a service did.

    Attributes:
        reasons: decisions by their reason.
    """

    reasons: Counter[str]
    n_outcomes: int


async def filled(settings: Settings, n: int) -> Made:
    """A service that decides so often."""
    async with running(settings, embedder=DummyEmbedder()) as parts:
        await parts["readiness"].ready.wait()
        return await fill(parts, n)


async def replayed(settings: Settings) -> LogReport:
    """What another service over the same store finds."""
    async with running(settings, embedder=DummyEmbedder()) as parts:
        await parts["readiness"].ready.wait()
        return await replay_log(parts["store"].seals, parts["replayer"], limit=None, progress=lambda done, n: None)


def _tell(report: Report, found: LogReport, replayed_s: float) -> None:
    n = sum(found.counts.values())
    told = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(found.counts.items()))
    report.add("decisions that are not equal", n - found.counts.get("equal", 0), "", Goal("<=", 0), told)
    report.add("replayed", n / replayed_s, "a second", note=f"{replayed_s:,.0f} s, the start of the service included")
    taken = ", ".join(f"{name} {count:,}" for name, count in sorted(found.taken.items())) or "nothing"
    report.say(f"  taken as sealed, for lack of what it comes from: {taken}")
    broken = 0 if found.chain.broken is None else 1
    report.add("seals that break the chain", broken, "", Goal("<=", 0), f"{found.chain.n_seals:,} seals")
    for example in found.examples[:3]:
        report.say(f"  {example}")


async def fill(parts: Parts, n: int) -> Made:
    """Decide so often, post outcomes, change cards and policy on the way."""
    draw, n_outcomes, reasons = Random(11), 0, Counter[str]()
    texts = example_utterances()
    registry, settlement = parts["registry"], parts["live"].settlement
    per_phase = max(_BATCH, -(-n // _N_PHASES))
    for first in range(0, n, _BATCH):
        if first % (per_phase // _BATCH * _BATCH) == 0:
            phase = first // (per_phase // _BATCH * _BATCH)
            await registry.replace_files(cards_of(phase))
            mode = _MODES[phase % len(_MODES)]
            await registry.set_policy(Policy(learning=LearningPolicy(mode=mode)))
        decisions = []
        for number in range(first, min(first + _BATCH, n)):
            decision, _ = await parts["service"].route(_request(number, texts, draw), OPEN)
            decisions.append(decision)
        reasons.update(str(decision.reason) for decision in decisions)
        outcomes = _outcomes(decisions, draw)
        n_outcomes += len(outcomes)
        await settlement.settle(outcomes, OPEN)
    await registry.replace_files(cards_of(99)[:3])
    await registry.set_policy(Policy())
    await parts["journal"].flush(_FLUSH_MS)
    return Made(reasons, n_outcomes)


def cards_of(phase: int) -> list[AgentCard]:
    """Agents that serve several intents each; some declare other qualities in another phase."""
    draw, changed = Random(3), Random(phase)
    texts = example_utterances()
    cards = []
    for number in range(_N_AGENTS):
        served = draw.sample(range(_N_INTENTS), k=4)
        cards.append(
            AgentCard(
                agent_id=f"agent-{number}",
                version="1.0.0",
                # half of the places that are taken are never told of: a few agents get full of them
                max_inflight=8 if number % 10 == 0 else _MANY,
                backup_agent_id=f"agent-{(number + 1) % _N_AGENTS}",
                capabilities=[
                    Capability(
                        intent=f"intent-{intent}",
                        examples=[texts[(4 * intent + nth) % len(texts)] for nth in range(4)],
                        quality=changed.uniform(0.5, 0.95) if number % 5 == 0 else draw.uniform(0.5, 0.95),
                        cost_level=draw.randint(1, 5),
                        risk="low" if intent % 3 == 0 else "normal",
                        input_schema="text",
                        output_schema="text",
                    )
                    for intent in served
                ],
            )
        )
    return cards


def _request(number: int, texts: Sequence[str], draw: Random) -> RouteRequest:
    fields: dict[str, object] = {
        "caller": Caller(agent_id=f"caller-{number % 8}", session_id=f"session-{number % 500}"),
        "trace_id": f"trace-{number // 3}",
        "step_index": number % 3,
    }
    if number % 2:
        fields |= {"intent": f"intent-{draw.randrange(_N_INTENTS + 1)}", "payload": {"text": f"request {number}"}}
    else:
        fields |= {"utterance": draw.choice(texts)}
    if number % 7 == 0:
        fields |= {"preference": draw.choice(("best", "cheapest", "auto"))}
    if number % 11 == 0:
        fields |= {"max_cost_level": draw.randint(1, 4), "budget_tokens": 500}
    if number % 13 == 0:
        fields |= {"target_agent": f"agent-{draw.randrange(_N_AGENTS)}"}
    if number % 17 == 0:
        fields |= {"exclude": [f"agent-{draw.randrange(_N_AGENTS)}"], "min_quality": 0.55}
    return RouteRequest.model_validate(fields)


def _outcomes(decisions: Sequence[RouteDecision], draw: Random) -> list[Outcome]:
    """Of half of those that named an agent."""
    return [
        Outcome(
            decision_id=decision.decision_id,
            attempt=1,
            status=OutcomeStatus.SUCCEEDED if draw.random() < 0.9 else OutcomeStatus.LOW_CONFIDENCE,
            latency_ms=draw.lognormvariate(5, 0.4),
            cost_usd=draw.uniform(0.001, 0.01) if draw.random() < 0.3 else None,
            quality=draw.random() if draw.random() < 0.2 else None,
        )
        for decision in decisions
        if decision.plan and draw.random() < 0.5
    ]
