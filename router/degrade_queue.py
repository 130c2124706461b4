"""DegradeQueue: what can only be served later waits here, until a worker takes it up or its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import orjson

from models.decision import QueueTicket
from models.errors import ForbiddenError, NotFoundError
from models.key import ADMIN, QUEUE, READ
from models.live_policy import QueuePolicy
from models.policy import Policy
from models.ports import Clock, TicketStore
from models.queue import (
    Claim,
    Claimed,
    ClaimedTicket,
    ClaimRequest,
    SettleRequest,
    Ticket,
    TicketFilter,
    TicketPage,
    TicketRow,
    TicketState,
)
from router.permit import Grants

SWEEP_S = 5.0
"""How often `run` looks for what has run out."""

KEPT_MS = 86_400_000
"""How long a ticket is kept after its end: a day."""

MAX_CLAIMED_CHARS = 4 * 1024 * 1024
"""Of the requests that one claim hands out together."""

_SWEEPS_PER_CLEANING = 60
_BATCH = 500


class DegradeQueue:
    """The third step down (SPEC A10): the agent, its backup, then a ticket.

    All state is in the store, so any number of these may stand before the same one.

    Args:
        store: where the tickets are.
        policy: the policy in force at the moment of asking.
        clock: the time; tickets and claims end by the wall clock, as they outlive the process.
        new_id: a fresh id for a ticket or a claim; nobody can guess it, and later ones are greater.
        sleep: waits that many seconds; tests pass one that does not.
    """

    def __init__(
        self,
        store: TicketStore,
        policy: Callable[[], Policy],
        clock: Clock,
        new_id: Callable[[], str],
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._new_id = new_id
        self._sleep = sleep

    async def put(
        self,
        *,
        request_json: str,
        namespace: str,
        intent: str,
        decision_id: str,
        trace_id: str,
        caller: str,
        expires_at: float | None,
        policy: QueuePolicy,
        now_ms: float,
    ) -> QueueTicket | None:
        """Keep a request; it is on the disk before this returns.

        Should the caller of this be cancelled, the ticket may be there all the same.

        Args:
            request_json: the request as `POST /route` takes it; comes back byte for byte.
            namespace: of the request.
            intent: what it was understood to mean.
            decision_id: of the decision whose answer the ticket is.
            trace_id: of that decision.
            caller: name of the key; "" while keys are off.
            expires_at: the instant by which the caller wants the result, as `deadline_ms` or `X-Deadline-Ms` says
                (epoch, milliseconds): the ticket expires with it, if that is before the policy's `ttl_ms` is over.
                None where it named none; budgets such as `response_timeout_ms` say how long the caller waits for an
                answer, and the ticket is one.
            policy: of the namespace.
            now_ms: epoch, milliseconds.

        Returns:
            The ticket; None where the namespace has `max_tickets` open ones (what ran out counts until the next sweep),
            or the deadline is over.

        Raises:
            StoreError: where the store does not take it.
        """
        over_ms = now_ms + policy.ttl_ms
        until = int(over_ms if expires_at is None else min(over_ms, expires_at))
        if until <= now_ms:
            return None
        row = TicketRow(
            ticket=self._new_id(),
            namespace=namespace,
            intent=intent,
            decision_id=decision_id,
            trace_id=trace_id,
            caller=caller,
            state=TicketState.WAITING,
            n_claims=0,
            claim_id=None,
            claimed_by=None,
            claimed_until=None,
            created_at=int(now_ms),
            expires_at=until,
            settled_at=None,
            note=None,
        )
        if not await self._store.put(row, request_json, policy.max_tickets):
            return None
        return QueueTicket.of(ticket=row.ticket, url=url_of(row.ticket), expires_at=until)

    async def get(self, ticket: str, grants: Grants) -> Ticket:
        """One ticket as it stands now.

        Raises:
            NotFoundError: there is none, or none that this key may see: it got the ticket itself, or may read or work
                in its namespace.
        """
        row = await self._store.get(ticket)
        if row is None or not _may_see(row, grants):
            raise _unknown(ticket)
        now_ms = self._now_ms()
        if row.is_due(now_ms):
            await self._expire(row.namespace, now_ms)
            row = await self._store.get(ticket)
            if row is None:
                raise _unknown(ticket)
        return Ticket.of(**_shown(row))

    async def page(self, wanted: TicketFilter, grants: Grants, *, after: str = "", limit: int = 100) -> TicketPage:
        """Tickets of the namespaces that the key reaches, as they stand now.

        Args:
            wanted: which ones.
            grants: of the key.
            after: the `next` of the page before; "" begins.
            limit: at most so many.

        Raises:
            ForbiddenError: without `router:read`, or where a namespace is asked for that the key does not reach.
        """
        grants.require(READ)
        for namespace in wanted.namespaces or ():
            _check_reach(namespace, grants)
        if wanted.namespaces is None:
            wanted = wanted._replace(namespaces=grants.namespaces)
        await self.expire()
        # one more tells whether there is a next page
        rows = await self._store.page(wanted, after, limit + 1)
        counts = await self._store.counts(wanted)
        oldest_at = counts.oldest_at
        return TicketPage.of(
            tickets=[Ticket.of(**_shown(row)) for row in rows[:limit]],
            n_waiting=counts.n_waiting,
            n_claimed=counts.n_claimed,
            oldest_wait_ms=None if oldest_at is None else max(0, self._now_ms() - oldest_at),
            next=rows[limit - 1].ticket if len(rows) > limit else None,
        )

    async def claim(self, request: ClaimRequest, grants: Grants) -> Claimed:
        """Hand the oldest waiting tickets of a namespace to a worker, for a while.

        Raises:
            ForbiddenError: without `router:queue`, or where the key does not reach the namespace.
        """
        grants.require(QUEUE)
        _check_reach(request.namespace, grants)
        now_ms = self._now_ms()
        policy = self._policy().of(request.namespace).queue
        claim = Claim(
            claim_id=self._new_id(),
            namespace=request.namespace,
            intents=None if request.intents is None else tuple(request.intents),
            limit=request.limit,
            claimed_by=grants.caller,
            until_ms=now_ms + (request.claim_ms or policy.claim_ms),
            max_claims=policy.max_claims,
            max_chars=MAX_CLAIMED_CHARS,
        )
        taken = await self._store.claim(claim, now_ms)
        tickets = [ClaimedTicket.of(**_shown(row), request=orjson.Fragment(text)) for row, text in taken]
        return Claimed.of(claim_id=claim.claim_id, claimed_until=claim.until_ms, tickets=tickets)

    async def settle(self, ticket: str, request: SettleRequest, grants: Grants) -> Ticket:
        """End a claim on a ticket. Doing so again, in the same way, changes nothing.

        Raises:
            ForbiddenError: without `router:queue`.
            NotFoundError: there is no such ticket in a namespace that the key reaches.
            ConflictError: the claim does not hold the ticket: it ran out, or was settled otherwise.
        """
        grants.require(QUEUE)
        row = await self._store.get(ticket)
        if row is None or not grants.reaches(row.namespace):
            raise _unknown(ticket)
        max_claims = self._policy().of(row.namespace).queue.max_claims
        settled = await self._store.settle(ticket, request, self._now_ms(), max_claims)
        if settled is None:
            raise _unknown(ticket)
        return Ticket.of(**_shown(settled))

    async def expire(self) -> None:
        """Give all tickets that ran out, or whose claim did, their new state."""
        now_ms = self._now_ms()
        for namespace in await self._store.due(now_ms):
            await self._expire(namespace, now_ms)

    async def forget(self) -> None:
        """Delete the tickets that ended more than a day ago."""
        while await self._store.forget(self._now_ms() - KEPT_MS, _BATCH) == _BATCH:
            pass

    async def run(self) -> None:
        """Do both again and again, until cancelled; the caller supervises it."""
        n_sweeps = 0
        while True:
            await self.expire()
            if n_sweeps % _SWEEPS_PER_CLEANING == 0:
                await self.forget()
            n_sweeps += 1
            await self._sleep(SWEEP_S)

    async def _expire(self, namespace: str, now_ms: int) -> None:
        max_claims = self._policy().of(namespace).queue.max_claims
        while await self._store.expire(namespace, now_ms, max_claims, _BATCH) == _BATCH:
            pass

    def _now_ms(self) -> int:
        return int(self._clock.now_ms())


def url_of(ticket: str) -> str:
    """Where to ask for a ticket.

    >>> url_of("018f2a")
    '/queue/018f2a'
    """
    return f"/queue/{ticket}"


def _shown(row: TicketRow) -> dict[str, object]:
    shown = {"url": url_of(row.ticket), **row._asdict()}
    # whoever knows it may settle the ticket
    del shown["claim_id"]
    return shown


def _may_see(row: TicketRow, grants: Grants) -> bool:
    if grants.is_own(row.caller):
        return True
    return grants.reaches(row.namespace) and any(map(grants.has, (READ, QUEUE, ADMIN)))


def _check_reach(namespace: str, grants: Grants) -> None:
    if not grants.reaches(namespace):
        raise ForbiddenError(f"this key does not reach namespace {namespace!r}")


def _unknown(ticket: str) -> NotFoundError:
    return NotFoundError(f"there is no ticket {ticket!r}")
