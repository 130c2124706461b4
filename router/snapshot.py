"""Snapshot: cards, index and policy as one immutable whole; it is replaced by one assignment, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from intent.entities.properties import Property
from intent.normalize import match_key
from intent.rules import Rules
from models.card import AgentCard, AgentKey, Capability, Risk
from models.policy import NamespacePolicy, Policy
from models.reading import Neighbour
from router.index import Bools, Index, Ints, Mask
from router.standing import Standing, fresh_standing

_MAX_MASKS = 512
_MAX_RISKS = 20_000
_RISKS: tuple[Risk, ...] = ("low", "normal", "high")


@dataclass(frozen=True, slots=True)
class Entry:
    """A capability of an agent, with what routing needs of it worked out once.

    Attributes:
        number: position in the snapshot; the order is that of the keys, never that of registration.
        card: the agent's card, the operator's overrides applied.
        version: the card's version, comparable.
        flaw: why it is not routable; None means it is.
        required: all permissions that are needed, those of the policy included.
        reserved: True if the policy gives the intent to other agents.
        validator: the compiled input schema; None accepts any payload.
        properties: what of an utterance its input schema asks for.
        agent: the card's key.
        fresh: its standing while nothing is known of it.
    """

    number: int
    card: AgentCard
    capability: Capability
    version: Any
    flaw: str | None
    required: frozenset[str]
    reserved: bool
    validator: Any | None
    properties: tuple[Property, ...] = ()
    agent: AgentKey = field(init=False, repr=False, compare=False)
    fresh: Standing = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out what every request would ask for again."""
        object.__setattr__(self, "agent", self.card.key)
        object.__setattr__(self, "fresh", fresh_standing(self.card))


@dataclass(frozen=True, slots=True)
class Texts:
    """Rows of the index, one for each distinct text of an intent, and who has them.

    Attributes:
        rows: with `entries`, the pairs (row, position in the snapshot's `entries`); a row may have several.
        intents: for each row, the position in the snapshot's `intents`.
    """

    rows: Ints
    entries: Ints
    intents: Ints


@dataclass(slots=True)
class Scope:
    """What intake reads over: the routable intents of some namespaces."""

    namespaces: tuple[str, ...]
    snapshot: Snapshot
    mask: Mask
    intents: frozenset[str]

    @property
    def has_routable(self) -> bool:
        """Whether there is anything to read over."""
        return bool(self.intents)

    @property
    def n_rows(self) -> int:
        """Rows that a search looks through."""
        return self.snapshot.index.n_rows

    def exact(self, text: str) -> Sequence[str]:
        """The intents with an example that has the match key of `text` (normalized), in a stable order."""
        found = self.snapshot.exact.get(match_key(text), ())
        return sorted({intent for namespace, intent in found if namespace in self.namespaces})

    def neighbours(self, vector: bytes, n_intents: int) -> Sequence[Neighbour]:
        """The nearest intents, best first."""
        snapshot = self.snapshot
        found = snapshot.index.nearest(_floats(vector), snapshot.texts.intents, self.mask, n_intents)
        return [Neighbour(snapshot.intents[number], similarity) for number, similarity in found]


@dataclass(slots=True)
class Snapshot:
    """All that a decision looks at.

    Attributes:
        cards_generation: rises when cards change; so do the other two for theirs.
        encoder_id: which encoder made the vectors.
        cards: all cards, disabled ones included, ordered by key.
        card_of: the same by their keys.
        digest_of: digests of the cards as they were registered, without the operator's overrides.
        n_dependents: (dependency, namespace) → how many agents name it.
        entries: all capabilities of all cards.
        by_intent: (namespace, intent) → routable entries.
        exact: match key → (namespace, intent) of the routable capabilities that have it as an example.
        digests: of what it was made of, by name, once that is in the archive; empty before.
    """

    cards_generation: int
    index_generation: int
    policy_generation: int
    encoder_id: str
    policy: Policy
    rules: Rules
    cards: tuple[AgentCard, ...]
    entries: tuple[Entry, ...]
    by_intent: Mapping[tuple[str, str], tuple[Entry, ...]]
    exact: Mapping[str, frozenset[tuple[str, str]]]
    intents: tuple[str, ...]
    texts: Texts
    index: Index
    card_of: Mapping[AgentKey, AgentCard]
    digest_of: Mapping[AgentKey, str]
    n_dependents: Mapping[tuple[str, str], int]
    digests: Mapping[str, str] = field(default_factory=dict)
    _scopes: dict[tuple[str, ...], Scope] = field(default_factory=dict)
    _risks: dict[tuple[tuple[str, ...], str], Risk] = field(default_factory=dict)

    def scope(self, namespaces: tuple[str, ...]) -> Scope:
        """What intake reads over in these namespaces, forbidden capabilities included."""
        scope = self._scopes.get(namespaces)
        if scope is None:
            scope = replace(self.scope_of(self.routable_in(namespaces)), namespaces=namespaces)
            # names without a card come from anywhere and are not worth keeping
            if scope.has_routable and len(self._scopes) < _MAX_MASKS:
                self._scopes[namespaces] = scope
        return scope

    def scope_of(self, entries: Sequence[Entry]) -> Scope:
        """What intake reads over if only these capabilities were there."""
        allowed = np.zeros(len(self.entries), dtype=np.bool_)
        allowed[[entry.number for entry in entries]] = True
        intents = frozenset(entry.capability.intent for entry in entries)
        return Scope((), self, self._mask(allowed), intents)

    def routable_in(self, namespaces: tuple[str, ...]) -> list[Entry]:
        """All routable capabilities in these namespaces."""
        return [entry for entry in self.entries if entry.flaw is None and entry.card.namespace in namespaces]

    def routable(self, namespaces: tuple[str, ...], intent: str) -> list[Entry]:
        """The routable capabilities of an intent in these namespaces."""
        return [entry for namespace in namespaces for entry in self.by_intent.get((namespace, intent), ())]

    def risk(self, namespaces: tuple[str, ...], intent: str, holds: NamespacePolicy) -> Risk:
        """Of an intent: what the policy of a namespace says, else the greatest on the cards that serve it."""
        said = holds.intents.get(intent)
        if said is not None and said.risk is not None:
            return said.risk
        known = self._risks.get((namespaces, intent))
        if known is not None:
            return known
        places = [_RISKS.index(entry.capability.risk) for entry in self.routable(namespaces, intent)]
        found = _RISKS[max(places, default=1)]
        if len(self._risks) < _MAX_RISKS:
            self._risks[namespaces, intent] = found
        return found

    def _mask(self, entries: Bools) -> Mask:
        """The rows that one of the allowed entries, one boolean each, has."""
        texts = self.texts
        rows = np.zeros(len(texts.intents), dtype=np.bool_)
        rows[texts.rows[entries[texts.entries]]] = True
        return Mask.of(rows)


def _floats(vector: bytes) -> Any:
    return np.frombuffer(vector, dtype="<f4")
