"""Fitting: from examples to heads. Needs scikit-learn; run it in a process of its own (see `intent.fitter`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from intent.fit_classifiers import NO_WEIGHTS, Example, Weights, fit_classifiers
from intent.fit_multi import fit_multi
from intent.fit_relevance import with_relevance
from intent.fit_stages import LEAST_HELD_OUT, HeldOut, Judged, judge, read_held_out, with_stages
from intent.heads import Heads
from intent.multi import NO_MULTI, Multi, limited

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
    """One part held out.

    Attributes:
        multi: the rest's, and what is held out of it.
        none: texts that mean nothing, held out.
    """

    held_out: list[Example]
    rest: list[Example]
    unknown: list[str]
    multi: Multi = NO_MULTI
    none: list[str] = []


def fit(
    examples: Sequence[Example],
    vectors: Mapping[str, bytes],
    *,
    held_out: Sequence[Example] = (),
    out_of_scope: Sequence[str] = (),
    seed: int = 0,
    multi: Multi = NO_MULTI,
) -> Heads:
    """Fit both classifiers and their confidences.

    Args:
        examples: of at least two intents.
        vectors: text → vector, for all texts whose vector is to be trusted.
        held_out: labelled texts that are not among the examples, to fit the confidences on; none means
            cross-validation, with some intents withheld in each fold as out of scope.
        out_of_scope: texts that mean none of the intents.
        seed: of folds and clusters.
        multi: texts that mean several intents; its `none` are among the `out_of_scope`.

    Raises:
        ValueError: the examples have fewer than two intents.
    """
    return fit_and_judge(examples, vectors, held_out=held_out, out_of_scope=out_of_scope, seed=seed, multi=multi).heads


def fit_and_judge(
    examples: Sequence[Example],
    vectors: Mapping[str, bytes],
    *,
    held_out: Sequence[Example] = (),
    out_of_scope: Sequence[str] = (),
    seed: int = 0,
    multi: Multi = NO_MULTI,
    weights: Weights = NO_WEIGHTS,
) -> Fitted:
    """As `fit`, with the held-out readings that the confidences were fitted on.

    Examples that count for less than 1 are fitted on, but confidences are not: they were chosen for being easy to read.
    """
    n_intents = len({example.intent for example in examples} | multi.intents)
    if n_intents < 2:
        raise ValueError(f"classifiers need at least 2 intents, the examples have {n_intents}")
    is_multi = bool(multi.examples)
    if not is_multi:
        multi = Multi(held_out=multi.held_out)
    heads = _classified(examples, multi if is_multi else None, vectors, seed, weights)
    readings: list[HeldOut] = []
    taught = frozenset(multi.none)
    never_taught = [text for text in out_of_scope if text not in taught]
    if held_out or multi.held_out:
        texts = [*held_out, *_nothing(never_taught)]
        readings = read_held_out(heads, texts, vectors, limited(multi.held_out, heads.known))
    elif len(examples) + len(multi.examples) >= LEAST_HELD_OUT:
        for fold in _folds(examples, seed, multi, weights):
            partial = _classified(fold.rest, fold.multi if is_multi else None, vectors, seed, weights)
            texts = [*fold.held_out, *_nothing((*fold.unknown, *never_taught, *fold.none))]
            readings += read_held_out(partial, texts, vectors, fold.multi.held_out)
    heads, set_f1 = with_relevance(heads, readings)
    heads = with_stages(heads, readings, has_out_of_scope=bool(out_of_scope))
    return Fitted(heads, replace(judge(heads, readings), set_f1=set_f1) if readings else None)


def _classified(
    examples: Sequence[Example], multi: Multi | None, vectors: Mapping[str, bytes], seed: int, weights: Weights
) -> Heads:
    if multi is None:
        return fit_classifiers(examples, vectors, seed, weights)
    return fit_multi(examples, multi, vectors, seed, weights)


def _nothing(texts: Iterable[str]) -> list[tuple[str, str | None]]:
    return [(text, None) for text in texts]


def _folds(
    examples: Sequence[Example], seed: int, multi: Multi = NO_MULTI, weights: Weights = NO_WEIGHTS
) -> Iterator[_Fold]:
    """Each with its part of the examples held out, and its part of the intents unknown.

    No intents are withheld where most texts mean several: too few would be left that mean none of them. Examples that
    count for less than 1 are never held out.
    """
    random = np.random.default_rng(seed)
    labels = sorted({example.intent for example in examples} | multi.intents)
    n_texts = len(examples) + len(multi.examples)
    n_folds = _FEW_FOLDS if n_texts < _MANY else _MANY_FOLDS
    of_row = (random.permutation(len(examples)) % n_folds).tolist()
    of_label = dict(zip(labels, (random.permutation(len(labels)) % n_folds).tolist(), strict=True))
    of_multi = (random.permutation(len(multi.examples)) % n_folds).tolist()
    of_none = (random.permutation(len(multi.none)) % n_folds).tolist()
    may_withhold = len(labels) >= 2 * n_folds and 2 * len(multi.examples) < n_texts
    for fold in range(n_folds):
        withheld = {label for label in labels if of_label[label] == fold} if may_withhold else set()
        part = [e for e, f in zip(examples, of_row, strict=True) if f == fold and weights.get(e, 1.0) >= 1.0]
        out = frozenset(part)
        rest = [e for e in examples if e not in out and e.intent not in withheld]
        taught = [e for e, f in zip(multi.examples, of_multi, strict=True) if f != fold]
        several = [example for example in taught if withheld.isdisjoint(example.intents)]
        known = {example.intent for example in rest} | {intent for example in several for intent in example.intents}
        if len(known) < 2:
            continue
        part_of_multi = [e for e, f in zip(multi.examples, of_multi, strict=True) if f == fold]
        yield _Fold(
            [example for example in part if example.intent in known],
            rest,
            [example.text for example in part if example.intent in withheld],
            Multi(
                tuple(several),
                limited(part_of_multi, known),
                tuple(text for text, f in zip(multi.none, of_none, strict=True) if f != fold),
            ),
            [text for text, f in zip(multi.none, of_none, strict=True) if f == fold],
        )
