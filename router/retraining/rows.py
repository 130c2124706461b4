"""Rows: what a classifier may be trained on or examined by, each with where it came from."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from intent.examples import OUT_OF_SCOPE
from intent.normalize import match_key

HELD_OUT_FIFTH = 5
"""One of so many texts is held out."""


class Source(StrEnum):
    """Where a row came from; an earlier one outdoes a later one that says otherwise."""

    CARDS = "cards"
    EXAMPLES = "examples"
    CORRECTIONS = "corrections"
    OUTCOMES = "outcomes"


class Row(NamedTuple):
    """A text and what it means.

    Attributes:
        row_id: names it in reports: `review:…`, `decision:…`, `file.jsonl:12`.
        text: normalized.
        intent: `oos` out of scope.
        weight: what it counts in training, above 0, at most 1.
        caller: who is to answer for it: name of the key, else in whose name it was asked; "" the operator.
        read: the intent that was read when it was corrected; None elsewhere.
    """

    row_id: str
    text: str
    intent: str
    source: Source
    weight: float = 1.0
    caller: str = ""
    read: str | None = None

    @property
    def key(self) -> str:
        """What it shares with texts that only differ in case, blanks and marks at the ends."""
        return match_key(self.text)

    @property
    def is_out_of_scope(self) -> bool:
        """Whether it means none of the intents."""
        return self.intent == OUT_OF_SCOPE

    @property
    def is_of_fifth(self) -> bool:
        """Whether its text is one of those that are held out: the same ones in every run, whatever else is known.

        So a model that an earlier run made was not trained on them either, and the two can be compared.
        """
        return sha256(self.key.encode("utf-8", "replace")).digest()[0] % HELD_OUT_FIFTH == 0
