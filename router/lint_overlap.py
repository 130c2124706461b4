"""Capabilities that say the same: equal texts under two intents, utterances nearer to another one than to their own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intent.language import may_be_in
from intent.normalize import match_key, normalize
from models.card import AgentCard
from models.ports import Embedded
from router.finding import Finding, Severity

Embed = Callable[[str], Embedded]
"""`Embedder.embed`, or something that remembers what it answered."""

MIN_SIMILARITY = 0.55
"""Two utterances less alike than this are not taken for the same wish, however far their own intents are."""

MARGIN = 0.02
"""How much nearer the other intent must be."""

WARN_SHARE = 0.3
"""From this share of the examples of an intent (or of both) on, at least two, an overlap is a warning, else an info."""

_MAX_SHOWN = 10
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class _Text:
    """A distinct text of an intent; `shown` as it was first written."""

    intent: str
    shown: str
    is_example: bool


def duplicates(cards: Sequence[AgentCard]) -> Iterator[Finding]:
    """Texts that stand under two intents of a namespace; examples and descriptions alike.

    Args:
        cards: of any namespaces; disabled ones are passed over.
    """
    for namespace, texts in _texts(cards).items():
        intents_of: dict[str, dict[str, str]] = defaultdict(dict)
        for (intent, key), text in texts.items():
            intents_of[key][intent] = text.shown
        shared: dict[tuple[str, str], list[str]] = defaultdict(list)
        for shown_by_intent in intents_of.values():
            names = sorted(shown_by_intent)
            for number, first in enumerate(names):
                for second in names[number + 1 :]:
                    shared[first, second].append(shown_by_intent[first])
        for (first, second), utterances in shared.items():
            yield Finding(
                code="duplicate_capability",
                severity=Severity.ERROR,
                where=namespace,
                message=f"the same text stands under '{first}' and '{second}', so they cannot be told apart by it",
                intent=first,
                utterances=tuple(sorted(utterances)[:_MAX_SHOWN]),
            )


def overlaps(cards: Sequence[AgentCard], embed: Embed, languages: frozenset[str] | None = None) -> Iterator[Finding]:
    """Pairs of intents of a namespace whose utterances are nearer to the other intent than to their own.

    An utterance's own intent is measured without itself; each utterance is followed by its intent in brackets.

    Args:
        cards: of any namespaces; disabled ones are passed over.
        embed: gives unit vectors.
        languages: what the encoder was made for; utterances in others say nothing. None means all.
    """
    for namespace, texts in _texts(cards).items():
        rows = list(texts.values())
        embedded = [embed(normalize(text.shown)) for text in rows]
        known = [
            number
            for number, (text, each) in enumerate(zip(rows, embedded, strict=True))
            if each.is_trusted and may_be_in(normalize(text.shown), languages)
        ]
        if not known:
            continue
        vectors = np.stack([np.frombuffer(embedded[number].vector, dtype="<f4") for number in known])
        placed = [rows[number] for number in known]
        n_examples = Counter(text.intent for text in placed if text.is_example)
        pairs: dict[tuple[str, str], list[_Text]] = defaultdict(list)
        for text, other in _strays(placed, vectors):
            pairs[min(text.intent, other), max(text.intent, other)].append(text)
        for pair, strays in pairs.items():
            yield _overlap(namespace, pair, strays, n_examples)


def _overlap(namespace: str, pair: tuple[str, str], strays: Sequence[_Text], n_examples: Mapping[str, int]) -> Finding:
    first, second = pair
    n_strays = Counter(text.intent for text in strays)
    n_both = n_examples[first] + n_examples[second]
    is_grave = len(strays) >= max(2, WARN_SHARE * n_both) or any(
        count >= max(2, WARN_SHARE * n_examples[intent]) for intent, count in n_strays.items()
    )
    return Finding(
        code="overlapping_capabilities",
        severity=Severity.WARNING if is_grave else Severity.INFO,
        where=namespace,
        message=f"'{first}' and '{second}' overlap: {len(strays)} of their {n_both} examples are "
        "nearer to the other intent than to their own",
        intent=first,
        utterances=tuple(sorted(f"{text.shown} [{text.intent}]" for text in strays)[:_MAX_SHOWN]),
    )


def _texts(cards: Sequence[AgentCard]) -> Mapping[str, dict[tuple[str, str], _Text]]:
    """By namespace the distinct texts, by intent and match key, in a stable order."""
    texts: dict[str, dict[tuple[str, str], _Text]] = defaultdict(dict)
    for card in sorted(cards, key=lambda card: card.key):
        for capability in card.capabilities if card.enabled else ():
            written = [(example, True) for example in capability.examples] + [(capability.description, False)]
            for shown, is_example in written:
                key = match_key(normalize(shown))
                if key:
                    texts[card.namespace].setdefault(
                        (capability.intent, key), _Text(capability.intent, shown, is_example)
                    )
    return texts


def _strays(texts: Sequence[_Text], vectors: NDArray[np.float32]) -> Iterator[tuple[_Text, str]]:
    """The examples that are nearer to another intent, with that intent."""
    names = sorted({text.intent for text in texts})
    numbers = {name: number for number, name in enumerate(names)}
    labels = np.array([numbers[text.intent] for text in texts])
    if len(names) < 2:
        return
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(len(names)))
    for begin in range(0, len(texts), _ROWS_AT_ONCE):
        block = np.arange(begin, min(begin + _ROWS_AT_ONCE, len(texts)))
        similarity = vectors[block] @ vectors.T
        similarity[np.arange(len(block)), block] = -1.0
        nearest = np.maximum.reduceat(similarity[:, order], starts, axis=1)
        own = nearest[np.arange(len(block)), labels[block]].copy()
        nearest[np.arange(len(block)), labels[block]] = -1.0
        best = nearest.argmax(axis=1)
        strays = (nearest.max(axis=1) > np.maximum(own + MARGIN, MIN_SIMILARITY)).nonzero()[0]
        for row in strays:
            if texts[block[row]].is_example:
                yield texts[block[row]], names[best[row]]
