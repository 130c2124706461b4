"""Assemble a snapshot from cards, policy and vectors. Pure and synchronous: run it off the event loop."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from intent.entities.properties import Property, properties_of
from intent.normalize import match_key, normalize
from intent.rules import Rules
from models.card import AgentCard, Capability, JsonSchema
from models.policy import IntentPolicy, Policy
from models.ports import Embedded
from router.card_digest import card_digest
from router.index import Index
from router.schemas import compile_schema, resolve
from router.snapshot import Entry, Snapshot, Texts
from router.versions import order, parse


@dataclass(frozen=True, slots=True)
class Generations:
    """Counters of what a snapshot is made of."""

    cards: int
    index: int
    policy: int


def texts_of(cards: Iterable[AgentCard]) -> list[str]:
    """The distinct normalized texts of all capabilities, in a stable order: what has to be embedded."""
    return sorted({text for card in cards for capability in card.capabilities for text in capability_texts(capability)})


def assemble(
    cards: Sequence[AgentCard],
    policy: Policy,
    vectors: Mapping[str, Embedded],
    encoder_id: str,
    dim: int,
    generations: Generations,
) -> Snapshot:
    """A snapshot of these cards under this policy.

    Args:
        cards: at most one of each key, in any order.
        policy: the whole policy.
        vectors: normalized text → vector, for at least `texts_of(cards)`.
        encoder_id: the encoder of all `vectors`.
        dim: values in a vector.
        generations: counters to put on it.
    """
    ordered = sorted((_overridden(card, policy) for card in cards), key=_card_order)
    entries = _entries(ordered, policy)
    routable = [entry for entry in entries if entry.flaw is None]
    by_intent: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    exact: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for entry in routable:
        where = (entry.card.namespace, entry.capability.intent)
        by_intent[where].append(entry)
        for example in entry.capability.examples:
            exact[match_key(normalize(example))].add(where)
    intents = tuple(sorted({entry.capability.intent for entry in routable}))
    texts, index = _index(routable, intents, vectors, dim)
    return Snapshot(
        cards_generation=generations.cards,
        index_generation=generations.index,
        policy_generation=generations.policy,
        encoder_id=encoder_id,
        policy=policy,
        rules=Rules(policy.rules),
        cards=tuple(ordered),
        entries=tuple(entries),
        by_intent={where: tuple(found) for where, found in by_intent.items()},
        exact={key: frozenset(found) for key, found in exact.items() if key},
        intents=intents,
        texts=texts,
        index=index,
        card_of={card.key: card for card in ordered},
        digest_of={card.key: card_digest(card) for card in cards},
        n_dependents=_count_dependents(ordered),
    )


def _count_dependents(cards: Sequence[AgentCard]) -> Counter[tuple[str, str]]:
    """Agents by (dependency, namespace); all versions of an agent are one."""
    named = {(name, card.namespace, card.agent_id) for card in cards for name in card.depends_on}
    return Counter((name, namespace) for name, namespace, _ in named)


def capability_texts(capability: Capability) -> list[str]:
    """The distinct normalized examples and the description of a capability."""
    texts = [normalize(text) for text in (*capability.examples, capability.description)]
    return [text for text in dict.fromkeys(texts) if text]


def _card_order(card: AgentCard) -> tuple[Any, ...]:
    return (card.namespace, card.agent_id, order(card.version))


def _overridden(card: AgentCard, policy: Policy) -> AgentCard:
    override = policy.agents.get(card.agent_id)
    changes = override.model_dump(exclude_none=True) if override is not None else {}
    return card.model_copy(update=changes) if changes else card


def _entries(cards: Sequence[AgentCard], policy: Policy) -> list[Entry]:
    entries: list[Entry] = []
    for card in cards:
        rules = policy.of(card.namespace)
        for capability in sorted(card.capabilities, key=lambda capability: capability.intent):
            intent = rules.intents.get(capability.intent, IntentPolicy())
            flaw = _flaw(card, capability, rules.require_schemas)
            entries.append(
                Entry(
                    number=len(entries),
                    card=card,
                    capability=capability,
                    version=parse(card.version),
                    flaw=flaw,
                    required=frozenset((*capability.required_permissions, *intent.required_permissions)),
                    reserved=intent.agents is not None and card.agent_id not in intent.agents,
                    validator=None if flaw else _validator(capability.input_schema),
                    properties=() if flaw else _properties(capability),
                )
            )
    return entries


def _flaw(card: AgentCard, capability: Capability, require_schemas: str) -> str | None:
    if not card.enabled:
        return "agent_disabled"
    if require_schemas != "none" and capability.input_schema is None:
        return "input_schema_missing"
    if require_schemas == "both" and capability.output_schema is None:
        return "output_schema_missing"
    return None


def _properties(capability: Capability) -> tuple[Property, ...]:
    schema = capability.input_schema
    if schema is None:
        return ()
    return _properties_of(schema if isinstance(schema, str) else json.dumps(schema), json.dumps(capability.entities))


@lru_cache(maxsize=8192)
def _properties_of(schema: str, hints: str) -> tuple[Property, ...]:
    named: str | dict[str, Any] = json.loads(schema) if schema.startswith("{") else schema
    return tuple(properties_of(resolve(named), json.loads(hints)))


def _validator(schema: JsonSchema | None) -> Any | None:
    return None if schema is None else _compiled(schema if isinstance(schema, str) else json.dumps(schema))


@lru_cache(maxsize=8192)
def _compiled(text: str) -> Any:
    return compile_schema(json.loads(text) if text.startswith("{") else text)


def _index(
    routable: Sequence[Entry], intents: Sequence[str], vectors: Mapping[str, Embedded], dim: int
) -> tuple[Texts, Index]:
    number_of = {intent: number for number, intent in enumerate(intents)}
    row_of: dict[tuple[str, str], int] = {}
    owned: list[tuple[int, int]] = []
    for entry in routable:
        for text in capability_texts(entry.capability):
            if vectors[text].is_trusted:
                # the same text on another version or agent is no further evidence for the intent: it shares the row
                row = row_of.setdefault((entry.capability.intent, text), len(row_of))
                owned.append((row, entry.number))
    matrix = np.frombuffer(b"".join(vectors[text].vector for _, text in row_of), dtype="<f4")
    rows, entries = np.array(owned, dtype=np.int64).reshape(-1, 2).T
    owners = np.array([number_of[intent] for intent, _ in row_of], dtype=np.int64)
    return Texts(rows, entries, owners), Index(matrix.reshape(len(row_of), dim))
