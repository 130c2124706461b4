"""Fitting on held-out readings how probable it is that a text means a label, and from when on it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from intent.exam import micro_f1
from intent.fit_stages import LEAST_HELD_OUT, HeldOut, rising_logistic
from intent.heads import Heads

LEAST, MOST = 0.2, 0.6
"""Between these the probability from which on a label counts is looked for."""

_STEP = 0.01


def with_relevance(heads: Heads, readings: Sequence[HeldOut]) -> tuple[Heads, float | None]:
    """(the heads with the probabilities fitted, micro F1 over all labels of all readings).

    The threshold is that of the best micro F1; with too few readings the shipped figures stay.
    """
    scored = [reading.relevance for reading in readings if reading.relevance is not None]
    if heads.relevance is None or len(scored) < LEAST_HELD_OUT:
        return heads, None
    scores = np.concatenate([each for each, _ in scored])
    is_meant = np.concatenate([meant for _, meant in scored])
    if not is_meant.any():
        return heads, None
    confidence = rising_logistic(scores[:, None].astype(np.float64), is_meant, np.ones(len(scores)))
    relevance = replace(heads.relevance, confidence=confidence)
    probabilities = relevance.probabilities(scores)
    levels = np.arange(LEAST, MOST + _STEP / 2, _STEP)
    read = [probabilities >= level for level in levels]
    found = [micro_f1(int((each & is_meant).sum()), int(each.sum()), int(is_meant.sum())) for each in read]
    best = int(np.argmax(found))
    return replace(heads, relevance=replace(relevance, least=float(levels[best]))), found[best]
