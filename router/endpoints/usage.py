"""`/usage`: what was used, by hour and by who used it (SPEC A18)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import orjson
from pydantic import Field, TypeAdapter
from starlette.responses import Response

from models.contract import AgentId, Namespace
from models.events import HOUR_MS, UsageQuery, UsageRow
from models.key import READ
from router.endpoints.body import query
from router.endpoints.call import Call, Context, Parameter

MAX_ROWS = 10_000
ROWS = 1000
MAX_HOURS = 10_000
"""As far back as one report goes; a question reads every row of its hours."""

DEFAULT_HOURS = 30 * 24
Instant = Annotated[int, Field(ge=0, le=2**53)]
Limit = Annotated[int, Field(ge=1, le=MAX_ROWS)]
Name = Annotated[str, Field(max_length=200)]
Agent = AgentId | Literal[""]
"""Decisions that named nobody count under no name."""

Group = Literal["caller", "team", "namespace", "agent"]
By = Literal["total", "hour"]

_KINDS: dict[str, Any] = {"caller": Name, "team": Name, "namespace": Namespace, "agent": Agent}
_COLUMNS = {"caller": "caller", "team": "team", "namespace": "namespace", "agent": "agent_id"}


def _parameter(name: str, description: str, kind: Any) -> Parameter:
    return Parameter(name, "query", description, TypeAdapter(kind).json_schema())


PARAMETERS = (
    _parameter("from", "From the hour of this instant on (epoch, milliseconds); 30 days before `to`.", Instant),
    _parameter("to", "Until the end of the hour before this instant; now, with the hour under way.", Instant),
    _parameter("group", "Whose usage is told apart (`caller`).", Group),
    _parameter("by", "Sums of the whole time, or of each hour (`total`).", By),
    _parameter("caller", "Only this caller's.", Name),
    _parameter("team", "Only this team's.", Name),
    _parameter("namespace", "Only in this namespace.", Namespace),
    _parameter("agent", "Only this agent's; empty: of decisions that named none.", Agent),
    _parameter("limit", f"At most so many rows ({ROWS}).", Limit),
)
_COUNTS = {name: {"type": "integer"} for name in ("n_decisions", "n_calls", "n_succeeded", "tokens")}
USAGE_ROW = {
    "type": "object",
    "required": ["name", "hour", *_COUNTS, "cost_usd", "mean_latency_ms"],
    "properties": {
        "name": {"type": "string", "description": "Of the caller, team, namespace or agent; may be empty."},
        "hour": {"type": ["integer", "null"], "description": "Where it begins (epoch, milliseconds); null in totals."},
        **_COUNTS,
        "cost_usd": {"type": "number"},
        "mean_latency_ms": {"type": ["number", "null"], "description": "Of the calls whose outcome told it."},
    },
}
USAGE = {
    "type": "object",
    "required": ["from", "to", "group", "by", "usage", "truncated"],
    "properties": {
        "from": {"type": "integer", "description": "Where the first hour begins (epoch, milliseconds)."},
        "to": {"type": "integer", "description": "Where the last hour ends."},
        "group": {"type": "string", "enum": list(_COLUMNS)},
        "by": {"type": "string", "enum": ["total", "hour"]},
        "usage": {"type": "array", "items": USAGE_ROW},
        "truncated": {"type": "boolean", "description": "There are more rows than `limit`."},
    },
}


async def get_usage(context: Context) -> Response:
    """Calls, successes, tokens, cost and mean latency by caller, team, namespace or agent; needs `router:read`."""
    context.grants.require(READ)
    asked = _asked(context)
    rows = await context.parts["store"].records.usage(asked._replace(limit=asked.limit + 1))
    body = {
        "from": asked.from_hour * HOUR_MS,
        "to": asked.to_hour * HOUR_MS,
        "group": "agent" if asked.group == "agent_id" else asked.group,
        "by": "hour" if asked.by_hour else "total",
        "usage": [_row(row, asked) for row in rows[: asked.limit]],
        "truncated": len(rows) > asked.limit,
    }
    return Response(orjson.dumps(body), media_type="application/json")


def _asked(context: Context) -> UsageQuery:
    request = context.request
    to_ms = query(request, "to", Instant, int(context.parts["clock"].now_ms()))
    to_hour = -(-to_ms // HOUR_MS)
    from_ms = query(request, "from", Instant, max(0, to_hour - DEFAULT_HOURS) * HOUR_MS)
    filters = {column: query(request, name, _KINDS[name]) for name, column in _COLUMNS.items()}
    return UsageQuery(
        from_hour=max(from_ms // HOUR_MS, to_hour - MAX_HOURS),
        to_hour=to_hour,
        group=cast(Any, _COLUMNS[query(request, "group", Group, "caller")]),
        by_hour=query(request, "by", By, "total") == "hour",
        limit=query(request, "limit", Limit, ROWS),
        **filters,
    )


def _row(row: UsageRow, asked: UsageQuery) -> dict[str, Any]:
    # sums and differences of floats leave a rest where nothing is left
    return {
        "name": getattr(row, asked.group),
        "hour": row.hour * HOUR_MS if asked.by_hour else None,
        **{name: getattr(row, name) for name in _COUNTS},
        "cost_usd": round(row.cost_usd, 9) + 0.0,
        "mean_latency_ms": round(row.latency_ms / row.n_latencies, 3) + 0.0 if row.n_latencies > 0 else None,
    }


CALLS = (
    Call(
        operation_id="get_usage",
        method="GET",
        path="/usage",
        summary="What was used",
        handler=get_usage,
        answers={200: USAGE},
        parameters=PARAMETERS,
        problems=(403, 422),
        needs_cards=False,
        tags=("usage",),
    ),
)
