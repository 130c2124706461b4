"""The scenes of `data/`, by both arms: time and success of whole tasks, calls to the ailing agent, our own time."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence

import numpy as np

from benchmarks.arms import Run, calls_between, run_fixed, run_routed
from benchmarks.report import Goal, Report
from benchmarks.scenes import Scene, measured, read_scene, tasks_of
from models.policy import Policy
from router.stores.open import open_store

ROUTER_SHARE = Goal("<", 0.05)
STORM_CALLS = Goal("<=", 0.15)
STORM_SUCCESS = Goal(">=", 0.99)
STORM_P95 = Goal("<=", 0.4)


def chain(report: Report, *, is_quick: bool) -> None:
    """The write-up's load scene, its records in a SQLite store; every settlement waits for a write of its own."""
    scene = read_scene("chain")
    runs = []
    for seed in _seeds(scene, is_quick):
        runs.append((seed, asyncio.run(run_fixed(scene, seed)), asyncio.run(_stored(scene, seed))))
    report.section(f"chains of {scene.hops} hops over {scene.intents * scene.agents_per_intent} agents, {_told(scene)}")
    _ends(report, scene, runs, None, None)
    shares = [run.router_s * 1000 / sum(end.took_ms for end in run.ends) for _, _, run in runs]
    report.add_spread("decisions and settlements, of the chains' time", shares, "%", ROUTER_SHARE, "processor time")
    each_ms = [run.router_s * 1000 / run.n_decisions for _, _, run in runs]
    report.add_spread("decision and its settlements, a hop", each_ms, "ms", None, "processor time, all threads")


def storm(report: Report, *, is_quick: bool) -> None:
    """One agent of fifty slows and fails."""
    scene = read_scene("storm")
    runs = [
        (seed, asyncio.run(run_fixed(scene, seed)), asyncio.run(run_routed(scene, seed, Policy())))
        for seed in _seeds(scene, is_quick)
    ]
    report.section(f"storm: 1 of {scene.intents * scene.agents_per_intent} agents slows and fails, {_told(scene)}")
    ailing = [fault.agent for fault in scene.faults]
    came = [
        [calls_between(run, ailing, scene.measured_from_s, scene.measured_to_s) for run in arms] for _, *arms in runs
    ]
    report.add_spread("calls to it, fixed retries", [fixed for fixed, _ in came], "calls")
    report.add_spread("calls to it, router", [routed for _, routed in came], "calls")
    report.add_spread(
        "calls to it, router / fixed retries", [routed / fixed for fixed, routed in came], "%", STORM_CALLS
    )
    _ends(report, scene, runs, STORM_SUCCESS, STORM_P95)


def _ends(
    report: Report, scene: Scene, runs: Sequence[tuple[int, Run, Run]], success: Goal | None, p95: Goal | None
) -> None:
    """Success and P95 of whole tasks, both arms."""
    found = [[_measured(scene, seed, run) for run in arms] for seed, *arms in runs]
    report.add_spread("whole-task success, fixed retries", [fixed[0] for fixed, _ in found], "%")
    report.add_spread("whole-task success, router", [routed[0] for _, routed in found], "%", success)
    report.add_spread("P95 of a task, fixed retries", [fixed[1] for fixed, _ in found], "ms")
    report.add_spread("P95 of a task, router", [routed[1] for _, routed in found], "ms")
    ratios = [routed[1] / fixed[1] for fixed, routed in found]
    report.add_spread("P95 of a task, router / fixed retries", ratios, "%", p95)
    report.add_spread("P50 of a task, fixed retries", [fixed[2] for fixed, _ in found], "ms")
    report.add_spread("P50 of a task, router", [routed[2] for _, routed in found], "ms")


def _measured(scene: Scene, seed: int, run: Run) -> tuple[float, float, float]:
    """(share of tasks that succeeded, P95, P50 of the time that a task took in ms, failed ones too)."""
    counted = measured(scene, tasks_of(scene, seed))
    ends = [end for end in run.ends if end.number in counted]
    if len(ends) != len(counted):
        raise RuntimeError(f"{len(counted)} tasks were to end, {len(ends)} did")
    p95, p50 = np.percentile([end.took_ms for end in ends], (95, 50)).tolist()
    return sum(end.succeeded for end in ends) / len(ends), p95, p50


def _seeds(scene: Scene, is_quick: bool) -> list[int]:
    return scene.seeds[:1] if is_quick else scene.seeds


def _told(scene: Scene) -> str:
    rule = scene.without_router
    return f"{scene.tasks_per_s:g} tasks/s; the other arm: {rule.timeout_ms / 1000:g} s, {rule.retries} retries"


async def _stored(scene: Scene, seed: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with open_store(f"sqlite:///{folder}/chain.db") as store:
            return await run_routed(scene, seed, Policy(), store.records)
