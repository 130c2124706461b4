"""Latency, throughput, start-up and memory of the served process, client and server in processes of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.data_sets import permissions_of
from benchmarks.load_client import Outcome, Plan
from benchmarks.processes import HOST, Server, console_script, free_port, make_key, send, served
from benchmarks.report import Goal, Quantiles, Report
from router.card_files import read_card_files
from router.startup import example

N_CONNECTIONS = 16
N_OPEN = 64
"""Connections of an open loop; requests beyond them wait in the client, and that wait counts."""
SENTENCES_PER_S = Goal(">=", 800)
INTENTS_PER_S = Goal(">=", 3000)
HALF_LOAD_P99 = Goal("<=", 5)
MEMORY = Goal("<", 350)
START_UP = Goal("<", 3)
_WARM_UP_S = 1.0
_N_STARTS = 3


@dataclass(frozen=True, slots=True)
class Goals:
    """Of one kind of load: requests/s at full load, p99 at half of that."""

    per_s: Goal | None = None
    half_p99: Goal | None = None


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure.

    Attributes:
        seconds: of each run.
        n_repeats: runs of each kind.
    """

    seconds: float
    n_repeats: int


def served_router(
    report: Report, cards: Sequence[Path], sentences: Sequence[str], folder: Path, effort: Effort, has_goals: bool
) -> float:
    """Measure and report one set of cards; the mean size of an answer to a given intent.

    Args:
        cards: card files; none means the example set.
        sentences: what is asked.
        folder: for the store and the log.
        has_goals: whether the goals for requests/s are for these cards.
    """
    known = read_card_files(cards).cards if cards else example()[0]
    store, log = f"sqlite:///{folder}/http.db", folder / "server.log"
    key = make_key(store, sorted(permissions_of(known)))
    intents = sorted({item.intent for card in known if card.enabled for item in card.capabilities})
    given = [json.dumps({"intent": name}) for name in intents]
    asked = [json.dumps({"utterance": text}) for text in sentences]
    port = free_port()
    chosen = [word for path in cards for word in ("--cards", str(path))]
    command = [console_script(), "serve", *chosen, "--port", str(port), "--store", store]
    with served(command, port, log) as server:
        report.add("start-up to ready, vector cache cold", server.ready_s, "s")
    warm = [_start_up(command, port, log) for _ in range(_N_STARTS)]
    report.add("start-up to ready, vector cache warm", median(warm), "s", START_UP, f"median of {_N_STARTS} starts")
    with served(command, port, log) as server:
        _idle_memory(report, server)
        plan = Plan(HOST, port, "/route", key, given, N_CONNECTIONS, effort.seconds, _WARM_UP_S)
        goals = Goals(INTENTS_PER_S if has_goals else None, HALF_LOAD_P99)
        n_bytes = loaded(report, "given intents with a key", server, plan, effort, goals)
        goals = Goals(SENTENCES_PER_S if has_goals else None, HALF_LOAD_P99)
        loaded(report, "sentences with a key", server, replace(plan, bodies=asked), effort, goals)
        memory = server.memory_mb()
        if memory is not None:
            report.add("resident memory after all that", memory, "MB", MEMORY)
    return n_bytes


def bare_echo(report: Report, sentences: Sequence[str], n_bytes: float, folder: Path, effort: Effort) -> None:
    """The same requests to Starlette and pydantic alone, which answer with as many bytes."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.echo_app", str(port), str(round(n_bytes))]
    bodies = [json.dumps({"utterance": text}) for text in sentences]
    with served(command, port, folder / "echo.log") as server:
        plan = Plan(HOST, port, "/route", None, bodies, N_CONNECTIONS, effort.seconds, _WARM_UP_S)
        loaded(report, f"echo, answers of {n_bytes:,.0f} bytes", server, plan, effort, Goals())


def loaded(report: Report, name: str, server: Server, plan: Plan, effort: Effort, goals: Goals) -> float:
    """Latency alone, at full load and at half of that; the mean size of an answer."""
    alone = _repeated(replace(plan, n_connections=1), effort)
    report.add_latency(f"{name}, one at a time", _quantiles(alone))
    cpu_before = server.cpu_s()
    full = _repeated(plan, effort)
    cpu_after = server.cpu_s()
    per_s = median(outcome.per_s for outcome in full)
    best = max(outcome.per_s for outcome in full)
    at_once = f"{name}, {plan.n_connections} at a time"
    report.add(at_once, per_s, "requests/s", goals.per_s, f"median of {len(full)}, best {best:,.0f}")
    report.add_latency(at_once, _quantiles(full))
    if cpu_before is not None and cpu_after is not None:
        n_answers = sum(outcome.n_answers for outcome in full)
        cpu_us = (cpu_after - cpu_before) / n_answers * 1e6
        report.add(f"{at_once}, processor time of the server", cpu_us, "us/request", None, "all its threads")
    half = _repeated(replace(plan, n_connections=N_OPEN, per_s=per_s / 2), effort)
    report.add_latency(f"{name}, open loop at half of that ({per_s / 2:,.0f}/s)", _quantiles(half), p99=goals.half_p99)
    return full[0].n_bytes


def _repeated(plan: Plan, effort: Effort) -> list[Outcome]:
    outcomes = []
    for number in range(effort.n_repeats):
        outcome = send(replace(plan, seed=number, first=number * 997))
        wrong = {status: n for status, n in outcome.statuses.items() if status != "200"}
        if wrong or not outcome.latencies_ms:
            raise RuntimeError(f"200 is needed of every request, there were {outcome.statuses}")
        outcomes.append(outcome)
    return outcomes


def _quantiles(outcomes: Sequence[Outcome]) -> Quantiles:
    return Quantiles.of([outcome.latencies_ms for outcome in outcomes])


def _start_up(command: Sequence[str], port: int, log: Path) -> float:
    with served(command, port, log) as server:
        return server.ready_s


def _idle_memory(report: Report, server: Server) -> None:
    memory = server.memory_mb()
    if memory is not None:
        report.add("resident memory when ready", memory, "MB")
