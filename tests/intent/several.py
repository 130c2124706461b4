"""Sentences of which many mean several intents, made from templates, and heads fitted on them."""

from __future__ import annotations

from itertools import product

import numpy as np

from intent.fit_classifiers import Example
from intent.multi import Multi, MultiExample
from tests.intent.labelled import OUTSIDE, vectors_of

SUBJECTS = {"parcel": "parcel", "invoice": "invoice", "account": "account", "ticket": "ticket"}
ACTS = {"cancel": "cancel", "send": "send", "check": "check"}
WHENS = {"urgent": "right away", "later": "next week", "": ""}
OPENINGS = ("please", "could you", "I want to", "hey", "now", "we need to", "can somebody")


def rows() -> list[tuple[str, frozenset[str]]]:
    """(text, all it means) in a mixed, fixed order; up to three intents, and none."""
    found = [
        (" ".join(filter(None, (opening, act, "the", subject, when))), frozenset(filter(None, (a, s, w))))
        for opening, (a, act), (s, subject), (w, when) in product(
            OPENINGS, ACTS.items(), SUBJECTS.items(), WHENS.items()
        )
    ]
    found += [(f"{opening} {word} it", frozenset((a,))) for opening, (a, word) in product(OPENINGS, ACTS.items())]
    found += [
        (f"{opening} look, the {word}", frozenset((s,))) for opening, (s, word) in product(OPENINGS, SUBJECTS.items())
    ]
    found += [(f"{text} {number}", frozenset()) for text, number in product(OUTSIDE, ("today", "once", "again", "too"))]
    return [found[place] for place in np.random.default_rng(7).permutation(len(found)).tolist()]


ROWS = rows()
VECTORS = vectors_of(text for text, _ in ROWS)


def single(some: list[tuple[str, frozenset[str]]]) -> list[Example]:
    """Those of one intent."""
    return [Example(text, *meant) for text, meant in some if len(meant) == 1]


def nothing(some: list[tuple[str, frozenset[str]]]) -> list[str]:
    """Those of none."""
    return [text for text, meant in some if not meant]


def multi(some: list[tuple[str, frozenset[str]]]) -> Multi:
    """Those of several, with those of none to learn from."""
    several = tuple(MultiExample(text, tuple(sorted(meant))) for text, meant in some if len(meant) > 1)
    return Multi(several, none=tuple(nothing(some)))
