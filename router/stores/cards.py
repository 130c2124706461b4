"""SqlCards: agent cards as JSON text."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, bindparam, delete, insert, select

from models.card import AgentCard
from models.ports import Clock, StoredCard
from router.stores import tables
from router.stores.database import Database, insert_or_keep

log = logging.getLogger(__name__)

_KEY = (tables.cards.c.namespace, tables.cards.c.agent_id, tables.cards.c.version)
_DELETE = delete(tables.cards).where(*(column == bindparam(f"old_{column.name}") for column in _KEY))


class SqlCards:
    """A `CardStore`; there is one card to a key, and one from the API is never displaced by one from a file."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def load_cards(self) -> Sequence[StoredCard]:
        """All stored cards by key; one that no longer validates is logged, left out and kept."""

        def work(connection: Connection) -> list[tuple[str, str, str, str, str]]:
            found = connection.execute(select(*_KEY, tables.cards.c.source, tables.cards.c.body).order_by(*_KEY))
            return [(row[0], row[1], row[2], row[3], row[4]) for row in found]

        return await asyncio.to_thread(_parse, await self._database.read(work))

    async def put_card(self, card: AgentCard) -> None:
        """Store one card from the API; replaces the one with its key, wherever that came from."""
        row = self._row(card, "api")

        def work(connection: Connection) -> None:
            connection.execute(_DELETE, _old(card.key))
            connection.execute(insert(tables.cards), row)

        await self._database.write(work)

    async def delete_cards(self, keys: Sequence[tuple[str, str, str]]) -> None:
        """Forget the cards with these (namespace, agent_id, version); those not there do not matter."""
        if keys:
            await self._database.write(lambda connection: connection.execute(_DELETE, [_old(key) for key in keys]))

    async def replace_file_cards(self, cards: Sequence[AgentCard]) -> None:
        """Make these the cards from files, in one transaction; cards from the API stay, also against an equal key."""
        rows = [self._row(card, "file") for card in cards]

        def work(connection: Connection) -> None:
            connection.execute(delete(tables.cards).where(tables.cards.c.source == "file"))
            if rows:
                connection.execute(insert_or_keep(connection, tables.cards), rows)

        await self._database.write(work)

    def _row(self, card: AgentCard, source: str) -> dict[str, Any]:
        return {
            "namespace": card.namespace,
            "agent_id": card.agent_id,
            "version": card.version,
            "source": source,
            # fields left open follow the defaults of the release that reads the card, as they do in a card file
            "body": card.model_dump_json(exclude_unset=True),
            "updated_at": int(self._clock.now_ms()),
        }


def _old(key: tuple[str, str, str]) -> dict[str, str]:
    return {f"old_{column.name}": value for column, value in zip(_KEY, key, strict=True)}


def _parse(rows: Sequence[tuple[str, str, str, str, str]]) -> list[StoredCard]:
    loaded = []
    for namespace, agent_id, version, source, body in rows:
        try:
            card = AgentCard.model_validate_json(body)
        except ValidationError as error:
            log.warning("stored card %s/%s %s is left out: %s", namespace, agent_id, version, error)
            continue
        loaded.append(StoredCard(card, "file" if source == "file" else "api"))
    return loaded
