"""Fitting: from examples to heads. Needs scikit-learn; run it in a process of its own (see `intent.fitter`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from intent.fit_classifiers import Example, fit_classifiers
from intent.fit_stages import LEAST_HELD_OUT, HeldOut, Judged, judge, read_held_out, with_stages
from intent.heads import Heads

__all__ = ["Example", "Fitted", "fit", "fit_and_judge"]

_FEW_FOLDS, _MANY_FOLDS = 4, 3
_MANY = 5000
"""From so many examples on, fewer folds do."""


class Fitted(NamedTuple):
    """Heads and what held-out readings say of them.

    Attributes:
        judged: None where nothing was held out.
    """

    heads: Heads
    judged: Judged | None


class _Fold(NamedTuple):
    held_out: list[Example]
    rest: list[Example]
    unknown: list[str]


def fit(
    examples: Sequence[Example],
    vectors: Mapping[str, bytes],
    *,
    held_out: Sequence[Example] = (),
    out_of_scope: Sequence[str] = (),
    seed: int = 0,
) -> Heads:
    """Fit both classifiers and their confidences.

    Args:
        examples: of at least two intents.
        vectors: text → vector, for all texts whose vector is to be trusted.
        held_out: labelled texts that are not among the examples, to fit the confidences on; none means
            cross-validation, with some intents withheld in each fold as out of scope.
        out_of_scope: texts that mean none of the intents.
        seed: of folds and clusters.

    Raises:
        ValueError: the examples have fewer than two intents.
    """
    return fit_and_judge(examples, vectors, held_out=held_out, out_of_scope=out_of_scope, seed=seed).heads


def fit_and_judge(
    examples: Sequence[Example],
    vectors: Mapping[str, bytes],
    *,
    held_out: Sequence[Example] = (),
    out_of_scope: Sequence[str] = (),
    seed: int = 0,
) -> Fitted:
    """As `fit`, with the held-out readings that the confidences were fitted on."""
    n_intents = len({example.intent for example in examples})
    if n_intents < 2:
        raise ValueError(f"classifiers need at least 2 intents, the examples have {n_intents}")
    heads = fit_classifiers(examples, vectors, seed)
    readings: list[HeldOut] = []
    if held_out:
        readings = read_held_out(heads, [*held_out, *((text, None) for text in out_of_scope)], vectors)
    elif len(examples) >= LEAST_HELD_OUT:
        for fold in _folds(examples, seed):
            partial = fit_classifiers(fold.rest, vectors, seed)
            texts = [*fold.held_out, *((text, None) for text in (*fold.unknown, *out_of_scope))]
            readings += read_held_out(partial, texts, vectors)
    heads = with_stages(heads, readings, has_out_of_scope=bool(out_of_scope))
    return Fitted(heads, judge(heads, readings) if readings else None)


def _folds(examples: Sequence[Example], seed: int) -> Iterator[_Fold]:
    """Each with its part of the examples held out, and its part of the intents unknown."""
    random = np.random.default_rng(seed)
    labels = sorted({example.intent for example in examples})
    n_folds = _FEW_FOLDS if len(examples) < _MANY else _MANY_FOLDS
    of_row = (random.permutation(len(examples)) % n_folds).tolist()
    of_label = dict(zip(labels, (random.permutation(len(labels)) % n_folds).tolist(), strict=True))
    for fold in range(n_folds):
        withheld = {label for label in labels if of_label[label] == fold} if len(labels) >= 2 * n_folds else set()
        rest = [e for e, f in zip(examples, of_row, strict=True) if f != fold and e.intent not in withheld]
        known = {example.intent for example in rest}
        if len(known) < 2:
            continue
        part = [e for e, f in zip(examples, of_row, strict=True) if f == fold]
        yield _Fold(
            [example for example in part if example.intent in known],
            rest,
            [example.text for example in part if example.intent in withheld],
        )
