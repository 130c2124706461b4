"""The degrade queue: requests that can only be served later, kept until a worker takes them up."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from models.answer import Answer
from models.contract import Contract, Identifier, IntentName, Namespace

MAX_CLAIMED = 100
MAX_NOTE_CHARS = 2000


class TicketState(StrEnum):
    """Where a ticket stands; the first two are open, the others are its ends."""

    WAITING = "waiting"
    CLAIMED = "claimed"
    SETTLED = "settled"
    EXPIRED = "expired"
    GIVEN_UP = "given_up"


OPEN_STATES = (TicketState.WAITING, TicketState.CLAIMED)
ENDED_STATES = (TicketState.SETTLED, TicketState.EXPIRED, TicketState.GIVEN_UP)


class TicketRow(NamedTuple):
    """A ticket as it is stored, without its request; instants in milliseconds since the epoch.

    Attributes:
        caller: name of the key that asked; "" while keys were off.
        n_claims: claims so far, those left out whose ticket was returned.
        claim_id: of the claim that holds it, or that ended it or returned it; None where none did.
        claimed_by: name of the key that claimed it last; None where nobody did.
        claimed_until: None unless it is claimed.
        settled_at: when it came to its end; None while it is open.
        note: what the worker said of it last.
    """

    ticket: str
    namespace: str
    intent: str
    decision_id: str
    trace_id: str
    caller: str
    state: TicketState
    n_claims: int
    claim_id: str | None
    claimed_by: str | None
    claimed_until: int | None
    created_at: int
    expires_at: int
    settled_at: int | None
    note: str | None

    def is_due(self, now_ms: float) -> bool:
        """Whether its state is no longer the stored one: it, or the claim on it, has run out."""
        if self.state is TicketState.CLAIMED:
            return self.claimed_until is not None and self.claimed_until <= now_ms
        return self.state is TicketState.WAITING and self.expires_at <= now_ms


class TicketFilter(NamedTuple):
    """Which tickets are meant; None means any."""

    namespaces: frozenset[str] | None = None
    state: TicketState | None = None
    intent: str | None = None


class TicketCounts(NamedTuple):
    """How many tickets are open.

    Attributes:
        oldest_at: when the oldest waiting one was made (epoch, milliseconds); None where none waits.
    """

    n_waiting: int
    n_claimed: int
    oldest_at: int | None


class Claim(NamedTuple):
    """What a worker asks for, with what the policy says of it.

    Attributes:
        intents: only tickets of these; None means of any.
        claimed_by: name of the key.
        until_ms: how long the claim holds (epoch, milliseconds).
        max_claims: as in the policy.
        max_chars: of requests together; the first ticket is given whatever its length.
    """

    claim_id: str
    namespace: str
    intents: tuple[str, ...] | None
    limit: int
    claimed_by: str
    until_ms: int
    max_claims: int
    max_chars: int


class ClaimRequest(Contract):
    """Body of `POST /queue/claim`.

    Attributes:
        intents: only tickets of these; None means of any.
        limit: at most so many tickets; fewer come where their requests are long.
        claim_ms: how long they are kept for this worker; None takes the policy's `queue.claim_ms`.
    """

    namespace: Namespace = "default"
    intents: Annotated[list[IntentName], Field(min_length=1, max_length=1000)] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_CLAIMED)] = 1
    claim_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None


class SettleRequest(Contract):
    """Body of `POST /queue/{ticket}/settle`.

    Attributes:
        claim_id: of the claim that holds the ticket.
        status: it was served; it goes back and waits in its old place; it cannot be served.
        note: kept with the ticket.
    """

    claim_id: Identifier
    status: Literal["settled", "returned", "given_up"]
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS)] | None = None


class Ticket(Answer):
    """A ticket as it is shown; the fields are those of `TicketRow`, the claim's id left out."""

    ticket: str
    url: str
    state: TicketState
    namespace: str
    intent: str
    decision_id: str
    trace_id: str
    caller: str
    n_claims: int
    claimed_by: str | None = None
    claimed_until: int | None = None
    created_at: int
    expires_at: int
    settled_at: int | None = None
    note: str | None = None


class ClaimedTicket(Ticket):
    """A ticket with the request that it stands for, as `POST /route` takes it."""

    request: Any


class Claimed(Answer):
    """What a worker got.

    Attributes:
        claim_id: settles any of these tickets.
        claimed_until: until then they are this worker's alone (epoch, milliseconds).
        tickets: the oldest ones that waited; none where none did.
    """

    claim_id: str
    claimed_until: int
    tickets: list[ClaimedTicket]


class TicketPage(Answer):
    """Some of the tickets, in the order of their ids, which is that in which they were made.

    Attributes:
        n_waiting: how many wait in all, whatever the page; the state asked for does not count here.
        n_claimed: how many are claimed.
        oldest_wait_ms: how long the oldest waiting one has waited; None where none waits.
        next: give it as `after` to read on; None at the end.
    """

    tickets: list[Ticket]
    n_waiting: int
    n_claimed: int
    oldest_wait_ms: int | None = None
    next: str | None = None
