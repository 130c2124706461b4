"""Scenes of `data/*.yaml`: agents, faults, the tasks that arrive, and how the arm without a router retries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

import yaml
from pydantic import Field

from benchmarks.load_client import arrivals
from benchmarks.simulation import Agent, Fault
from models.card import AgentCard, Capability
from models.contract import Contract

DATA = Path(__file__).with_name("data")


class FaultOf(Contract):
    """A fault of an agent, as in `simulation.Fault`."""

    agent: str
    kind: Literal["slow", "wrong", "hang", "unreachable"]
    from_s: float
    to_s: float
    mean_ms: float = 0.0
    failed_share: float = 0.0


class FixedRetries(Contract):
    """The arm without a router: one agent for each (task, intent), by the task's number.

    Attributes:
        timeout_ms: of every call.
        retries: after every error, on the same agent.
        backoff_ms: before each of them.
    """

    timeout_ms: int
    retries: int
    backoff_ms: int


class Scene(Contract):
    """A scene; both arms see the same tasks, and the same work takes as long in both.

    Attributes:
        seeds: a run for each.
        intents: how many there are; each has `agents_per_intent` agents that serve nothing else.
        places: calls that an agent works on at once; more wait in its queue, also those that were given up.
        mean_ms: of a call's work, lognormal with the standard deviation `spread` of its logarithm.
        max_inflight: of the cards.
        idempotent: of the cards.
        hops: calls of a task, each of another intent, one after the other.
        callers: tasks come in the names of so many agents, in turn.
        tasks_per_s: rate of a Poisson process.
        seconds: for which tasks arrive.
        measured_from_s: tasks that arrive from then on are counted,
        measured_to_s: and before then.
    """

    seeds: list[int]
    intents: int
    agents_per_intent: int
    places: int
    mean_ms: float
    spread: float
    max_inflight: int
    idempotent: bool
    hops: int
    callers: int
    tasks_per_s: float
    seconds: float
    measured_from_s: float
    measured_to_s: float
    heartbeat_s: Annotated[float, Field(gt=0)] = 15.0
    faults: list[FaultOf]
    without_router: FixedRetries

    def cards(self) -> list[AgentCard]:
        """Of all agents; the next one of the same intent is the backup."""
        return [
            AgentCard(
                agent_id=agent_id(intent, number),
                version="1.0.0",
                endpoint=f"http://{agent_id(intent, number)}.example/invoke",
                max_inflight=self.max_inflight,
                idempotent=self.idempotent,
                heartbeat_s=self.heartbeat_s,
                backup_agent_id=agent_id(intent, (number + 1) % self.agents_per_intent),
                capabilities=[
                    Capability(intent=f"intent-{intent}", quality=0.9, input_schema="text", output_schema="text")
                ],
            )
            for intent in range(self.intents)
            for number in range(self.agents_per_intent)
        ]

    def agents(self) -> list[Agent]:
        """Fresh ones."""
        faults = [Fault(each.agent, **each.model_dump(exclude={"agent"})) for each in self.faults]
        return [
            Agent(
                card.agent_id,
                self.places,
                self.mean_ms,
                self.spread,
                [fault for fault in faults if fault.agent_id == card.agent_id],
            )
            for card in self.cards()
        ]


class Task(NamedTuple):
    """A task.

    Attributes:
        at_ms: when it arrives.
        intents: of its calls, in order.
    """

    number: int
    at_ms: float
    intents: tuple[int, ...]


def agent_id(intent: int, number: int) -> str:
    """Name of an agent."""
    return f"agent-{intent}-{number}"


def tasks_of(scene: Scene, seed: int) -> list[Task]:
    """All tasks of a run."""
    draw = Random(seed)
    instants = arrivals(scene.tasks_per_s, scene.seconds, seed)
    return [
        Task(number, at_s * 1000, tuple(draw.sample(range(scene.intents), scene.hops)))
        for number, at_s in enumerate(instants)
    ]


def read_scene(name: str, folder: Path = DATA) -> Scene:
    """The scene of a file, without `.yaml` in its name."""
    given: Any = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    return Scene.model_validate(given)


def measured(scene: Scene, tasks: Sequence[Task]) -> set[int]:
    """Numbers of the tasks that are counted."""
    begin_ms, end_ms = scene.measured_from_s * 1000, scene.measured_to_s * 1000
    return {task.number for task in tasks if begin_ms <= task.at_ms < end_ms}
