"""`agency-router failures`: what failed, why, and what would end it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.evaluate_policy import since_ms
from router.cli.output import UNUSABLE, emit_json, fail, say, store_url, table
from router.cli.training import bar, embedder_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.card import AgentCard
    from models.ports import Embedded
    from router.failure_log import FailureLog

_MANY = 3000
"""Beyond these clustering takes long enough to be spoken of."""


def failures(
    log: Annotated[
        str | None,
        typer.Option(
            "--log", envvar="AGENCY_ROUTER_STORE", help="Store URL of the service whose failures are looked at."
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only from then on: 2026-01-31, 2026-01-31T08:00, or 7d, 12h, 90m ago.")
    ] = None,
    min_size: Annotated[
        int | None, typer.Option(min=2, help="Fewer failures alike are no cluster; none: 5, or one in 400.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page too, one file that loads nothing.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Cluster failed outcomes by what was said, agent, error and stage; say what would end each cluster."""
    from models.errors import RouterError

    from_ms = since_ms(since, datetime.now(UTC))
    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        # told before the minutes that clustering may take
        fail(f"--html: {html} cannot be written; name a file in a folder that there is", UNUSABLE)
    try:
        told = _clustered(store_url(log), from_ms, min_size)
        if html is not None:
            _write(html, told)
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if as_json:
        emit_json(told)
    else:
        _show(told)
    if html is not None:
        say(f"the page is {html}")


def _clustered(url: str, from_ms: int, min_size: int | None) -> dict[str, Any]:
    from intent.vector_cache import VectorCache
    from router.failures import failure_report, told

    with bar("reading outcomes") as reading:
        log, cards = asyncio.run(_read(url, from_ms, lambda n: reading(n, n)))
    if not log.failures:
        return told(failure_report(log, (), lambda texts: {}), log)
    cache = VectorCache(embedder_of(None))

    def embedded(texts: Sequence[str]) -> Mapping[str, Embedded]:
        with bar("embedding") as embedding:
            found = cache.of(texts, embedding)
        if len(log.failures) > _MANY:
            say(f"clustering {len(log.failures)} failures")
        return found

    # no event loop runs here any more
    return told(failure_report(log, cards, embedded, min_size=min_size), log)


async def _read(url: str, from_ms: int, reading: Any) -> tuple[FailureLog, list[AgentCard]]:
    from router.failure_log import read_failures
    from router.stores.failed import open_failed
    from router.stores.open import look_into

    async with look_into(url) as store:
        cards = [stored.card for stored in await store.cards.load_cards()]
    async with open_failed(url) as store_of_failures:
        return await read_failures(store_of_failures, from_ms, told=reading), cards


def _write(path: Path, told: dict[str, Any]) -> None:
    from models.errors import ConfigError
    from router.failures_page import failures_page

    try:
        path.write_text(failures_page(told), encoding="utf-8")
    except OSError as error:
        message = f"--html: {path} cannot be written ({error.strerror}); name a file in a folder that there is"
        raise ConfigError(message) from error


def _show(told: dict[str, Any]) -> None:
    n, n_outcomes = told["n_failures"], told["n_outcomes"]
    if not n:
        print(f"nothing failed among {n_outcomes} outcome(s)")
        return
    if told["clusters"]:
        table(["cluster", "size", "trend", "proposed fix"], [_row(cluster) for cluster in told["clusters"]])
    left_out = f"; {told['n_left_out']} older ones are left out" if told["n_left_out"] else ""
    print(
        f"{n} failure(s) among {n_outcomes} outcome(s): {len(told['clusters'])} cluster(s), "
        f"{told['rest']['size']} in the rest{left_out}"
    )


def _row(cluster: dict[str, Any]) -> list[str]:
    trend, fix = cluster["trend"], cluster["fix"]
    traces = ", ".join(example["trace_id"] for example in cluster["examples"][:2])
    return [
        cluster["name"],
        f"{cluster['size']} ({cluster['share']:.0%})",
        f"{trend['change']} ({trend['n_before']} → {trend['n_recent']})",
        f"{fix['kind']}: {fix['text']}\n{fix['reason']}\ntraces: {traces}",
    ]
