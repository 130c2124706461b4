"""Plan: what is trained on and what is examined by, out of all rows; a pure function of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from intent.examples import OUT_OF_SCOPE
from intent.fit_classifiers import Example
from intent.label_text import label_text
from intent.multi import MultiExample
from intent.normalize import match_key, normalize
from router.retraining.caps import capped_corrections, capped_outcomes, newest_of_callers
from router.retraining.rows import Row, Source

ALWAYS_TRAINED = 20
"""So many corrections, those that were accepted first, are all trained on; of later ones a fifth of the texts is held
out."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is about.

    Attributes:
        made_at: when its rows were gathered (epoch, milliseconds).
        cards: texts of cards, all trained on.
        more: other rows that are trained on; those out of scope are for the confidences.
        held_out: rows that nothing is trained on.
        golden: pinned rows; their texts are trained on where they stand on a card, and nowhere else.
        multi: texts that mean several intents, trained on.
        left_out: why rows of the log were not used → how many.
        data: name of each source → sha256 of what was read.
    """

    made_at: int
    cards: tuple[Row, ...] = ()
    more: tuple[Row, ...] = ()
    held_out: tuple[Row, ...] = ()
    golden: tuple[Row, ...] = ()
    multi: tuple[MultiExample, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)

    @property
    def examples(self) -> list[Example]:
        """All that the new classifiers are fitted on, in scope."""
        rows = (*self.cards, *self.more)
        return [Example(row.text, row.intent) for row in rows if not row.is_out_of_scope]

    @property
    def weights(self) -> dict[Example, float]:
        """What they count, where that is not 1."""
        return {Example(row.text, row.intent): row.weight for row in self.more if row.weight != 1.0}

    @property
    def out_of_scope(self) -> list[str]:
        """Texts that mean none of the intents, for the confidences."""
        return [row.text for row in self.more if row.is_out_of_scope]

    @property
    def n_examples(self) -> dict[str, int]:
        """Source → texts trained on, with `out_of_scope` as one more."""
        counts = Counter(
            "out_of_scope" if row.is_out_of_scope else str(row.source) for row in (*self.cards, *self.more)
        )
        if self.multi:
            counts[str(Source.EXAMPLES)] += len(self.multi)
        return dict(sorted(counts.items()))

    @property
    def n_held_out(self) -> dict[str, int]:
        """Source → rows held out, with `out_of_scope` as one more."""
        counts = Counter("out_of_scope" if row.is_out_of_scope else str(row.source) for row in self.held_out)
        return dict(sorted(counts.items()))

    def texts(self) -> list[str]:
        """All texts that have to be embedded, each once."""
        rows = (*self.cards, *self.more, *self.held_out, *self.golden)
        intents = {row.intent for row in (*self.cards, *self.more)} | {i for each in self.multi for i in each.intents}
        named = (label_text(intent) for intent in sorted(intents - {OUT_OF_SCOPE}))
        found = [*(row.text for row in rows), *(each.text for each in self.multi), *(text for text in named if text)]
        return list(dict.fromkeys(found))

    def to_json(self) -> dict[str, Any]:
        """As JSON knows it."""
        rows = {name: [list(row) for row in getattr(self, name)] for name in _ROWS}
        return {**rows, "made_at": self.made_at, "multi": self.multi, "left_out": self.left_out, "data": self.data}

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> Self:
        """The plan that `to_json` told."""
        rows = {name: tuple(_row(each) for each in found[name]) for name in _ROWS}
        multi = tuple(MultiExample(text, tuple(intents)) for text, intents in found["multi"])
        return cls(found["made_at"], **rows, multi=multi, left_out=found["left_out"], data=found["data"])


_ROWS = ("cards", "more", "held_out", "golden")


def _row(values: Sequence[Any]) -> Row:
    row = Row._make(values)
    return row._replace(source=Source(row.source))


def planned(
    cards: Sequence[Row],
    examples: Sequence[Row],
    corrections: Sequence[Row],
    outcomes: Sequence[Row],
    golden: Sequence[Row],
    *,
    made_at: int,
    multi: Sequence[MultiExample] = (),
    left_out: Counter[str] | None = None,
    data: dict[str, str] | None = None,
) -> Plan:
    """What is to be trained on and examined by.

    Of texts that come twice the earlier source counts: cards, then examples, corrections, outcomes. No text of the
    golden set is trained on unless it stands on a card, none that is held out is trained on at all.

    Args:
        cards: rows of all enabled cards.
        examples: rows of example files.
        corrections: accepted ones, in the order in which they were accepted.
        outcomes: weak positives.
        golden: pinned rows.
        made_at: now (epoch, milliseconds).
        multi: texts of example files that mean several intents.
        left_out: why rows were not used so far → how many.
        data: name of each source → sha256 of what was read.
    """
    counts = Counter(left_out or {})
    pinned = {row.key for row in golden}
    said = {(row.key, row.intent) for row in cards}
    on_cards = {key for key, _ in said}
    given = _new(examples, lambda row: (row.key, row.intent) in said, pinned, counts)
    known = _known([*cards, *given])
    counted, n_not = newest_of_callers(corrections)
    counts["over_cap"] += n_not
    taken = {row.key for row in given}
    fixed = _new(counted, lambda row: row.key in taken or (row.key, row.intent) in said, pinned, counts)
    never_out = on_cards | {row.key for row in counted[:ALWAYS_TRAINED]}
    taken |= on_cards | {row.key for row in fixed}
    likely = _new(outcomes, lambda row: row.key in taken, pinned, counts)
    held_out = [row for row in (*given, *fixed, *likely) if row.is_of_fifth and row.key not in never_out]
    out = {row.key for row in held_out}
    given, fixed, likely = ([row for row in rows if row.key not in out] for rows in (given, fixed, likely))
    return Plan(
        made_at,
        tuple(cards),
        (*given, *capped_corrections(fixed, known), *capped_outcomes(likely, known)),
        tuple(held_out),
        tuple(golden),
        tuple(each for each in multi if match_key(normalize(each.text)) not in pinned | out),
        dict(sorted((+counts).items())),
        data or {},
    )


def _new(rows: Iterable[Row], is_taken: Callable[[Row], bool], pinned: set[str], counts: Counter[str]) -> list[Row]:
    """The rows that are neither taken nor pinned, each text once."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.key in pinned:
            counts["golden"] += 1
        elif row.key in found or is_taken(row):
            counts["repeated"] += 1
        else:
            found[row.key] = row
    return list(found.values())


def _known(rows: Iterable[Row]) -> dict[str, float]:
    """Intent → texts of the operator's own, the name of the intent being one more."""
    counts: Counter[str] = Counter(row.intent for row in rows)
    return {intent: n + (label_text(intent) is not None) for intent, n in counts.items()}
