"""A service that has decided in every way there is, its store, and what may be done to it afterwards."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any

from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from models.card import AgentCard, FallbackForm, FallbackForms
from models.decision import RouteDecision
from models.learning_policy import LearningPolicy, RetentionPolicy
from models.live_policy import BreakerPolicy, EjectionPolicy, Quota, SessionPolicy
from models.outcome import Outcome
from models.policy import IntentPolicy, NamespacePolicy, Policy
from models.request import Caller, CallerChoice, RouteRequest
from models.settings import Settings
from router.live.fingerprint import fingerprint
from router.live.sessions import SessionKey
from router.permit import OPEN, Grants
from router.replay import Replayer, replayer_of
from router.replayed import Replayed
from router.running import Parts, running
from router.service import Ids
from router.stores.open import open_store
from tests.builders import START_MS, FakeClock, capability, card, request

HUMAN = FallbackForms(human=FallbackForm(message_internal="a person", message_user="We will call you."))
BREAKER = BreakerPolicy(min_calls=2, open_ms=3_600_000, jitter=0.0)
SHOP = Grants("shop", frozenset())


def agents() -> list[AgentCard]:
    """Agents of many intents, each for one way to decide."""
    return [
        card("alone", capability("echo", ["say it again please"])),
        card("good", capability("select", ["choose the better one"], quality=0.9), backup_agent_id="worse"),
        card("worse", capability("select", quality=0.6)),
        card("dear", capability("thrift", quality=0.9, cost_level=5)),
        card("cheap", capability("thrift", quality=0.88, cost_level=1)),
        card("twin_a", capability("share", quality=0.8), weight=30),
        card("twin_b", capability("share", quality=0.8), weight=10),
        card("probed", capability("curious", quality=0.9, risk="low")),
        card("tried", capability("curious", quality=0.5, risk="low")),
        card("secret", capability("erase", ["erase all that you know of me"], required_permissions=["user:erase"])),
        card("slow", capability("slow"), timeout_ms=60_000),
        card("full", capability("full"), max_inflight=1),
        card("metered", capability("metered")),
        card("sick", capability("sick"), fallback=HUMAN),
        card("weak", capability("weak")),
        card("old", capability("versions"), version="1.0.0"),
        card("refund", capability("refund", ["i want my money back", "refund the order number"])),
        card("return", capability("return", ["i want to send it back", "return the order number"])),
    ]


def policy() -> Policy:
    """One that gives each its occasion."""
    return Policy(
        defaults=NamespacePolicy(
            breaker=BREAKER,
            ejection=EjectionPolicy(enabled=False),
            session=SessionPolicy(human_after=2),
            intents={"curious": IntentPolicy(risk="low")},
        ),
        namespaces={
            "tickets": NamespacePolicy(breaker=BREAKER, unavailable="queue", ejection=EjectionPolicy(enabled=False)),
            "brave": NamespacePolicy(
                breaker=BREAKER, unavailable="last_resort", ejection=EjectionPolicy(enabled=False)
            ),
        },
        quotas=[Quota(agent="metered", max_calls=1)],
        learning=LearningPolicy(floor=0.4),
    )


class History:
    """Makes decisions, and keeps their ids by a name for each way.

    Attributes:
        decided: name → decision.
    """

    def __init__(self, parts: Parts, clock: FakeClock) -> None:
        self.decided: dict[str, RouteDecision] = {}
        self._parts = parts
        self._clock = clock

    async def route(self, name: str, asked: RouteRequest, grants: Grants = OPEN, **how: Any) -> RouteDecision:
        """Decide and keep it."""
        self._clock.advance(7)
        decision, _ = await self._parts["service"].route(asked, grants, **how)
        self.decided[name] = decision
        return decision

    async def fail(self, asked: RouteRequest, n: int = 2) -> None:
        """Let the agent of a request fail so often."""
        for _ in range(n):
            decision, _ = await self._parts["service"].route(asked, OPEN)
            outcome = Outcome(decision_id=decision.decision_id, attempt=1, status="failed", latency_ms=50.0)  # type: ignore[arg-type]
            await self._parts["live"].settlement.settle([outcome], OPEN)

    async def measure(self, asked: RouteRequest, latency_ms: float) -> None:
        """Let the agent of a request take so long."""
        decision, _ = await self._parts["service"].route(asked, OPEN)
        told = {"decision_id": decision.decision_id, "attempt": 1, "status": "succeeded", "latency_ms": latency_ms}
        await self._parts["live"].settlement.settle([Outcome.model_validate(told, strict=False)], OPEN)

    async def all_ways(self) -> None:
        """One decision of each kind."""
        await self._chosen()
        await self._read()
        await self._refused()
        await self._troubled()
        await self._otherwise()

    async def _chosen(self) -> None:
        await self.route("only_candidate", request(intent="echo", payload={"text": "x"}, constraints={"n": 10**30}))
        await self.route("selected", request(intent="select", limit=5), explain=True)
        await self.route("preferred_cheaper", request(intent="thrift", trace_id="trc-1", step_index=2))
        for number in range(6):
            await self.route(f"shared {number}", request(intent="share"))
        for number in range(12):
            found = await self.route(f"floor {number}", request(intent="curious"))
            if found.reason == "explored":
                self.decided["explored"] = found
        await self.route("wish", request(intent="select", target_agent="worse"))
        await self.route("no such wish", request(intent="select", target_agent="nobody"))
        await self.route("best", request(intent="thrift", preference="best", max_cost_level=5))
        await self.route("excluded", request(intent="thrift", exclude=["cheap"], min_quality=0.1))
        learnt = self.decided["selected"]
        for number in range(3):
            told = {"status": "succeeded", "latency_ms": 40.0 + number, "quality": 0.2, "cost_usd": 0.01}
            outcome = Outcome.model_validate({"decision_id": learnt.decision_id, "attempt": 1, **told}, strict=False)
            await self._parts["live"].settlement.settle([outcome], OPEN)
        await self.route("learned", request(intent="select"))

    async def _read(self) -> None:
        await self.route("read", request("please say it again"))
        await self.route("exact", request("say it again please"))
        await self.route("out_of_scope", request("qqq zzz xxx"))
        await self.route("ambiguous", request("the order number"))
        await self.route("parts", request("say it again please, and choose the better one"))
        await self.route("entities", request("say it again please for order 8841 since yesterday"))
        session = SessionKey("", "default", "s1")
        self._parts["live"].live.sessions.awaits(session, ("default", "worse", "1.0.0"), "select", self._clock.ms, 9e9)
        await self.route("sticky_session", request("the blue one", caller=Caller(session_id="s1")))

    async def _refused(self) -> None:
        await self.route("no_capable_agent", request(intent="unknown"))
        await self.route("not_permitted", request(intent="erase"), SHOP)
        await self.route("not_permitted by text", request("erase all that you know of me"), SHOP)
        await self.route("deadline", request(intent="slow"))
        await self.route("deadline before reading", request("say it again", deadline_ms=int(START_MS)))
        await self.route("goal", request(intent="echo", task_id="t", global_goal_hash="one"))
        await self.route("goal_mismatch", request(intent="echo", task_id="t", global_goal_hash="two"))
        await self.route("version", request(intent="versions", version=">=2"))
        await self.route("metered", request(intent="metered"))
        await self.route("quota", request(intent="metered"))

    async def _troubled(self) -> None:
        live = self._parts["live"].live
        live.posting.add("planner")
        planner = Caller(agent_id="planner")
        await self.route("leased", request(intent="full", caller=planner))
        await self.route("at_capacity", request(intent="full", caller=planner))
        await self.fail(request(intent="sick"))
        await self.route("breaker_open", request(intent="sick"))
        for number in range(30):
            await self.measure(request(intent="versions"), 4000.0 + number)
        self._clock.advance(2000)  # figures are looked at again once a second
        await self.route("measured", request(intent="versions"))
        await self.route("too slow", request(intent="versions", response_timeout_ms=8000))
        for name in ("tickets", "brave"):
            await self._parts["registry"].put(card("weak", capability("weak"), namespace=name))
            await self.fail(request(intent="weak", namespace=name))
        await self.route("queued", request(intent="weak", namespace="tickets"))
        await self.route("degraded", request(intent="weak", namespace="brave"))
        session = SessionKey("planner", "default", "s2")
        for _ in range(2):
            live.sessions.failed_again(session, self._clock.ms, 9e9)
        await self.route("people", request(intent="sick", caller=Caller(agent_id="planner", session_id="s2")))
        bad = fingerprint("default", "echo", None, {"text": "bad"})
        for number, agent in enumerate(("x", "y", "z")):
            key = ("default", agent, "1.0.0")
            live.poison.failed(bad, key, (f"d{number}", 1), self._clock.ms, policy().defaults.poison)
        await self.route("poison_request", request(intent="echo", payload={"text": "bad"}))

    async def _otherwise(self) -> None:
        """Under other policies."""
        registry, rules = self._parts["registry"], policy()
        exploring = rules.learning.model_copy(update={"mode": "explore", "floor": 0.02})
        await registry.set_policy(rules.model_copy(update={"learning": exploring}))
        for number in range(8):
            await self.route(f"thompson {number}", request(intent="curious"), explain=number == 0)
        await self.route("shadow", request(intent="select", caller_choice=CallerChoice(agent_id="worse")))
        rising = rules.learning.model_copy(update={"max_rise": 0.01, "floor": 0.0})
        await registry.set_policy(rules.model_copy(update={"learning": rising}))
        shares, dear = self._parts["live"].learning.shares, ("default", "dear", "1.0.0")
        for n in (100, 25):  # of this hour and the next
            for _ in range(n):
                shares.note(("default", "thrift"), dear, self._clock.ms)
            self._clock.advance(3_600_000 if n == 100 else 0)
        await self.route("share", request(intent="thrift", limit=9))
        for utterances in ("redacted", "digest"):
            kept = RetentionPolicy(utterances=utterances)
            await registry.set_policy(rules.model_copy(update={"retention": kept}))
            said = request("say it again please for order 8841", payload={"text": "for ann@example.com"})
            await self.route(utterances, said)
            await self.route(f"{utterances} intent", request("write to ann@example.com", intent="thrift"))


async def _make(folder: Path) -> dict[str, str]:
    clock = FakeClock()
    numbers = count(1)
    ids = Ids(new=lambda: f"{next(numbers):032x}", seed=lambda: next(numbers) * 0x9E3779B97F4A7C15 % 2**63)
    settings = Settings(store=f"sqlite:///{folder}/store.db", watch=False, classifier=False)
    async with running(settings, embedder=DummyEmbedder(), clock=clock, ids=ids) as parts:
        await parts["readiness"].ready.wait()
        registry = parts["registry"]
        await registry.replace_files(agents())
        await registry.set_policy(policy())
        history = History(parts, clock)
        await history.all_ways()
        # what is in force afterwards is something else altogether
        await registry.replace_files([card("alone", capability("echo", ["other words"], quality=0.1))])
        await registry.set_policy(Policy())
        await history.route("after", request(intent="echo"))
        await parts["journal"].flush(5000)
    return {name: decision.decision_id for name, decision in history.decided.items()} | {
        f"part of {name}": part.decision_id for name, decision in history.decided.items() for part in decision.parts
    }


def make_history(folder: Path) -> dict[str, str]:
    """Decide in every way; name → decision id. The store is `store.db` in the folder."""
    return asyncio.run(_make(folder))


@asynccontextmanager
async def replayer(store: Path) -> AsyncIterator[Replayer]:
    """A replayer over a store, in no service."""
    async with open_store(f"sqlite:///{store}") as opened:
        with EmbedPool(DummyEmbedder(), n_threads=1) as pool:
            yield replayer_of(opened, pool)


async def replayed(store: Path, decision_id: str) -> Replayed:
    """What comes of replaying one decision."""
    async with replayer(store) as found:
        told = await found.replay(decision_id)
        assert told is not None
        return told


def altered(store: Path, statement: str, *values: object) -> int:
    """Change the file behind the service's back; how many rows were changed."""
    with closing(sqlite3.connect(store)) as connection:
        n = connection.execute(statement, values).rowcount
        connection.commit()
        return n
