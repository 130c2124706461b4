"""Multi-labelled texts: those that mean several intents at once, as examples."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from intent.normalize import has_words, normalize


class MultiExample(NamedTuple):
    """A text and the intents it means, at least two, in no order."""

    text: str
    intents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Multi:
    """What is known of texts that mean several intents; without `examples` nothing is made of the rest.

    Attributes:
        examples: to fit on.
        held_out: beside them, to fit confidences on.
        none: those of the out-of-scope texts that may be fitted on: they show what means nothing.
    """

    examples: tuple[MultiExample, ...] = ()
    held_out: tuple[MultiExample, ...] = ()
    none: tuple[str, ...] = ()

    @property
    def intents(self) -> frozenset[str]:
        """All that the examples mean."""
        return frozenset(intent for example in self.examples for intent in example.intents)

    def normalized(self) -> Multi:
        """The same with normalized texts, each once; those without a letter or digit are left out."""
        none = dict.fromkeys(text for text in map(normalize, self.none) if has_words(text))
        return Multi(distinct_multi(self.examples), distinct_multi(self.held_out), tuple(none))


NO_MULTI = Multi()


def distinct_multi(examples: Iterable[MultiExample]) -> tuple[MultiExample, ...]:
    """The examples normalized, each text once with all that is said of it."""
    meant: dict[str, dict[str, None]] = {}
    for text, intents in examples:
        normal = normalize(text)
        if has_words(normal):
            meant.setdefault(normal, {}).update(dict.fromkeys(intents))
    return tuple(MultiExample(text, tuple(intents)) for text, intents in meant.items())


def limited(examples: Iterable[MultiExample], intents: Collection[str]) -> tuple[MultiExample, ...]:
    """The examples as if they meant none but these intents; those that mean none of them are left out."""
    found = (MultiExample(text, tuple(intent for intent in meant if intent in intents)) for text, meant in examples)
    return tuple(example for example in found if example.intents)
