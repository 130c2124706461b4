"""Success heads: fitted on outcomes, kept if they foresee held-out ones better than the table by intent and agent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.fit_success import LEAST_OUTCOMES, Evidence, fit_success
from feedback.success_features import Floats, features_of, vectors_of
from feedback.success_heads import SuccessHeads
from intent.normalize import match_key, normalize
from models.exam_report import SuccessExam
from models.ports import Embedded
from router.retraining.success_caps import counts_of
from router.retraining.success_held_out import HeldOut
from router.retraining.success_rows import SuccessRow, SuccessRows
from router.retraining.success_table import Table

HELD_OUT_THIRD = 3
"""One of so many texts is held out."""

LEAST_TEXTS = 50
"""Distinct texts that an agent needs for a head, beside its outcomes: fewer say nothing of other ones."""

_MOST_NAMED = 3


class Examined(NamedTuple):
    """What came of it.

    Attributes:
        exam: its figures.
        heads: fitted on all rows; None where they are not kept.
    """

    exam: SuccessExam
    heads: SuccessHeads | None


@dataclass(frozen=True, slots=True)
class SuccessPart:
    """The rows of agents that may get a head, and what each counts.

    Attributes:
        rows: of those agents.
        counts: for how much of an outcome each row counts.
        n_outcomes: of all agents, those without head included.
        missing: why no agent gets one; "" where some do.
    """

    rows: tuple[SuccessRow, ...]
    counts: tuple[float, ...]
    n_outcomes: dict[str, int]
    missing: str

    @property
    def texts(self) -> list[str]:
        """Those that have to be embedded, each once: as classifiers read them."""
        return list(dict.fromkeys(normalize(row.text) for row in self.rows))


def part_of(found: SuccessRows) -> SuccessPart:
    """The rows of agents with enough outcomes on enough texts."""
    counts = counts_of(found.rows, found.n_callers)
    totals = _totals(found.rows, counts)
    agents = {agent for agent, total in totals.items() if total.is_enough}
    pairs = [(row, count) for row, count in zip(found.rows, counts, strict=True) if row.agent in agents]
    return SuccessPart(
        tuple(row for row, _ in pairs),
        tuple(count for _, count in pairs),
        {agent: total.n_outcomes for agent, total in totals.items()},
        "" if agents else _missing(totals),
    )


def examined(
    part: SuccessPart, left_out: Mapping[str, int], vectors: Mapping[str, Embedded], *, encoder_id: str, seed: int
) -> Examined:
    """Fit heads, and examine them; blocks for a minute or so.

    The exam's are fitted on two thirds of the texts, those that are kept on all of them.

    Args:
        part: of `part_of`.
        left_out: why rows of the log were not used → how many.
        vectors: of the part's texts.
        encoder_id: of the encoder that made them.
        seed: of what fits leave out, and of landmarks.
    """
    told = SuccessExam(is_kept=False, why=part.missing, n_outcomes=part.n_outcomes, n_left_out=dict(left_out))
    if part.missing:
        return Examined(told, None)
    world = _World(part, vectors)
    told = told.model_copy(update={"n_left_out": dict(sorted((Counter(left_out) + world.left_out).items()))})
    if not world.agents:
        return Examined(told.model_copy(update={"why": "the encoder knows too little of the requests' words"}), None)
    held = _held_out(world, encoder_id, seed)
    half_trust = held.half_trust()
    exam = told.model_copy(update={"half_trust": half_trust, **held.figures()})
    if not exam.is_kept:
        return Examined(exam, None)
    everything = np.ones(len(world.rows), dtype=np.bool_)
    return Examined(exam, replace(_fitted(world, everything, encoder_id, seed), half_trust=half_trust))


class _World:
    """Rows with their features and vectors, one place for each distinct text.

    Rows whose text the encoder hardly knows are left out, and then agents that have too few.
    """

    def __init__(self, part: SuccessPart, vectors: Mapping[str, Embedded]) -> None:
        normal = {text: normalize(text) for text in {row.text for row in part.rows}}
        pairs = [
            (row, count)
            for row, count in zip(part.rows, part.counts, strict=True)
            if vectors[normal[row.text]].is_trusted
        ]
        self.left_out = Counter({"unknown_words": len(part.rows) - len(pairs)})
        totals = _totals([row for row, _ in pairs], [count for _, count in pairs])
        self.agents = [agent for agent, total in totals.items() if total.is_enough]
        pairs = [(row, count) for row, count in pairs if totals[row.agent].is_enough]
        self.rows = [row for row, _ in pairs]
        self.counts = np.array([count for _, count in pairs])
        self.names = np.array([row.agent for row in self.rows])
        self.rewards = np.array([row.reward for row in self.rows])
        self.inverses = np.array([row.inverse for row in self.rows])
        places = {text: place for place, text in enumerate(sorted({row.text for row in self.rows}))}
        self.places = np.array([places[row.text] for row in self.rows], dtype=np.int64)
        keys = [match_key(normal[text]) for text in places]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        self.texts = np.array([numbers[keys[place]] for place in self.places], dtype=np.int64)
        digests = [sha256(key.encode("utf-8", "replace")).digest() for key in keys]
        # the same texts in every run
        self.is_out = np.array([each[1] % HELD_OUT_THIRD == 0 for each in digests], dtype=np.bool_)[self.places]
        self.is_second = np.array([each[2] % 2 == 1 for each in digests], dtype=np.bool_)[self.places]
        self.features = features_of(list(places))
        found = [vectors[normal[text]].vector for text in places]
        self.vectors: Floats = vectors_of(found, len(found[0]) // 4 if found else 0)


def _held_out(world: _World, encoder_id: str, seed: int) -> HeldOut:
    heads = _fitted(world, ~world.is_out, encoder_id, seed)
    trained, held = np.flatnonzero(~world.is_out), np.flatnonzero(world.is_out)
    table = Table.fitted([world.rows[place] for place in trained], world.counts[trained].tolist())
    means = np.array([table.mean(row.agent, row.intents) for row in (world.rows[place] for place in held)])
    used, where = np.unique(world.places[held], return_inverse=True)
    predicted = heads.predict_all(world.features[used], world.vectors[used]).probabilities
    columns = np.searchsorted(np.array(heads.agents), world.names[held])
    return HeldOut(
        table=means,
        heads=predicted[where, columns],
        n_outcomes=heads.n_outcomes[columns],
        rewards=world.rewards[held],
        weights=world.counts[held] * world.inverses[held],
        texts=world.texts[held],
        is_second=world.is_second[held],
    )


def _fitted(world: _World, chosen: NDArray[np.bool_], encoder_id: str, seed: int) -> SuccessHeads:
    evidence = {}
    for agent in world.agents:
        of = np.flatnonzero(chosen & (world.names == agent))
        evidence[agent] = Evidence(world.places[of], world.rewards[of], world.inverses[of], world.counts[of])
    # that there are enough was seen before
    return fit_success(world.features, world.vectors, evidence, encoder_id=encoder_id, seed=seed, least_outcomes=1)


class _Total(NamedTuple):
    """What there is of an agent: outcomes, those that count, and texts."""

    n_rows: int
    n_outcomes: int
    n_texts: int

    @property
    def is_enough(self) -> bool:
        """Whether it may get a head."""
        return self.n_outcomes >= LEAST_OUTCOMES and self.n_texts >= LEAST_TEXTS


def _totals(rows: Sequence[SuccessRow], counts: Sequence[float]) -> dict[str, _Total]:
    """By agent, in the order of their names."""
    n_rows: Counter[str] = Counter()
    totals: dict[str, float] = defaultdict(float)
    texts: dict[str, set[str]] = defaultdict(set)
    for row, count in zip(rows, counts, strict=True):
        n_rows[row.agent] += 1
        totals[row.agent] += count
        texts[row.agent].add(row.text)
    keys = {text: match_key(normalize(text)) for text in set().union(*texts.values())}
    return {
        agent: _Total(n_rows[agent], int(total + 1e-6), len({keys[text] for text in texts[agent]}))
        for agent, total in sorted(totals.items())
    }


def _missing(totals: Mapping[str, _Total]) -> str:
    needed = f"an agent needs {LEAST_OUTCOMES} outcomes that count, on {LEAST_TEXTS} texts"
    if not totals:
        return f"{needed}; the log holds none on a text that was kept"
    most = sorted(totals, key=lambda agent: (-totals[agent].n_outcomes, agent))[:_MOST_NAMED]
    return f"{needed}; " + "; ".join(_told(agent, totals[agent]) for agent in most)


def _told(agent: str, total: _Total) -> str:
    told = f"{agent} has {total.n_rows} on {total.n_texts}"
    if total.n_rows == total.n_outcomes:
        return told
    return f"{told}, of which {total.n_outcomes} count: one caller told most of them"
