"""Typical phrases: what the texts of a cluster say that the texts of the others do not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log

MAX_PHRASES = 3
_MAX_CHARS = 240
_MAX_WORDS = 3
_MAX_IDEOGRAPHS = 4
_MIN_TEXTS = 2
_MIN_SHARE = 0.15
_LIFT = 2
_IDEOGRAPH = "\u2e80-\u2eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+(?:['’-][^\W_{_IDEOGRAPH}]+)*")
_IS_IDEOGRAPH = re.compile(f"[{_IDEOGRAPH}]")


def typical_phrases(clusters: Sequence[Sequence[str]], rest: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Phrases of each cluster, the most typical first, at most `MAX_PHRASES`, none within another.

    A phrase of a cluster c weighs tf(x, c) * log(1 + A / f(x)) (class-based TF-IDF; Grootendorst, 2022, eq. 3), where
    tf is the share of the cluster's texts that have it, f the number of all texts that have it, and A the mean number
    of phrases in a cluster. It consists of one to three words, or of two to four characters where words are not
    divided, and neither begins nor ends with a word that says nothing. It stands in at least two of the cluster's texts
    and in 15 % of them, twice as often as in others. Only letters and digits are in it, whatever else is in the texts.

    Args:
        clusters: their texts, repetitions included; the first 240 characters of each count.
        rest: texts of no cluster.

    >>> typical_phrases([["pick up my parcel locker", "the parcel locker is full"], ["my card is lost"] * 2])
    [('parcel locker',), ('card is lost',)]
    """
    counts = [_counts(texts) for texts in clusters]
    all_counts = sum([*counts, _counts(rest)], Counter[str]())
    mean = sum(sum(count.values()) for count in counts) / max(1, len(counts))
    n_all = sum(map(len, clusters)) + len(rest)
    return [_best(count, all_counts, mean, len(texts), n_all) for count, texts in zip(counts, clusters, strict=True)]


def _counts(texts: Sequence[str]) -> Counter[str]:
    """By phrase, how many of the texts have it."""
    counts: Counter[str] = Counter()
    for text, n in Counter(text[:_MAX_CHARS].lower() for text in texts).items():
        for phrase in set(_phrases(text)):
            counts[phrase] += n
    return counts


def _best(counts: Counter[str], all_counts: Counter[str], mean: float, n_texts: int, n_all: int) -> tuple[str, ...]:
    least = max(_MIN_TEXTS, _MIN_SHARE * n_texts)
    scores = {
        phrase: n / n_texts * log(1 + mean / all_counts[phrase])
        for phrase, n in counts.items()
        if n >= least and n * (n_all - n_texts) >= _LIFT * (all_counts[phrase] - n) * n_texts
    }
    chosen: list[str] = []
    # of equal ones the longer says more
    for phrase in sorted(scores, key=lambda phrase: (-scores[phrase], -len(phrase), phrase)):
        words = set(_TOKEN.findall(phrase))
        if not any(words & set(_TOKEN.findall(other)) for other in chosen):
            chosen.append(phrase)
        if len(chosen) == MAX_PHRASES:
            break
    return tuple(chosen)


def _phrases(text: str) -> Iterator[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    tokens = _TOKEN.findall(text)
    is_ideographic = [_IS_IDEOGRAPH.match(token) is not None for token in tokens]
    for start in range(len(tokens)):
        undivided = is_ideographic[start]
        for size in range(1, (_MAX_IDEOGRAPHS if undivided else _MAX_WORDS) + 1):
            words = tokens[start : start + size]
            if len(words) < size or is_ideographic[start + size - 1] is not undivided:
                break
            if undivided:
                if size > 1:
                    yield "".join(words)
            elif not {words[0], words[-1]} & ENGLISH_STOP_WORDS and any(len(word) > 1 for word in words):
                yield " ".join(words)
