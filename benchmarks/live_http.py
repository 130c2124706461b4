"""Outcomes over HTTP while decisions are made, and more requests than the server can take."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from benchmarks.data_sets import permissions_of
from benchmarks.load_client import Outcome, Plan
from benchmarks.processes import HOST, Server, console_script, free_port, make_key, send, served
from benchmarks.report import Goal, Quantiles, Report
from router.startup import example

FEEDBACK_PER_S = Goal(">=", 3000)
FEEDBACK_P99 = Goal("<=", 50)
MEANWHILE = Goal("<=", 1.5)
OVERLOAD_P99 = Goal("<=", 3)
MEMORY_GROWTH = Goal("<=", 0.1)
ERRORS = Goal("<=", 0)
N_POSTING = 64
LIST_OF = 50
_N_ROUTING = 8
_N_OVERLOAD = 256
_OVERLOAD_IN_FLIGHT = 16
_N_CONNECTIONS = 16
_ROUTES_PER_S = 100
_MOST_PER_S = 5500
"""So many outcomes a second are kept ready."""
_MOST_READY = 20_000
"""As many decisions as the router has at hand; older ones are joined by their records."""
_BATCH = 256
_WARM_UP_S = 0.5


@dataclass(frozen=True, slots=True)
class Site:
    """A server with the example cards, and what it is asked."""

    server: Server
    key: str
    store: Path
    given: list[str]

    def plan(self, path: str, bodies: Sequence[str], seconds: float, **more: object) -> Plan:
        """A closed loop of `_N_CONNECTIONS` unless `more` says otherwise."""
        plan = Plan(HOST, self.server.port, path, self.key, list(bodies), _N_CONNECTIONS, seconds, _WARM_UP_S)
        return replace(plan, **more)  # type: ignore[arg-type]


@contextmanager
def site(folder: Path, max_in_flight: int | None = None) -> Iterator[Site]:
    """A server of its own; None as `max_in_flight` leaves that as shipped."""
    cards, port = example()[0], free_port()
    store = folder / "http.db"
    key = make_key(f"sqlite:///{store}", sorted(permissions_of(cards)))
    intents = sorted({item.intent for card in cards if card.enabled for item in card.capabilities})
    policy = folder / "policy.json"
    # decisions are made long before their outcomes are told: no agent may be full meanwhile
    policy.write_text(json.dumps({"agents": {card.agent_id: {"max_inflight": 1_000_000} for card in cards}}))
    command = [console_script(), "serve", "--port", str(port), "--store", f"sqlite:///{store}", "--policy", str(policy)]
    settings = {} if max_in_flight is None else {"AGENCY_ROUTER_MAX_IN_FLIGHT": str(max_in_flight)}
    with served(command, port, folder / "server.log", settings) as server:
        yield Site(server, key, store, [json.dumps({"intent": name}) for name in intents])


def feedback(report: Report, folder: Path, seconds: float, n_repeats: int) -> None:
    """Outcomes one by one and in lists; decisions meanwhile."""
    report.section(f"outcomes over HTTP, durable when acknowledged, {N_POSTING} connections")
    with site(folder) as here:
        singles = [_posted(here, seconds, _outcomes(here, seconds)) for _ in range(n_repeats)]
        report.add("single outcomes", median(each.per_s for each in singles), "outcomes/s", FEEDBACK_PER_S)
        found = Quantiles.of([each.latencies_ms for each in singles])
        report.add_latency("single outcomes", found, None, FEEDBACK_P99)
        lists = [_posted(here, seconds, _lists(_outcomes(here, seconds * 4))) for _ in range(n_repeats)]
        at_once = median(each.per_s for each in lists) * LIST_OF
        report.add(f"in lists of {LIST_OF}", at_once, "outcomes/s")
        report.add_latency(f"a list of {LIST_OF}", Quantiles.of([each.latencies_ms for each in lists]))
        _meanwhile(report, here, seconds, n_repeats, median(each.per_s for each in singles))


def _meanwhile(report: Report, here: Site, seconds: float, n_repeats: int, full_per_s: float) -> None:
    """p99 of decisions alone, beside outcomes as fast as they go, and beside half of that."""
    routing = here.plan("/route", here.given, seconds, n_connections=_N_ROUTING, per_s=float(_ROUTES_PER_S))
    told = f"/route, open loop of {_ROUTES_PER_S}/s"
    idle = [_only(send(replace(routing, seed=seed)), 200) for seed in range(n_repeats)]
    alone = Quantiles.of([each.latencies_ms for each in idle])
    report.add_latency(f"{told}, no outcomes meanwhile", alone)
    for name, per_s in (("as fast as they go", 0.0), ("at half of that rate", full_per_s / 2)):
        beside = [_beside(here, replace(routing, seed=seed), seconds, per_s) for seed in range(n_repeats)]
        found = Quantiles.of([each.latencies_ms for each in beside])
        report.add_latency(f"{told}, outcomes {name}", found)
        goal = MEANWHILE if per_s == 0 else None
        report.add(f"{told}, p99 with outcomes {name} / idle", found.p99 / alone.p99, "times", goal)


def _beside(here: Site, routing: Plan, seconds: float, per_s: float) -> Outcome:
    bodies = _outcomes(here, seconds + 2)
    posting = here.plan("/feedback", bodies, seconds + 1, n_connections=N_POSTING, good=202, per_s=per_s)
    with ThreadPoolExecutor(1) as pool:
        posted = pool.submit(send, posting)
        routed = send(routing)
        _only(posted.result(), 202)
    return _only(routed, 200)


def _posted(here: Site, seconds: float, bodies: Sequence[str]) -> Outcome:
    """What came back; each body is sent once, and the store has what was acknowledged."""
    before = _n_stored(here.store)
    outcome = _only(send(here.plan("/feedback", bodies, seconds, n_connections=N_POSTING, good=202)), 202)
    if outcome.n_answers > len(bodies):
        raise RuntimeError(f"{len(bodies)} bodies were ready, {outcome.n_answers} were sent: give fewer --seconds")
    n_told = outcome.n_answers * (len(json.loads(bodies[0])) if bodies[0].startswith("[") else 1)
    n_stored = _n_stored(here.store) - before
    if n_stored < n_told:
        raise RuntimeError(f"{n_told} outcomes were acknowledged, {n_stored} are stored")
    return outcome


def _n_stored(store: Path) -> int:
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM outcomes").fetchone()[0])


def _outcomes(here: Site, seconds: float) -> list[str]:
    """Outcomes of decisions just made, as many as can be sent in the time."""
    n = min(_MOST_READY, round((seconds + _WARM_UP_S) * _MOST_PER_S))
    found: list[str] = []
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {here.key}"}
    with closing(HTTPConnection(HOST, here.server.port, timeout=60)) as connection:
        while len(found) < n:
            connection.request("POST", "/route/batch", f"[{','.join(_cycled(here.given, _BATCH))}]", headers)
            decisions = json.loads(connection.getresponse().read())
            invoked = [decision["decision_id"] for decision in decisions if decision.get("plan")]
            if not invoked:
                raise RuntimeError(f"none of {_BATCH} decisions names an agent, one is {decisions[0]}")
            found += map(_outcome, invoked)
    return found[:n]


def _outcome(decision_id: str) -> str:
    return json.dumps({"decision_id": decision_id, "status": "succeeded", "latency_ms": 210.5})


def _cycled(texts: Sequence[str], n: int) -> list[str]:
    return [texts[number % len(texts)] for number in range(n)]


def _lists(outcomes: Sequence[str]) -> list[str]:
    return [f"[{','.join(outcomes[at : at + LIST_OF])}]" for at in range(0, len(outcomes), LIST_OF)]


def _only(outcome: Outcome, *statuses: int) -> Outcome:
    if not set(outcome.statuses) <= {str(status) for status in statuses}:
        raise RuntimeError(f"one of {statuses} is needed of every request, there were {outcome.statuses}")
    return outcome


def overload(report: Report, folder: Path, seconds: float, overload_s: float, n_repeats: int) -> None:
    """Twice as much as the server can do."""
    with site(folder, _OVERLOAD_IN_FLIGHT) as here:
        plan = here.plan("/route", here.given, seconds)
        full = [_only(send(replace(plan, seed=seed)), 200, 429) for seed in range(n_repeats)]
        per_s = median(each.per_s for each in full)
        report.section(
            f"overload: twice the {per_s:,.0f} decisions/s of {_N_CONNECTIONS} busy connections, given intents"
        )
        open_loop = replace(plan, n_connections=_N_OVERLOAD)
        half = [_only(send(replace(open_loop, per_s=per_s / 2, seed=seed)), 200, 429) for seed in range(n_repeats)]
        calm = Quantiles.of([each.latencies_ms for each in half])
        report.add_latency("decisions at half load", calm)
        # until as many decisions are at hand as ever are, so that all memory that it takes is taken
        filling_s = max(overload_s / 6, 1.5 * _MOST_READY / per_s)
        send(replace(open_loop, per_s=per_s * 2, seconds=filling_s))
        time.sleep(1)
        before_mb = here.server.memory_mb()
        found = send(replace(open_loop, per_s=per_s * 2, seconds=overload_s))
        after_mb = here.server.memory_mb()
    _overloaded(report, found, calm, overload_s)
    if before_mb is not None and after_mb is not None:
        told = f"{before_mb:,.1f} MB after a warm-up at that load, {after_mb:,.1f} MB at the end"
        report.add("growth of resident memory", after_mb / before_mb - 1, "%", MEMORY_GROWTH, told)


def _overloaded(report: Report, found: Outcome, calm: Quantiles, seconds: float) -> None:
    n_all = sum(found.statuses.values())
    n_wrong = sum(n for status, n in found.statuses.items() if status not in ("200", "429"))
    told = f"{found.statuses} in {seconds:g} s, at most {_OVERLOAD_IN_FLIGHT} requests at once"
    report.add("answers that are neither a decision nor 429", n_wrong, "", ERRORS, told)
    report.add("decisions", found.per_s, "decisions/s", None, f"429: {found.statuses.get('429', 0) / n_all:.1%}")
    accepted = Quantiles.of([found.latencies_ms])
    report.add_latency("decisions, from when they were due", accepted)
    sent = Quantiles.of([found.sent_ms])
    report.add_latency("decisions, from when one of the connections was free for them", sent)
    report.add("p99 of these / that at half load", sent.p99 / calm.p99, "times")
    report.add("p99 of decisions / that at half load", accepted.p99 / calm.p99, "times", OVERLOAD_P99)
