"""A fleet whose true quality a test knows, on a router that has to find it out from outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import httpx

Truth = dict[str, dict[str, float]]
"""agent → intent → the probability that a call succeeds."""

Headers = Mapping[str, str]

LEFT_OUT = {"enabled": False}
ONLY_LEARNING = {
    "breaker": LEFT_OUT,
    "dependency": LEFT_OUT,
    "ejection": LEFT_OUT,
    "weights": {"health": 0.0, "load": 0.0},
}
"""What live state would do to an agent that fails is left out."""

CALLERS = tuple(f"caller-{number}" for number in range(12))
"""Of so many, taking turns, each has less than a tenth of the evidence: the cap on callers does nothing."""

DECLARED = 0.6
MAX_INFLIGHT = 10_000


class World:
    """Asks in a namespace of its own, calls agents that are made of chance, and posts what came of it.

    Args:
        client: of a router without keys, or with `headers`.
        namespace: that of the fleet.
        truth: how good the agents are; may be changed as time goes by.
        seed: of what their calls come to.
    """

    def __init__(self, client: httpx.Client, namespace: str, truth: Truth, seed: int = 1, **card: Any) -> None:
        self.client = client
        self.namespace = namespace
        self.truth = truth
        self._random = Random(seed)
        self._n_asked = 0
        for agent_id, quality in truth.items():
            self.let_in(agent_id, dict.fromkeys(quality, DECLARED), **card)

    @property
    def intents(self) -> list[str]:
        return sorted({intent for quality in self.truth.values() for intent in quality})

    def let_in(self, agent_id: str, declared: Mapping[str, float], version: str = "1.0.0", **capability: Any) -> None:
        """Put a card; `capability` holds for each of its intents."""
        form = {"input_schema": "text", "output_schema": "text", **capability}
        served = [{"intent": intent, "quality": quality, **form} for intent, quality in declared.items()]
        card = {
            "version": version, "endpoint": f"http://{agent_id}.internal/", "max_inflight": MAX_INFLIGHT,
            "capabilities": served,
        }  # fmt: skip
        self.client.put(f"/agents/{agent_id}?namespace={self.namespace}", json=card).raise_for_status()

    def request(self, intent: str, caller: str | None = None, **fields: Any) -> dict[str, Any]:
        """A request with words that none had before, as what fails on several agents may be poison."""
        self._n_asked += 1
        name = CALLERS[self._n_asked % len(CALLERS)] if caller is None else caller
        payload = {"text": f"words {self._n_asked}"}
        return {
            "namespace": self.namespace, "intent": intent, "payload": payload, "caller": {"agent_id": name}, **fields
        }  # fmt: skip

    def decided(self, requests: Sequence[dict[str, Any]], headers: Headers | None = None) -> list[dict[str, Any]]:
        """The decisions of requests that come at once; each names an agent."""
        response = self.client.post("/route/batch?explain=true", json=list(requests), headers=headers)
        decisions: list[dict[str, Any]] = response.raise_for_status().json()
        assert {(each["action"], each["namespace"]) for each in decisions} <= {("invoke", self.namespace)}
        return decisions

    def post(self, outcomes: Sequence[dict[str, Any]], headers: Headers | None = None) -> list[dict[str, Any]]:
        """Post outcomes at once; each of them is taken."""
        response = self.client.post("/feedback", json=list(outcomes), headers=headers)
        receipts: list[dict[str, Any]] = response.raise_for_status().json()
        assert all("effect" in receipt for receipt in receipts), receipts
        return receipts

    def outcome(self, decision: Mapping[str, Any], status: str | None = None) -> dict[str, Any]:
        """What came of the call; None leaves the status to chance, by the truth."""
        target = decision["target"]
        if status is None:
            quality = self.truth[target["agent_id"]][target["intent"]]
            status = "succeeded" if self._random.random() < quality else "failed"
        return {"decision_id": decision["decision_id"], "status": status, "latency_ms": 100}

    def live(
        self, n: int, *, at_once: int = 10, headers: Headers | None = None, **fields: Any
    ) -> list[tuple[str, str]]:
        """Ask so often, the intents in turn, and post every outcome; (intent, agent) of each decision."""
        named: list[tuple[str, str]] = []
        while len(named) < n:
            turn = range(len(named), min(len(named) + at_once, n))
            requests = [self.request(self.intents[place % len(self.intents)], **fields) for place in turn]
            decisions = self.decided(requests, headers)
            self.post([self.outcome(decision) for decision in decisions], headers)
            named += [(each["target"]["intent"], each["target"]["agent_id"]) for each in decisions]
        return named

    def shares(self, intent: str, headers: Headers | None = None, **fields: Any) -> dict[str, float]:
        """agent → the probability that the next decision names it, as a decision says that nobody acts on."""
        [decision] = self.decided([self.request(intent, dry_run=True, **fields)], headers)
        return {each["agent_id"]: each["propensity"] for each in decision["candidates"]}

    def weights(self, headers: Headers | None = None) -> dict[tuple[str, str], dict[str, Any]]:
        """(agent, version) → what was learned of it."""
        params = {"namespace": self.namespace}
        told = self.client.get("/weights", params=params, headers=headers).raise_for_status().json()
        assert (told["frozen"], told["n_failures"], told["distrusted"]) == (None, 0, [])
        return {
            (each["agent_id"], each["version"]): {name: each[name] for name in each if name != "namespace"}
            for each in told["agents"]
        }

    def earned(self, agent_id: str, version: str = "1.0.0") -> dict[str, Any]:
        """intent → what `GET /agents/{agent_id}` shows of an agent's quality."""
        params = {"namespace": self.namespace, "version": version}
        [view] = self.client.get(f"/agents/{agent_id}", params=params).raise_for_status().json()["agents"]
        earned: dict[str, Any] = view["earned"]
        return earned


def rule(client: httpx.Client, learning: Mapping[str, Any], headers: Headers | None = None, **policy: Any) -> None:
    """The policy from now on, in which only learning acts."""
    body = {"defaults": {**ONLY_LEARNING, **policy}, "learning": learning}
    client.put("/policy", json=body, headers=headers).raise_for_status()


def share(named: Sequence[tuple[str, str]], agent_id: str) -> float:
    """The part of decisions that name an agent, 0..1."""
    return sum(agent == agent_id for _, agent in named) / len(named)


async def each_by_itself(world: World, calls: list[tuple[dict[str, Any], str]]) -> None:
    """Ask and tell of each in requests of their own, a few at once, as stored outcomes wait for the disk."""
    turn = asyncio.Semaphore(8)
    async with httpx.AsyncClient(base_url=world.client.base_url, timeout=60) as client:

        async def call(request: dict[str, Any], status: str) -> None:
            async with turn:
                decision = (await client.post("/route", json=request)).json()
                assert decision["target"]["agent_id"] == request["target_agent"]
                response = await client.post("/feedback", json=world.outcome(decision, status))
                assert (response.status_code, response.json()["effect"]) == (202, "accepted")

        await asyncio.gather(*(call(request, status) for request, status in calls))


def lie(world: World, key: Headers, n: int, praised: str, slandered: str | None = None) -> None:
    """Post false outcomes with one key, in many names."""
    names = [praised] if slandered is None else [praised, slandered]
    for start in range(0, n, 100):
        places = range(start, min(start + 100, n))
        requests = [world.request("xy"[p % 2], target_agent=names[p // 2 % len(names)]) for p in places]
        decisions = world.decided(requests, key)
        told = {praised: "succeeded", slandered: "failed"}
        world.post([world.outcome(each, told[each["target"]["agent_id"]]) for each in decisions], key)


def named(world: World, preference: str) -> set[str]:
    """Whom 300 decisions that nobody acts on name."""
    requests = [world.request("x", preference=preference, dry_run=True) for _ in range(300)]
    found = [each for start in (0, 150) for each in world.decided(requests[start : start + 150])]
    return {decision["target"]["agent_id"] for decision in found}
