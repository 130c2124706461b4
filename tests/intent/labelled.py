"""Labelled sentences made from templates, enough of them to fit confidences on, and their vectors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from intent.dummy_embedder import DummyEmbedder
from intent.fit_classifiers import Example

THINGS = ("parcel", "invoice", "account", "printer", "ticket", "holiday", "laptop", "contract")
OPENINGS = ("please", "could you", "I want to", "hey", "can somebody", "now", "today", "we need to")
VERBS = ("check", "cancel", "send", "renew")
ENDINGS = ("", "for me", "right away")


def sentences(things: Iterable[str] = THINGS) -> list[Example]:
    """Texts of four intents a thing, in a mixed, fixed order."""
    rows = [
        Example(" ".join(filter(None, (opening, verb, "the", thing, ending))), f"{verb}_{thing}")
        for opening, verb, thing, ending in product(OPENINGS, VERBS, things, ENDINGS)
    ]
    return [rows[place] for place in np.random.default_rng(5).permutation(len(rows)).tolist()]


def vectors_of(texts: Iterable[str]) -> dict[str, bytes]:
    """Text → vector of the dummy encoder, as far as they are to be trusted."""
    embedder = DummyEmbedder()
    embedded = {text: embedder.embed(text) for text in texts}
    return {text: each.vector for text, each in embedded.items() if each.is_trusted}


OUTSIDE = tuple(f"{who} {what}" for who in ("birds", "my uncle", "this river") for what in ("sings well", "was old"))


def riddles() -> list[Example]:
    """Texts of three intents a thing that two words tell together and neither alone: no linear classifier can."""
    colours, shapes, ends = ("red", "green", "blue"), ("round", "square", "long"), ("", "for me", "today")
    rows = [
        Example(" ".join(filter(None, (opening, colour, thing, "that is", shape, end))), f"{thing}_{(i + j) % 3}")
        for thing, opening, end in product(THINGS[:4], OPENINGS[:4], ends)
        for (i, colour), (j, shape) in product(enumerate(colours), enumerate(shapes))
    ]
    return [rows[place] for place in np.random.default_rng(5).permutation(len(rows)).tolist()]
