"""Ports: what one part needs of another, so that neither imports the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from models.card import AgentCard
from models.events import DecisionRow, EventRow, LearnerRow, OutcomeRow, RepeatRow, Row, UsageQuery, UsageRow, WeightRow
from models.key import Key
from models.queue import Claim, SettleRequest, TicketCounts, TicketFilter, TicketRow
from models.reading import Neighbour


class StoredCard(NamedTuple):
    """A card and whether it came from a file or over the API."""

    card: AgentCard
    source: Literal["file", "api"]


MAX_UNKNOWN_SHARE = 0.2
"""A text with a larger share of unknown tokens has no vector worth comparing: unrelated ones come out alike."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text as a vector.

    Attributes:
        vector: float32 little-endian, `dim` values, unit length.
        unknown_share: share of the text's tokens that the vocabulary does not know, 0..1.
    """

    vector: bytes
    unknown_share: float

    @property
    def is_trusted(self) -> bool:
        """Whether the encoder knew enough of the text for its vector to say something."""
        return self.unknown_share <= MAX_UNKNOWN_SHARE


class Embedder(Protocol):
    """An encoder of texts."""

    @property
    def encoder_id(self) -> str:
        """Digest of all that shapes a vector; vectors of two ids never meet in one index."""

    @property
    def dim(self) -> int:
        """Number of values in a vector."""

    @property
    def languages(self) -> frozenset[str] | None:
        """Languages it was made for (primary subtags of BCP 47); None means all of which it knows the tokens."""

    def embed(self, text: str) -> Embedded:
        """Encode one text. Synchronous and thread safe: callers run it in worker threads."""


class VectorStore(Protocol):
    """Where the vectors of card texts outlive a restart."""

    async def load_vectors(self, encoder_id: str, digests: Sequence[str]) -> Mapping[str, Embedded]:
        """The stored vectors among `digests` (digest of the text → vector)."""

    async def save_vectors(self, encoder_id: str, vectors: Mapping[str, Embedded]) -> None:
        """Add vectors; those already there stay."""


class Clock(Protocol):
    """Time, passed in so that tests own it."""

    def now_ms(self) -> float:
        """Wall clock, milliseconds since the epoch."""

    def monotonic_ms(self) -> float:
        """Steady clock, milliseconds since some fixed instant."""


class IntentSource(Protocol):
    """What intake reads over: the texts of the cards, seen from some namespaces.

    Snapshots of the router obey it; intake itself knows no cards.
    """

    @property
    def n_rows(self) -> int:
        """Rows that a search looks through."""

    @property
    def intents(self) -> frozenset[str]:
        """All intents that can be read here."""

    def exact(self, text: str) -> Sequence[str]:
        """The intents with an example that reads as `text` (normalized) does, in a stable order."""

    def neighbours(self, vector: bytes, n_intents: int) -> Sequence[Neighbour]:
        """The nearest `n_intents` intents, best first."""


class CardStore(Protocol):
    """Where the agent cards outlive a restart. A card is durable once a method has returned."""

    async def load_cards(self) -> Sequence[StoredCard]:
        """All stored cards."""

    async def put_card(self, card: AgentCard) -> None:
        """Store one card from the API; replaces the one with its key."""

    async def delete_cards(self, keys: Sequence[tuple[str, str, str]]) -> None:
        """Forget the cards with these (namespace, agent_id, version)."""

    async def replace_file_cards(self, cards: Sequence[AgentCard]) -> None:
        """Make these the cards from files, in one transaction; cards from the API stay."""


class StoredHeartbeat(NamedTuple):
    """The last sign of life of one version of an agent.

    Attributes:
        digest: of the card that it ran with.
        happened_at: epoch, milliseconds.
    """

    namespace: str
    agent_id: str
    version: str
    digest: str
    happened_at: int


class HeartbeatStore(Protocol):
    """Where the agents' last signs of life outlive a restart."""

    async def save(self, rows: Sequence[StoredHeartbeat]) -> None:
        """Keep of each (namespace, agent_id, version) the latest one; durable on return."""

    async def load(self) -> Sequence[StoredHeartbeat]:
        """All that are kept, by namespace, id and version."""


class KeyStore(Protocol):
    """Where the callers' keys are."""

    async def load_keys(self) -> Sequence[Key]:
        """All keys, revoked ones included."""

    async def add_key(self, key: Key) -> None:
        """Store a new key. Raises ConflictError where its name is taken by a key that is not revoked."""

    async def revoke_key(self, name: str, at_ms: int) -> bool:
        """Revoke the key of that name; False where there is no valid one."""


class PolicyStore(Protocol):
    """Where the policy set over the API outlives a restart."""

    async def load_policy(self) -> tuple[int, str] | None:
        """(generation, JSON text) of the newest policy; None where none was ever stored."""

    async def policy_of(self, generation: int) -> str | None:
        """The JSON text of the policy of that generation; None where there is none."""

    async def policy_before(self, generation: int) -> tuple[int, str] | None:
        """(generation, JSON text) of the newest policy of an earlier generation; None where there is none."""

    async def save_policy(self, text: str, at_ms: int) -> int:
        """Store a policy's JSON text; its generation, which rises by one each time."""


class RecordStore(Protocol):
    """Decisions, events, goal hashes, outcomes and repeats: appended, never changed. Usage: added to."""

    async def append(self, rows: Sequence[Row]) -> None:
        """Append rows of all kinds, in one transaction, events and outcomes in the order given; durable on return."""

    async def decision(self, decision_id: str) -> DecisionRow | None:
        """The record of one decision."""

    async def trace(self, trace_id: str, limit: int) -> Sequence[tuple[int, EventRow]]:
        """(sequence, event) of a trace, oldest first."""

    async def events(self, from_ms: int, to_ms: int, after: int, limit: int) -> Sequence[tuple[int, EventRow]]:
        """(sequence, event) with from_ms <= happened_at < to_ms and sequence > after, by sequence."""

    async def goal(self, namespace: str, task_id: str) -> str | None:
        """The goal hash first seen under the task."""

    async def outcomes_of(self, decision_id: str) -> Sequence[OutcomeRow]:
        """The outcomes of a decision, in the order in which they were appended."""

    async def known_callers(self, limit: int) -> Sequence[str]:
        """At most `limit` of the callers that ever posted an outcome, by name."""

    async def repeat(self, caller: str, idempotency_key: str) -> RepeatRow | None:
        """What the caller's key stands for."""

    async def forget_repeats(self, before_ms: int) -> int:
        """Forget the keys with created_at < before_ms; how many those were."""

    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        """Sums by hour and group; what is not told apart is 0 or "" in the rows."""


class StoredSnapshot(NamedTuple):
    """The weights as they were at some version.

    Attributes:
        reason: why it was taken.
        body: as the learner wrote it; empty in lists.
        created_at: epoch, milliseconds.
    """

    version: int
    reason: str
    body: bytes
    created_at: int


class WeightStore(Protocol):
    """Where what was learned outlives a restart; differences come through the records."""

    async def load(self) -> tuple[Sequence[WeightRow], Sequence[LearnerRow]]:
        """All evidence, and all else that is learned, by their keys."""

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Keep a snapshot; one of the same version stays as it was."""

    async def drop_snapshots(self, versions: Sequence[int]) -> None:
        """Forget the snapshots of these versions."""

    async def snapshots(self) -> Sequence[StoredSnapshot]:
        """Those that are kept, newest first, without their bodies."""

    async def snapshot(self, version: int | None, before: int, passing_over: str = "") -> StoredSnapshot | None:
        """The snapshot of a version; None means the newest of an earlier version than `before`.

        The latter without those that were taken for the reason `passing_over`.
        """


class TicketStore(Protocol):
    """Where the tickets of the degrade queue are. What a method did is durable once it has returned."""

    async def put(self, row: TicketRow, request: str, max_open: int) -> bool:
        """Store a ticket with its request's JSON text; False where its namespace has `max_open` open ones."""

    async def get(self, ticket: str) -> TicketRow | None:
        """One ticket, in its stored state."""

    async def page(self, wanted: TicketFilter, after: str, limit: int) -> Sequence[TicketRow]:
        """Tickets with an id greater than `after`, in the order of their ids."""

    async def counts(self, wanted: TicketFilter) -> TicketCounts:
        """How many are open, whatever `wanted.state`."""

    async def claim(self, claim: Claim, now_ms: int) -> Sequence[tuple[TicketRow, str]]:
        """Take the oldest waiting tickets, oldest first, with their requests; no two claims get the same."""

    async def settle(self, ticket: str, request: SettleRequest, now_ms: int, max_claims: int) -> TicketRow | None:
        """The ticket after its settlement; None where there is none. Raises ConflictError without the right claim."""

    async def due(self, now_ms: int) -> Sequence[str]:
        """Namespaces in which tickets, or claims on them, have run out."""

    async def expire(self, namespace: str, now_ms: int, max_claims: int, limit: int) -> int:
        """Give at most `limit` such tickets their new state; how many they were."""

    async def forget(self, before_ms: int, limit: int) -> int:
        """Delete at most `limit` tickets that ended before an instant; how many they were."""
