"""Logs of outcomes in which agents differ by how hard requests are, or by what they are about alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from intent.dummy_embedder import DummyEmbedder
from models.events import Row
from models.exam_report import SuccessExam
from router.retraining.success import Examined, SuccessPart, examined, part_of
from router.retraining.success_rows import SuccessRow, SuccessRows
from tests.router.retraining.world import settled

WEAK, STRONG = "default/weak/1.0.0", "default/strong/1.0.0"
_ABOUT = ("parcel", "invoice", "chair", "hotel", "flight", "order", "account", "garden")
_MEANT = ("track", "pay", "cancel", "book")
_OF_INTENT = {WEAK: (0.2, 0.5, 0.7, 0.9), STRONG: (0.9, 0.6, 0.8, 0.5)}
N_CALLERS = 20

EASY = "please look after my garden number {}"
HARD = "if x = {} and 3 gardens are not 7%, how many gardens remain?"


def by_wording(n: int, seed: int = 0) -> list[SuccessRow]:
    """Of one intent; the weak agent fails on what is hard, and that shows in the wording alone."""
    draw, rows = np.random.default_rng(seed), []
    for number in range(n):
        is_hard, about = draw.random() < 0.5, _ABOUT[draw.integers(len(_ABOUT))]
        text = (HARD if is_hard else EASY).replace("garden", about).format(number)
        for agent, chance in ((WEAK, 0.2 if is_hard else 0.9), (STRONG, 0.9)):
            rows.append(row(agent, text, "ask", float(draw.random() < chance), f"c{number % N_CALLERS}"))
    return rows


def by_intent(n: int, seed: int = 0) -> list[SuccessRow]:
    """Of four intents that say all there is to say, whatever the wording."""
    draw, rows = np.random.default_rng(seed), []
    for number in range(n):
        meant, about = draw.integers(len(_MEANT)), _ABOUT[draw.integers(len(_ABOUT))]
        text = f"{_MEANT[meant]} my {about} number {number}" + (
            ", how many are not due?" if draw.random() < 0.5 else ""
        )
        for agent, chances in _OF_INTENT.items():
            reward = float(draw.random() < chances[meant])
            rows.append(row(agent, text, _MEANT[meant], reward, f"c{number % N_CALLERS}"))
    return rows


def row(agent: str, text: str, intent: str, reward: float, caller: str, inverse: float = 1.0) -> SuccessRow:
    """One outcome."""
    return SuccessRow(agent, text, ((intent, 0.95),), reward, inverse, caller)


def part(rows: Sequence[SuccessRow], n_callers: int = N_CALLERS) -> SuccessPart:
    """What may be fitted on."""
    return part_of(SuccessRows(tuple(rows), n_callers))


def exam_of(rows: Sequence[SuccessRow], n_callers: int = N_CALLERS) -> SuccessExam:
    """The exam alone."""
    return fitted(rows, n_callers).exam


def fitted(rows: Sequence[SuccessRow], n_callers: int = N_CALLERS) -> Examined:
    """Exam and heads."""
    found, embedder = part(rows, n_callers), DummyEmbedder()
    vectors = {text: embedder.embed(text) for text in found.texts}
    return examined(found, {}, vectors, encoder_id=embedder.encoder_id, seed=0)


def logged(n: int, seed: int = 0, **more: Any) -> Iterator[Row]:
    """Decisions of a store for the agents `shop` and `travel`, by turns; the first fails on what is hard."""
    draw = np.random.default_rng(seed)
    for number in range(n):
        is_hard, agent = draw.random() < 0.5, ("shop", "travel")[number % 2]
        chance = 0.1 if is_hard and agent == "shop" else 0.95
        target = {"namespace": "default", "agent_id": agent, "version": "1.0.0", "intent": "track_parcel"}
        yield from settled(
            f"o{number:05}",
            (HARD if is_hard else EASY).format(number),
            "track_parcel",
            caller=f"c{number % N_CALLERS}",
            status="succeeded" if draw.random() < chance else "failed",
            answer={"target": target, "plan": [{"target": target, "timeout_ms": 1000}]},
            **more,
        )
