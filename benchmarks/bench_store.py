"""How fast the store appends and finds: `python -m benchmarks.bench_store [--rows 1000000]`."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from models.events import DecisionRow, EventRow
from router.journal import Journal
from router.stores.backup import backup
from router.stores.open import Store, open_store

BATCH = 2000
EVENTS_PER_TRACE = 6
START_MS = 1_700_000_000_000
PAYLOAD = '{"utterance":"where is my order 4711","note":"' + "x" * 150 + '"}'
BODY = '{"field":"' + "y" * 1000 + '"}'


def events(first: int, n_rows: int) -> list[EventRow]:
    return [
        EventRow(
            f"{n // EVENTS_PER_TRACE:032x}", f"{n:016x}", None, "router", "route", "invoke", PAYLOAD, 0, 1.5,
            START_MS + n // 5, "shop",
        )
        for n in range(first, first + n_rows)
    ]  # fmt: skip


def decisions(first: int, n_rows: int) -> list[DecisionRow]:
    return [
        DecisionRow(
            f"{n * 2654435761 % 2**32:032x}", f"{n:032x}", "shop", "default", "invoke", "selected", "order_status",
            "orders", BODY, BODY, "{}", START_MS + n,
        )
        for n in range(first, first + n_rows)
    ]  # fmt: skip


async def quantiles(name: str, call: Callable[[int], Awaitable[object]], n_calls: int = 200) -> None:
    took = []
    for n in range(n_calls):
        start = time.perf_counter()
        await call(n)
        took.append((time.perf_counter() - start) * 1000)
    took.sort()
    print(f"{name:<58} p50 {took[n_calls // 2]:8.2f} ms   p99 {took[n_calls * 99 // 100]:8.2f} ms")


async def fill(store: Store, n_rows: int) -> None:
    took = 0.0
    for first in range(0, n_rows, BATCH):
        rows = events(first, BATCH)
        start = time.perf_counter()
        await store.records.append(rows)
        took += time.perf_counter() - start
    print(f"append, {n_rows} events in batches of {BATCH}: {n_rows / took:,.0f} rows/s")
    took = 0.0
    n_decisions = min(n_rows // 10, 100_000)
    for first in range(0, n_decisions, BATCH):
        made = decisions(first, BATCH)
        start = time.perf_counter()
        await store.records.append(made)
        took += time.perf_counter() - start
    print(f"append, {n_decisions} decisions of 2 kB in batches of {BATCH}: {n_decisions / took:,.0f} rows/s")


async def look_up(store: Store, n_rows: int) -> None:
    records, end = store.records, START_MS + n_rows // 5
    middle = START_MS + n_rows // 10

    def spread(n: int) -> int:
        return n * 7919 % (n_rows // EVENTS_PER_TRACE)

    await quantiles("decision(id)", lambda n: records.decision(f"{n * 2654435761 % 2**32:032x}"))
    await quantiles("trace(id)", lambda n: records.trace(f"{spread(n):032x}", 1000))
    await quantiles("goal(), unknown", lambda n: records.goal("default", str(n)))
    await quantiles(
        "events: one second of them (5,000), page of 100", lambda _: records.events(middle, middle + 1000, 0, 100)
    )
    await quantiles("events: the newest 100 ms", lambda _: records.events(end - 100, end, 0, 1000))
    await quantiles("events: all, first page of 100", lambda _: records.events(0, end, 0, 100))
    await quantiles("events: all, page of 100 in the middle", lambda _: records.events(0, end, n_rows // 2, 100))
    await quantiles("events: the later half, first page of 100", lambda _: records.events(middle, end, 0, 100), 20)
    await quantiles("events: following the newest", lambda _: records.events(0, 2**62, n_rows - 5, 100))
    await quantiles("events: the later half, last page", lambda _: records.events(middle, end, n_rows - 50, 100), 20)


async def durable(store: Store) -> None:
    await quantiles("append of one event, synced", lambda n: store.records.append(events(n, 1)))
    journal = Journal(store.records, max_rows=50_000, batch=BATCH, wait_ms=20)
    task = asyncio.create_task(journal.run())
    rows = [events(first, EVENTS_PER_TRACE) for first in range(0, 200_000, EVENTS_PER_TRACE)]
    start = time.perf_counter()
    for row in rows:
        await journal.room(10_000)
        journal.put(row)
    await journal.flush(60_000)
    took = time.perf_counter() - start
    task.cancel()
    print(f"journal, {journal.n_written} events put by sixes: {journal.n_written / took:,.0f} rows/s")


async def main(n_rows: int, folder: Path) -> None:
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine}, Python {platform.python_version()}")
    print(f"SQLite {sqlite3.sqlite_version}, SQLAlchemy {version('sqlalchemy')}, aiosqlite {version('aiosqlite')}")
    url = f"sqlite:///{folder / 'bench.db'}"
    async with open_store(url) as store:
        await fill(store, n_rows)
        await look_up(store, n_rows)
        await durable(store)
        start = time.perf_counter()
        await backup(url, folder / "copy.db")
        print(f"backup of {(folder / 'copy.db').stat().st_size / 1e6:.0f} MB: {time.perf_counter() - start:.1f} s")
    await quantiles("open a current store and close it", lambda _: reopen(url), 20)


async def reopen(url: str) -> None:
    async with open_store(url):
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    with tempfile.TemporaryDirectory(dir=".") as made:
        asyncio.run(main(parser.parse_args().rows, Path(made).absolute()))
