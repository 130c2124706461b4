"""Usage in the store: differences that are added to sums by hour, and sums over them."""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Any

from sqlalchemy import Connection, Select, cast, literal, select
from sqlalchemy import func as sql
from sqlalchemy.dialects import postgresql, sqlite

from models.events import UsageQuery, UsageRow
from router.stores.tables import usage

_KEY = ("hour", "caller", "team", "namespace", "agent_id")
_SUMS = UsageRow._fields[len(_KEY) :]


def merged(rows: Iterable[UsageRow]) -> list[UsageRow]:
    """The rows with those of one key added up, keys in the order of their first row.

    >>> row = UsageRow(1, "web", "", "default", "orders", 1, 0, 0, 0, 0.0, 0, 0.0)
    >>> [each[4:8] for each in merged([row, row._replace(agent_id="refunds"), row._replace(n_calls=2)])]
    [('orders', 2, 2, 0), ('refunds', 1, 0, 0)]
    """
    sums: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        key, values = row[: len(_KEY)], row[len(_KEY) :]
        before = sums.get(key)
        sums[key] = list(values) if before is None else list(map(add, before, values))
    return [UsageRow._make((*key, *values)) for key, values in sums.items()]


def add_statement(connection: Connection) -> str:
    """INSERT of a `UsageRow` that adds to the row with its key, for the driver."""
    insert: Any = postgresql.insert(usage) if connection.dialect.name == "postgresql" else sqlite.insert(usage)
    adding = {name: usage.c[name] + insert.excluded[name] for name in _SUMS}
    statement = insert.on_conflict_do_update(index_elements=list(_KEY), set_=adding)
    return str(statement.compile(dialect=connection.dialect, column_keys=list(UsageRow._fields)))


def usage_query(query: UsageQuery) -> Select[Any]:
    """The sums that are asked for, through the primary key, by hour and then by group."""
    told: dict[str, Any] = {query.group: usage.c[query.group]}
    if query.by_hour:
        told["hour"] = usage.c.hour
    key = [told.get(name, literal(0 if name == "hour" else "").label(name)) for name in _KEY]
    wanted = [usage.c.hour >= query.from_hour, usage.c.hour < query.to_hour]
    for name in ("caller", "team", "namespace", "agent_id"):
        value = getattr(query, name)
        if value is not None:
            wanted.append(usage.c[name] == value)
    order = [told[name] for name in ("hour", query.group) if name in told]
    # the sum of integers is no integer everywhere
    sums = [cast(sql.sum(usage.c[name]), usage.c[name].type).label(name) for name in _SUMS]
    return select(*key, *sums).where(*wanted).group_by(*order).order_by(*order).limit(query.limit)
