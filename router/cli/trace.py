"""`agency-router trace`: the story of a trace, from the store."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.output import UNUSABLE, emit_json, fail, store_url, table

if TYPE_CHECKING:
    from models.events import EventRow

_MAX_EVENTS = 10_000


def trace(
    trace_id: Annotated[str, typer.Argument(help="The trace.")],
    store: Annotated[str | None, typer.Option("--store", envvar="AGENCY_ROUTER_STORE", help="Store URL.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell what happened in a trace, in causal order."""
    from models.errors import RouterError

    try:
        events = asyncio.run(_read(store_url(store), trace_id))
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if not events:
        fail(f"there is no trace {trace_id!r} in {store_url(store)}", UNUSABLE)
    told = [_told(seq, row) for seq, row in events]
    if as_json:
        emit_json({"trace_id": trace_id, "events": told})
    else:
        table(["when", "span", "event", "decision", "what"], [_row(event) for event in told])


async def _read(url: str, trace_id: str) -> list[tuple[int, EventRow]]:
    from router.stores.open import look_into

    async with look_into(url) as store:
        return list(await store.records.trace(trace_id, _MAX_EVENTS))


def _told(seq: int, row: EventRow) -> dict[str, Any]:
    return {"seq": seq, **row._asdict(), "payload": json.loads(row.payload)}


def _row(event: dict[str, Any]) -> list[str]:
    when = datetime.fromtimestamp(event["happened_at"] / 1000, UTC).isoformat(timespec="milliseconds")
    what = ", ".join(f"{name}={value}" for name, value in event["payload"].items())
    return [when, event["span_id"], event["event_type"], event["decision"] or "", what]
