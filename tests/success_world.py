"""Two agents that are equal on an intent: one does hard requests too and is dear, one is cheap and does easy ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from feedback.fit_success import Evidence, fit_success
from feedback.success_features import features_of, vectors_of
from feedback.success_heads import SuccessHeads
from models.ports import Embedder
from tests.builders import capability, card

DEAR, CHEAP = "default/dear/1.0.0", "default/cheap/1.0.0"
N_OUTCOMES = 3000
"""Of each head: it counts for three quarters."""

FLEET = tuple(
    card(
        name,
        capability("track_parcel", ["where is my parcel", "has it shipped"], quality=0.7, cost_level=level),
        max_inflight=1000,
    )
    for name, level in (("dear", 5), ("cheap", 1))
)
_TIMES = ("today", "yesterday", "this week", "last week", "by now", "in the evening", "on Monday", "on Friday")
_PLACES = ("at home", "in Berlin", "in the depot", "at customs", "with the neighbours", "on the way", "in the shop")


def easy(seed: int) -> str:
    """A request that both agents do well."""
    draw = np.random.default_rng(seed)
    return f"where is my parcel {draw.choice(_TIMES)}, {draw.choice(_PLACES)}?"


def hard(seed: int) -> str:
    """A request that the cheap agent mostly fails on: one with figures and conditions."""
    draw = np.random.default_rng(seed)
    a, b, c = draw.integers(10, 99, size=3)
    return (
        f"where is my parcel {draw.choice(_TIMES)}, if {a} of {b} + {c} boxes were not sent {draw.choice(_PLACES)},"
        f" unless {c} - 3 = {b} of them must not be counted (each of 4)?"
    )


def success_heads(embedder: Embedder, agents: Sequence[str] = (DEAR, CHEAP), n: int = 600) -> SuccessHeads:
    """Heads that know both kinds of request."""
    texts = [(hard if place % 2 else easy)(place) for place in range(n)]
    luck, is_hard = np.random.default_rng(5).random(n), np.arange(n) % 2 == 1
    rates = {DEAR: np.full(n, 0.9), CHEAP: np.where(is_hard, 0.15, 0.9)}
    evidence = {agent: Evidence(np.arange(n), (luck < rates.get(agent, rates[DEAR])).astype(float)) for agent in agents}
    vectors = vectors_of([embedder.embed(text).vector for text in texts], embedder.dim)
    heads = fit_success(
        features_of(texts), vectors, evidence, encoder_id=embedder.encoder_id, seed=1, strengths=(0.01,)
    )
    return replace(heads, n_outcomes=np.full(len(agents), N_OUTCOMES))
