"""A small company's store: four intents on two cards, and what callers asked and told, row by row."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intent.dummy_embedder import DummyEmbedder
from models.events import DecisionRow, OutcomeRow, Row
from models.ports import Embedded
from router.retraining.job import Job
from router.retraining.run import Run
from router.stores.open import open_store
from router.stores.sqlite import sqlite_file
from tests.builders import START_MS, FakeClock, capability, card

NOW_MS = int(START_MS)

TEXTS = {
    "track_parcel": (
        "where is my parcel",
        "has the parcel left the warehouse",
        "when does the parcel arrive",
        "track the delivery of my lamp",
        "the delivery is late",
        "is the delivery coming today",
    ),
    "cancel_order": (
        "please cancel my order",
        "cancel the order of the sofa",
        "stop the order, I changed my mind",
        "I do not want the order any more",
        "call off what I bought",
        "take back my purchase of the chairs",
    ),
    "get_invoice": (
        "send me the invoice",
        "I need an invoice for the desk",
        "where do I find the bill",
        "a copy of the bill, please",
        "the receipt for my payment",
        "email me the receipt",
    ),
    "book_hotel": (
        "book a hotel in Lyon",
        "I need a hotel near the fair",
        "a room for two nights",
        "reserve a room with breakfast",
        "find me a bed in Berlin",
        "where can I stay in Rome",
    ),
}

CARDS = (
    card("shop", *(capability(intent, TEXTS[intent]) for intent in ("track_parcel", "cancel_order", "get_invoice"))),
    card("travel", capability("book_hotel", TEXTS["book_hotel"])),
)


def settled(
    decision_id: str,
    text: str | None,
    intent: str,
    *,
    caller: str = "web",
    key: str = "",
    confidence: float = 0.97,
    source: str = "semantic",
    propensity: float | None = 1.0,
    reason: str = "selected",
    action: str = "invoke",
    status: str = "succeeded",
    charged: str = "agent",
    request: dict[str, Any] | None = None,
    answer: dict[str, Any] | None = None,
    **outcome: Any,
) -> list[Row]:
    """A decision and the outcome of its first attempt."""
    asked = {"utterance": text, "caller": {"agent_id": caller}, **(request or {})}
    answered = {
        "action": action,
        "reason": reason,
        "intent": {"name": intent, "confidence": confidence, "source": source, "alternatives": []},
        "target": {"agent_id": "shop", "intent": intent},
        "propensity": propensity,
        "parts": [],
        **(answer or {}),
    }
    body = {"decision_id": decision_id, "status": status, **outcome}
    made = DecisionRow(
        decision_id=decision_id,
        trace_id=f"t-{decision_id}",
        caller=key,
        namespace="default",
        action=action,
        reason=reason,
        intent=intent,
        agent_id="shop",
        request=json.dumps(asked),
        answer=json.dumps(answered),
        inputs="{}",
        happened_at=NOW_MS - 1000,
        asker=caller,
    )
    return [made, OutcomeRow(decision_id, 1, None, caller, json.dumps(body), charged, NOW_MS - 500)]


@dataclass(frozen=True)
class Correction:
    """One row of the table of reviews."""

    review_id: str
    text: str | None
    correct_intent: str
    intent: str | None = None
    caller: str = "web"
    state: str = "accepted"
    decided_at: int = NOW_MS - 100
    decision_id: str = ""


def make_store(
    folder: Path, rows: Iterable[Row] = (), corrections: Sequence[Correction] = (), cards: Iterable[Any] = CARDS
) -> str:
    """The URL of a new store."""
    url = f"sqlite:///{folder / 'store.db'}"

    async def fill() -> None:
        async with open_store(url) as store:
            for each in cards:
                await store.cards.put_card(each)
            await store.records.append(list(rows))

    asyncio.run(fill())
    add_corrections(url, corrections)
    return url


def add_corrections(url: str, corrections: Sequence[Correction]) -> None:
    """Put them straight into the table, as if they had been decided."""
    with closing(sqlite3.connect(sqlite_file(url))) as connection, connection:
        connection.executemany(
            "INSERT INTO reviews (review_id, decision_id, caller, namespace, text, intent, correct_intent, created_at,"
            " state, decided_at, decided_by) VALUES (?, ?, ?, 'default', ?, ?, ?, ?, ?, ?, 'boss')",
            [
                (
                    each.review_id,
                    each.decision_id or f"of-{each.review_id}",
                    each.caller,
                    each.text,
                    each.intent,
                    each.correct_intent,
                    NOW_MS - 200,
                    each.state,
                    None if each.state == "waiting" else each.decided_at,
                )
                for each in corrections
            ],
        )


def lines(path: Path, rows: Iterable[tuple[str, str]]) -> Path:
    """A file of labelled texts."""
    path.write_text("".join(json.dumps({"text": t, "intent": i}) + "\n" for t, i in rows), encoding="utf-8")
    return path


@dataclass
class CountingEmbedder(DummyEmbedder):
    """Counts the texts that it embeds."""

    texts: list[str] = field(default_factory=list)

    def embed(self, text: str) -> Embedded:
        self.texts.append(text)
        return super().embed(text)


def retrain(url: str, out: Path, **more: Any) -> Run:
    """A run that is through."""
    run = Run(Job(url, out, **more), DummyEmbedder(), FakeClock(START_MS))
    run.run()
    return run
