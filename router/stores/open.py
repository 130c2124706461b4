"""open_store: the store that a URL names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from models.ports import (
    CardStore,
    Clock,
    HeartbeatStore,
    KeyStore,
    PolicyStore,
    RecordStore,
    TicketStore,
    VectorStore,
    WeightStore,
)
from models.promotion import PromotionStore
from models.retention import ImportStore, RetentionStore
from models.review import ReviewStore
from models.subject import SubjectStore
from router.clock import SystemClock
from router.stores.cards import SqlCards
from router.stores.database import Database
from router.stores.generations import SqlGenerations
from router.stores.heartbeats import SqlHeartbeats
from router.stores.imports import SqlImports
from router.stores.keys import SqlKeys
from router.stores.looked_at import LookedAtRetention, LookedAtVectors
from router.stores.opened import looked_at, opened
from router.stores.policies import SqlPolicies
from router.stores.promotions import SqlPromotions
from router.stores.records import SqlRecords
from router.stores.retention import SqlRetention
from router.stores.reviews import SqlReviews
from router.stores.seals import SqlSeals
from router.stores.subjects import SqlSubjects
from router.stores.tickets import SqlTickets
from router.stores.vectors import SqlVectors
from router.stores.weights import SqlWeights

_N_READERS = 4


@dataclass(frozen=True, slots=True)
class Store:
    """The parts of an open store.

    Attributes:
        close: finishes what has begun and closes all connections; may be called twice.
    """

    cards: CardStore
    vectors: VectorStore
    keys: KeyStore
    policies: PolicyStore
    records: RecordStore
    heartbeats: HeartbeatStore
    tickets: TicketStore
    seals: SqlSeals
    generations: SqlGenerations
    weights: WeightStore
    reviews: ReviewStore
    promotions: PromotionStore
    subjects: SubjectStore
    retention: RetentionStore
    imports: ImportStore
    close: Callable[[], Awaitable[None]]


@asynccontextmanager
async def open_store(url: str, *, clock: Clock | None = None) -> AsyncIterator[Store]:
    """Open the store that `url` names, made and migrated to the newest schema if need be.

    Args:
        url: `sqlite:///relative.db` or `sqlite:////absolute.db`.
        clock: stamps what is written; None takes the system's.

    Raises:
        StoreError: where it cannot be opened, naming the URL and what to do.
    """
    clock = clock or SystemClock()
    async with opened(url, clock=clock, n_readers=_N_READERS) as database:
        yield _store(database, clock, SqlVectors(database), SqlRetention(database))


@asynccontextmanager
async def look_into(url: str) -> AsyncIterator[Store]:
    """Look into the store that `url` names: nothing is written, made or migrated; a service may write to it meanwhile.

    Raises:
        StoreError: there is none, it is of another schema, or it cannot be read; whatever would write.
    """
    async with looked_at(url, n_readers=_N_READERS) as database:
        yield _store(database, SystemClock(), LookedAtVectors(database), LookedAtRetention(database))


def _store(database: Database, clock: Clock, vectors: VectorStore, retention: RetentionStore) -> Store:
    tickets = SqlTickets(database)
    return Store(
        cards=SqlCards(database, clock),
        vectors=vectors,
        keys=SqlKeys(database),
        policies=SqlPolicies(database),
        records=SqlRecords(database),
        heartbeats=SqlHeartbeats(database),
        tickets=tickets,
        seals=SqlSeals(database),
        generations=SqlGenerations(database),
        weights=SqlWeights(database),
        reviews=SqlReviews(database),
        promotions=SqlPromotions(database),
        subjects=SqlSubjects(database, tickets.recount),
        retention=retention,
        imports=SqlImports(database),
        close=database.close,
    )
