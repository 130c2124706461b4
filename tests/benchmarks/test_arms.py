from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks.arms import Run, run_fixed, run_routed
from benchmarks.scenes import Scene, measured, read_scene, tasks_of
from models.policy import Policy


def small(**changes: Any) -> Scene:
    """The storm, with fewer agents and tasks."""
    values = {"intents": 3, "agents_per_intent": 3, "hops": 2, "tasks_per_s": 8, "seconds": 30}
    fault = {"agent": "agent-1-1", "kind": "slow", "from_s": 10, "to_s": 1e9, "mean_ms": 2000, "failed_share": 0.6}
    scene = read_scene("storm").model_dump()
    return Scene.model_validate({**scene, **values, "measured_from_s": 10, "faults": [fault], **changes})


@pytest.fixture(scope="module")
def arms() -> tuple[Run, Run]:
    scene = small()
    return asyncio.run(run_fixed(scene, 1)), asyncio.run(run_routed(scene, 1, Policy()))


def figures(run: Run) -> tuple[Any, ...]:
    return run.ends, run.calls_ms, run.n_decisions, run.n_outcomes


def test_both_arms_see_the_same_tasks_and_end_them_all(arms: tuple[Run, Run]) -> None:
    arrived = [(task.number, task.at_ms) for task in tasks_of(small(), 1)]
    assert len(arrived) > 200
    for run in arms:
        assert [(end.number, end.arrived_ms) for end in run.ends] == arrived


def test_the_same_seed_gives_the_same_figures(arms: tuple[Run, Run]) -> None:
    scene = small()
    assert figures(asyncio.run(run_fixed(scene, 1))) == figures(arms[0])
    assert figures(asyncio.run(run_routed(scene, 1, Policy()))) == figures(arms[1])
    assert figures(asyncio.run(run_fixed(scene, 2))) != figures(arms[0])


def test_the_router_keeps_calls_from_an_agent_that_fails(arms: tuple[Run, Run]) -> None:
    fixed, routed = (len([ms for ms in run.calls_ms["agent-1-1"] if ms >= 10_000]) for run in arms)
    assert routed < fixed / 2


def test_every_call_of_the_router_s_plans_is_told(arms: tuple[Run, Run]) -> None:
    fixed, routed = arms
    assert routed.n_outcomes == sum(map(len, routed.calls_ms.values()))
    assert routed.n_decisions <= routed.n_outcomes
    assert routed.router_s > 0
    assert (fixed.n_decisions, fixed.n_outcomes, fixed.router_s) == (0, 0, 0.0)


def test_without_faults_a_fixed_target_is_called_once_a_hop() -> None:
    scene = small(faults=[], tasks_per_s=2)
    run = asyncio.run(run_fixed(scene, 1))
    assert sum(map(len, run.calls_ms.values())) == scene.hops * len(run.ends)
    assert all(end.succeeded for end in run.ends)


@pytest.mark.parametrize("name", ["storm", "chain"])
def test_the_scenes_are_what_the_readme_says(name: str) -> None:
    scene = read_scene(name)
    n_agents, rule = scene.intents * scene.agents_per_intent, scene.without_router
    assert (n_agents, scene.hops) == ((50, 4) if name == "storm" else (8, 4))
    assert (rule.timeout_ms, rule.retries) == (30_000, 2)
    assert {fault.agent for fault in scene.faults} <= {card.agent_id for card in scene.cards()}
    tasks = tasks_of(scene, 1)
    assert all(len(set(task.intents)) == scene.hops for task in tasks)
    assert 0 < len(measured(scene, tasks)) < len(tasks)
