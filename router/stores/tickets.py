"""SqlTickets: the tickets of the degrade queue, each change of state in a transaction of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, and_, case, delete, insert, null, or_, select, update

from models.errors import ConflictError, RouterError
from models.queue import OPEN_STATES, Claim, SettleRequest, TicketCounts, TicketFilter, TicketRow, TicketState
from router.stores.database import Database
from router.stores.tables import tickets
from router.stores.ticket_queries import (
    CLAIMED,
    FIRST_COME,
    TICKET,
    WAITING,
    counts_query,
    ended_query,
    is_due,
    n_open_query,
    oldest_query,
    one,
    page_query,
    row_of,
)

T = TypeVar("T")

_EXPIRED, _GIVEN_UP = str(TicketState.EXPIRED), str(TicketState.GIVEN_UP)
_MAX_LAPSED = 1000
_MAX_BATCH = 256
_MAX_NAMESPACES = 10_000


@dataclass(slots=True)
class _Batch:
    """Tickets that go to the disk together.

    Attributes:
        puts: (row, request, most open ones of its namespace).
        written: of each, whether there was room.
    """

    puts: list[tuple[TicketRow, str, int]] = field(default_factory=list)
    written: asyncio.Task[list[bool]] | None = None


class SqlTickets:
    """A `TicketStore`.

    Tickets that come while others are being written are written together, as each write waits for the disk. How many
    are open in a namespace is kept in memory, for up to 10,000 namespaces: it is counted anew when it is not known.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._n_open: dict[str, int] = {}
        self._gathering: _Batch | None = None
        self._turn = asyncio.Lock()

    async def put(self, row: TicketRow, request: str, max_open: int) -> bool:
        """Store a ticket with its request's JSON text; False where its namespace has `max_open` open ones.

        Raises:
            ValueError: where the database can never hold it.
        """
        if self._n_open.get(row.namespace, 0) >= max_open:
            return False
        batch = self._gathering
        if batch is None or len(batch.puts) >= _MAX_BATCH:
            batch = self._gathering = _Batch()
            batch.written = asyncio.create_task(self._write(batch))
        assert batch.written is not None
        place = len(batch.puts)
        batch.puts.append((row, request, max_open))
        try:
            return (await asyncio.shield(batch.written))[place]
        except ValueError:
            if len(batch.puts) == 1:
                raise
        # one of them kept the others out
        return (await self._change(lambda connection: self._put(connection, [(row, request, max_open)])))[0]

    async def get(self, ticket: str) -> TicketRow | None:
        """One ticket, in its stored state."""
        return await self._database.read(lambda connection: one(connection, ticket))

    async def page(self, wanted: TicketFilter, after: str, limit: int) -> Sequence[TicketRow]:
        """Tickets with an id greater than `after`, in the order of their ids."""
        query = page_query(wanted, after, limit)
        return await self._database.read(lambda connection: [row_of(row) for row in connection.execute(query)])

    async def counts(self, wanted: TicketFilter) -> TicketCounts:
        """How many are open, whatever `wanted.state`."""
        query = counts_query(wanted)

        def work(connection: Connection) -> TicketCounts:
            found = {state: (n, oldest) for state, n, oldest in connection.execute(query)}
            (n_waiting, oldest), (n_claimed, _) = (found.get(state, (0, None)) for state in (WAITING, CLAIMED))
            return TicketCounts(n_waiting, n_claimed, oldest)

        return await self._database.read(work)

    async def claim(self, claim: Claim, now_ms: int) -> Sequence[tuple[TicketRow, str]]:
        """Take the oldest waiting tickets, oldest first, with their requests; no two claims get the same."""
        return await self._change(lambda connection: self._claim(connection, claim, now_ms))

    async def settle(self, ticket: str, request: SettleRequest, now_ms: int, max_claims: int) -> TicketRow | None:
        """The ticket after its settlement; None where there is none.

        Raises:
            ConflictError: where the claim does not hold the ticket, and did not settle it so before.
        """

        def work(connection: Connection) -> TicketRow | None:
            self._lapse(connection, tickets.c.ticket == ticket, now_ms, max_claims, 1)
            row = one(connection, ticket)
            if row is None:
                return None
            settled = settled_row(row, request, now_ms)
            if settled is not row:
                values = {name: getattr(settled, name) for name in ("n_claims", "claimed_until", "settled_at", "note")}
                change = update(tickets).where(tickets.c.ticket == ticket)
                connection.execute(change.values(state=str(settled.state), **values))
                if settled.state not in OPEN_STATES:
                    self._ended(row.namespace)
            return settled

        return await self._change(work)

    async def due(self, now_ms: int) -> Sequence[str]:
        """Namespaces in which tickets, or claims on them, have run out."""
        query = select(tickets.c.namespace).distinct().where(is_due(now_ms))
        return await self._database.read(lambda connection: sorted(connection.execute(query).scalars()))

    async def expire(self, namespace: str, now_ms: int, max_claims: int, limit: int) -> int:
        """Give at most `limit` such tickets their new state; how many they were."""
        of_it = tickets.c.namespace == namespace
        return await self._change(lambda connection: self._lapse(connection, of_it, now_ms, max_claims, limit))

    async def forget(self, before_ms: int, limit: int) -> int:
        """Delete at most `limit` tickets that ended before an instant; how many they were."""
        old: Sequence[str] = await self._database.read(
            lambda connection: connection.execute(ended_query(before_ms, limit)).scalars().all()
        )
        if old:
            gone = delete(tickets).where(tickets.c.ticket.in_(old))
            await self._change(lambda connection: connection.execute(gone))
        # another process may have opened the same store and ended or added some
        self._n_open.clear()
        return len(old)

    def recount(self) -> None:
        """Count anew what is open: somebody else has deleted tickets."""
        self._n_open.clear()

    async def _write(self, batch: _Batch) -> list[bool]:
        async with self._turn:
            if self._gathering is batch:
                self._gathering = None
            return await self._change(lambda connection: self._put(connection, batch.puts))

    async def _change(self, work: Callable[[Connection], T]) -> T:
        try:
            return await self._database.write(work)
        except (RouterError, ValueError):
            # what was counted in memory is not on the disk
            self._n_open.clear()
            raise

    def _put(self, connection: Connection, puts: Sequence[tuple[TicketRow, str, int]]) -> list[bool]:
        taken = [self._has_room(connection, row.namespace, max_open) for row, _, max_open in puts]
        rows = [
            {**row._asdict(), "state": str(row.state), "request": request}
            for (row, request, _), is_taken in zip(puts, taken, strict=True)
            if is_taken
        ]
        if rows:
            connection.execute(insert(tickets), rows)
        return taken

    def _has_room(self, connection: Connection, namespace: str, max_open: int) -> bool:
        if namespace not in self._n_open:
            if len(self._n_open) >= _MAX_NAMESPACES:
                self._n_open.clear()
            self._n_open[namespace] = connection.execute(n_open_query(namespace)).scalar_one()
        if self._n_open[namespace] >= max_open:
            return False
        self._n_open[namespace] += 1
        return True

    def _ended(self, namespace: str) -> None:
        if namespace in self._n_open:
            self._n_open[namespace] -= 1

    def _claim(self, connection: Connection, claim: Claim, now_ms: int) -> list[tuple[TicketRow, str]]:
        claimed = and_(tickets.c.state == CLAIMED, tickets.c.namespace == claim.namespace)
        self._lapse(connection, claimed, now_ms, claim.max_claims, _MAX_LAPSED)
        chosen: list[str] = []
        room = claim.max_chars
        for ticket, n_chars in connection.execute(oldest_query(claim, now_ms)):
            room -= n_chars
            if chosen and room < 0:
                break
            chosen.append(ticket)
        if not chosen:
            return []
        taken = tickets.c.ticket.in_(chosen)
        change = update(tickets).where(taken).values(
            state=CLAIMED,
            claim_id=claim.claim_id,
            claimed_by=claim.claimed_by,
            claimed_until=claim.until_ms,
            n_claims=tickets.c.n_claims + 1,
        )  # fmt: skip
        connection.execute(change)
        query = select(*TICKET, tickets.c.request).where(taken).order_by(*FIRST_COME)
        return [(row_of(row[:-1]), row[-1]) for row in connection.execute(query)]

    def _lapse(
        self, connection: Connection, among: ColumnElement[bool], now_ms: int, max_claims: int, limit: int
    ) -> int:
        """Tickets that ran out end; those whose claim ran out wait again, or are given up after the last one."""
        due = select(tickets.c.ticket).where(among, is_due(now_ms)).limit(limit)
        was_claimed = tickets.c.state == CLAIMED
        is_over = tickets.c.expires_at <= now_ms
        is_spent = and_(was_claimed, tickets.c.n_claims >= max_claims)
        change = (
            update(tickets)
            .where(tickets.c.ticket.in_(due))
            .values(
                state=case((is_over, _EXPIRED), (is_spent, _GIVEN_UP), else_=WAITING),
                settled_at=case((or_(is_over, is_spent), now_ms), else_=null()),
                # a claim that returned its ticket is remembered, one that ran out is not
                claim_id=case((was_claimed, null()), else_=tickets.c.claim_id),
                claimed_until=null(),
            )
            .returning(tickets.c.state, tickets.c.namespace)
        )
        changed = connection.execute(change).all()
        for state, namespace in changed:
            if state != WAITING:
                self._ended(namespace)
        return len(changed)


def settled_row(row: TicketRow, request: SettleRequest, now_ms: int) -> TicketRow:
    """The ticket after its settlement; the very same where this claim settled it so before.

    Raises:
        ConflictError: where the claim does not hold the ticket.
    """
    is_returned = request.status == "returned"
    if row.claim_id == request.claim_id:
        if row.state is TicketState.CLAIMED:
            if is_returned and row.expires_at > now_ms:
                state = TicketState.WAITING
            else:
                state = TicketState.EXPIRED if is_returned else TicketState(request.status)
            return row._replace(
                state=state,
                n_claims=row.n_claims - is_returned,
                claimed_until=None,
                settled_at=None if state is TicketState.WAITING else now_ms,
                note=request.note,
            )
        if str(row.state) == request.status or (is_returned and str(row.state) in (WAITING, _EXPIRED)):
            return row
    raise ConflictError(f"the ticket {row.ticket!r} is {row.state}, and not held by this claim")
