"""A small shop in two languages, and heads fitted to its cards by the dummy encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intent.dummy_embedder import DummyEmbedder
from intent.fit import Example, fit
from intent.heads import Heads
from models.card import AgentCard
from models.ports import Embedded
from models.reading import Neighbour
from router.classifier import examples_of
from tests.builders import capability, card, snapshot_of

BOTH = card(
    "shop",
    capability("cancel_order", ["please cancel my order", "stop the order I placed", "请取消我的订单"]),
    capability("track_parcel", ["where is my parcel", "has it shipped", "我的包裹在哪里"]),
    capability("refund_status", ["has my refund arrived", "when do I get my money back", "退款到账了吗"]),
)


def examples_on(*cards: AgentCard) -> list[Example]:
    """What classifiers are fitted on."""
    return [Example(*pair) for pair in examples_of(snapshot_of(cards))]


def vectors_on(examples: Sequence[Example]) -> Mapping[str, Embedded]:
    return {example.text: DummyEmbedder().embed(example.text) for example in examples}


def heads_of(*cards: AgentCard) -> Heads:
    examples = examples_on(*cards)
    trusted = {text: each.vector for text, each in vectors_on(examples).items() if each.is_trusted}
    return fit(examples, trusted)


class Source:
    """An `IntentSource` with fixed answers.

    Attributes:
        looked_up: what was asked word for word.
        wanted: how many neighbours were asked for, each time.
    """

    def __init__(
        self,
        neighbours: Sequence[Neighbour] = (),
        exact: Mapping[str, Sequence[str]] | None = None,
        intents: Sequence[str] = (),
        n_rows: int = 100,
    ) -> None:
        self.n_rows = n_rows
        self.looked_up: list[str] = []
        self.wanted: list[int] = []
        self._neighbours = neighbours
        self._exact = exact or {}
        named = {name for names in self._exact.values() for name in names}
        self.intents = frozenset({*intents, *named, *(neighbour.intent for neighbour in neighbours)})

    def exact(self, text: str) -> Sequence[str]:
        self.looked_up.append(text)
        return self._exact.get(text, ())

    def neighbours(self, vector: bytes, n_intents: int) -> Sequence[Neighbour]:
        self.wanted.append(n_intents)
        return self._neighbours[:n_intents]
