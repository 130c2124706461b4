"""A fleet of three agents, candidates that read well or badly, and traffic as a store has it after weeks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from feedback.promote import Limits
from intent.dummy_embedder import DummyEmbedder
from intent.fit import Example, fit
from intent.heads import Heads
from intent.model_folder import Origin, read_manifest, save_heads
from models.card import AgentCard
from models.events import DecisionRow, OutcomeRow, ReviewRow, Row, ShadowRow
from models.exam_report import EXAM_FILE, ExamReport, Score
from models.ports import Embedder
from models.settings import Settings
from router.promotion_steps import Steps
from router.running import Parts, running
from tests.builders import START_MS, capability, card
from tests.intent.fitted import examples_on

ENCODER = DummyEmbedder().encoder_id
_ROOMY = {"max_inflight": 1000}
CARDS = (
    card("canceller", capability("cancel_order", ["please cancel my order", "stop the order I placed"]), **_ROOMY),
    card("tracker", capability("track_parcel", ["where is my parcel", "has it shipped"]), **_ROOMY),
    card("refunder", capability("refund_status", ["has my refund arrived", "when do I get my money back"]), **_ROOMY),
)
SAID = {
    "cancel_order": "cancel the order I placed please",
    "track_parcel": "where is the parcel of mine, has it been shipped",
    "refund_status": "when does the refund of my money arrive",
}
"""A sentence for each intent that stands on no card."""

_WRONG = {"cancel_order": "track_parcel", "track_parcel": "refund_status", "refund_status": "cancel_order"}
_AGENTS = [["default", each.agent_id, each.version] for each in CARDS]


def good_heads() -> Heads:
    """They read as the cards mean it."""
    return fitted(DummyEmbedder(), is_good=True)


def bad_heads() -> Heads:
    """They take every intent for another one."""
    return fitted(DummyEmbedder(), is_good=False)


def fitted(encoder: Embedder, *, is_good: bool) -> Heads:
    """Heads for the three intents; bad ones take every intent for another one."""
    examples = [
        Example(f"{text}{more}", intent if is_good else _WRONG[intent])
        for text, intent, *_ in examples_on(*CARDS)
        for more in ("", " now", " today", " again")
    ]
    vectors = {text: encoder.embed(text) for text, *_ in examples}
    return fit(examples, {text: each.vector for text, each in vectors.items() if each.is_trusted})


def model_folder(
    folder: Path,
    heads: Heads,
    *,
    encoder_id: str | None = ENCODER,
    refusals: Sequence[str] = (),
    success: bytes | None = None,
) -> Path:
    """A model folder with its exam, as `retrain` writes it; with success heads, where they are given."""
    save_heads(heads, folder, Origin(encoder_id=encoder_id, made_by="retrain"), success=success)
    report = ExamReport(
        model_digest=read_manifest(folder).digest,
        made_at=1,
        held_out=Score(n=100, right_before=90, right_after=95),
        passes=not refusals,
        refusals=tuple(refusals),
    )
    (folder / EXAM_FILE).write_text(report.model_dump_json(), encoding="utf-8")
    return folder


@asynccontextmanager
async def promoting(
    folder: Path, limits: Limits, cards: Sequence[AgentCard] = CARDS, **fields: Any
) -> AsyncIterator[Parts]:
    """A service over these agents, without classifiers of its own, that has these limits."""
    file = folder / "cards.json"
    file.write_text(json.dumps({"agents": [each.model_dump(mode="json") for each in cards]}))
    store = f"sqlite:///{folder}/store.db"
    settings = Settings(store=store, classifier=False, cards=(file,), watch=False, **fields)
    async with running(settings, embedder=DummyEmbedder()) as parts:
        await parts["readiness"].ready.wait()
        parts["promotion"].follower.limits = limits
        yield parts


def steps_of(parts: Parts) -> Steps:
    """The steps that `promote` and `rollback` take beside a service, by its limits."""
    rewards, promotion = parts["registry"].snapshot.policy.learning.reward, parts["promotion"]
    limits = promotion.follower.limits
    return Steps(parts["store"].promotions, promotion.models, ENCODER, rewards, parts["clock"], "me", limits)


def decided(name: str, promotion_id: int | None = None, caller: str = "") -> DecisionRow:
    """The record of a decision on an utterance; `caller` is the key that asked."""
    inputs: dict[str, Any] = {"encoder_id": ENCODER, "promotion_id": promotion_id}
    return DecisionRow(
        decision_id=name,
        trace_id="t",
        caller=caller,
        namespace="default",
        action="invoke",
        reason="selected",
        intent="track_parcel",
        agent_id="tracker",
        request=json.dumps({"utterance": "where is it"}),
        answer=json.dumps({"plan": [{"timeout_ms": 2000}]}),
        inputs=json.dumps(inputs),
        happened_at=int(START_MS),
    )


def told(name: str, succeeded: bool, meant: str | None = None) -> OutcomeRow:
    """What came of it, and which intent was meant, where that is told too."""
    body = {"decision_id": name, "status": "succeeded" if succeeded else "failed"}
    if meant is not None:
        body["correct_intent"] = meant
    return OutcomeRow(name, 1, None, "", json.dumps(body), "agent", int(START_MS))


def corrected(name: str, meant: str = "refund_status", caller: str = "") -> ReviewRow:
    """The correction of a reading, which waits; its id is that of the decision with an `r-` before it."""
    return ReviewRow(f"r-{name}", name, caller, "default", "where is it", "track_parcel", meant, int(START_MS))


def traffic(
    name: str, n: int, mean: float, promotion_id: int | None = None, seed: int = 1, caller: str = ""
) -> list[Row]:
    """Decisions and their outcomes, of which the share `mean` succeeded; `caller` is the key that asked."""
    rows: list[Row] = []
    for number, succeeded in enumerate(np.random.default_rng(seed).random(n) < mean):
        key = f"{name}-{number:05d}"
        rows += [decided(key, promotion_id, caller), told(key, bool(succeeded))]
    return rows


def shadowed(
    promotion_id: int,
    n: int,
    *,
    other: float = 0.04,
    worth_of_other: float = 0.1,
    mean: float = 0.75,
    tried: float = 0.0,
    worth_of_tried: float | None = None,
    seed: int = 2,
) -> list[Row]:
    """Decisions that a candidate has read too.

    Args:
        promotion_id: of the candidate.
        n: how many.
        other: share of those that it reads as another intent.
        worth_of_other: success rate of what was decided there.
        mean: success rate of the rest.
        tried: probability with which exploration took the candidate's choice where it reads another one.
        worth_of_tried: success rate of what was so tried; None where it is that of the rest.
        seed: of the draws.
    """
    rng, rows = np.random.default_rng(seed), list[Row]()
    for number in range(n):
        key, is_other = f"shadow-{promotion_id}-{number:05d}", bool(rng.random() < other)
        is_tried = is_other and bool(rng.random() < tried)
        of_tried = mean if worth_of_tried is None else worth_of_tried
        rate = of_tried if is_tried else worth_of_other if is_other else mean
        succeeded = bool(rng.random() < rate)
        options = [[*_AGENTS[1], 1.0 - tried if is_other else 1.0, 0.0 if is_other else 1.0]]
        if is_other:
            options.append([*_AGENTS[2], tried, 1.0])
        body = {
            "intent": "refund_status" if is_other else "track_parcel",
            "logged_intent": "track_parcel",
            "certainty": "sure",
            "declared": [0.5] * len(options),
            "is_same": not is_other,
            "chosen": int(is_tried),
            "options": options,
        }
        rows += [decided(key), ShadowRow(key, promotion_id, json.dumps(body), int(START_MS)), told(key, succeeded)]
    return rows
