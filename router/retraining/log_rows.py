"""Rows out of the log: which decisions and corrections may teach a classifier, and why the others may not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from intent.examples import OUT_OF_SCOPE
from intent.normalize import has_words, normalize
from intent.vector_cache import Progress, silent
from models.decision import Action, Reason
from models.outcome import Outcome, OutcomeStatus
from router.retraining.kept import Kept
from router.retraining.rows import Row, Source
from router.stores.training_log import START, AcceptedCorrection, SettledDecision, SqlTrainingLog

LEAST_CONFIDENCE = 0.9
"""With less the reading of a decision is no label for its text, however well the agent did."""

LEAST_QUALITY = 0.8
"""A success whose quality was judged lower says nothing for the intent."""

WEAK_WEIGHT = 0.25
"""What a text counts whose only witness is that the agent did well: a fourth of an example on a card."""

MOST_INVERSE = 4.0
"""Clip of the inverse propensity: a choice that was made with a probability below a fourth counts as one with that."""

MOST_CHARS = 2000
"""Longer texts are documents rather than wishes."""

_PAGE = 500
_DIGEST = re.compile("sha256:[0-9a-f]{64}$")
_MASK = re.compile(r"\[[a-z_]{2,20}\]")
"""What stands for an entity that retention has masked."""


class LogRows(NamedTuple):
    """What a log teaches.

    Attributes:
        corrections: in the order in which they were accepted.
        outcomes: weak positives, capped by caller and intent.
        left_out: why others were left out → how many.
        n_read: decisions and corrections that were looked at.
    """

    corrections: list[Row]
    outcomes: list[Row]
    left_out: Counter[str]
    n_read: int


async def read_log(
    log: SqlTrainingLog,
    intents: Collection[str],
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> LogRows:
    """Read a store page by page; what is held at a time does not grow with it.

    Args:
        log: of the store.
        intents: those that may be learned.
        seed: of the choice among the rows of one caller and intent, where there are too many.
        progress: told of the decisions read.

    Raises:
        StoreError: it cannot be read.
    """
    left_out: Counter[str] = Counter()
    corrections: list[Row] = []
    n_read = 0
    after = START
    while page := await log.accepted(after, _PAGE):
        for correction in page:
            _take(correction_of(correction, intents), corrections.append, left_out)
        after, n_read = page[-1].cursor, n_read + len(page)
    n_decisions = await log.n_decisions()
    kept, n_settled, after = Kept(seed), 0, START
    while settled := await log.settled(after, _PAGE):
        for decision in settled:
            _take(_read(decision, intents), kept.offer, left_out)
        after, n_settled = settled[-1].cursor, n_settled + len(settled)
        progress(n_settled, max(n_decisions, n_settled))
    rows = kept.rows()
    left_out.update(kept.left_out)
    left_out["over_cap"] += kept.n_held - len(rows)
    return LogRows(corrections, rows, +left_out, n_read + n_settled)


def _take(found: Row | str, keep: Callable[[Row], None], left_out: Counter[str]) -> None:
    if isinstance(found, str):
        left_out[found] += 1
    else:
        keep(found)


def _read(decision: SettledDecision, intents: Collection[str]) -> Row | str:
    try:
        return positive_of(decision, intents)
    except (ValueError, TypeError, LookupError, AttributeError):
        return "unreadable"  # a record may be of any release, or erased


def correction_of(correction: AcceptedCorrection, intents: Collection[str]) -> Row | str:
    """The row of an accepted correction, or why there is none; a masked text counts as it was shown and accepted."""
    problem = _text_problem(correction.text, may_be_masked=True)
    if problem is not None:
        return problem
    if correction.correct_intent not in intents and correction.correct_intent != OUT_OF_SCOPE:
        return "intent_unknown"
    return Row(
        f"review:{correction.review_id}",
        normalize(correction.text or ""),
        correction.correct_intent,
        Source.CORRECTIONS,
        caller=correction.caller or correction.asker,
        read=correction.intent,
    )


def positive_of(decision: SettledDecision, intents: Collection[str]) -> Row | str:
    """The row of a decision whose agent did well, or why there is none.

    Its weight is `WEAK_WEIGHT` by the inverse propensity of the choice, clipped at `MOST_INVERSE` (Horvitz and Thompson
    1952; clipped as in Ionides 2008): whether a text comes here hangs on the agent that was drawn for it.
    """
    request, answer = json.loads(decision.request), json.loads(decision.answer)
    text = request.get("utterance")
    problem = _outcome_problem(decision) or _reading_problem(request, answer) or _text_problem(text)
    if problem is not None:
        return problem
    if decision.intent not in intents:
        return "intent_unknown"
    return Row(
        f"decision:{decision.decision_id}",
        normalize(text),
        decision.intent,
        Source.OUTCOMES,
        WEAK_WEIGHT * min(1 / max(answer.get("propensity") or 1.0, 1e-9), MOST_INVERSE),
        decision.caller or decision.asker,
    )


def _outcome_problem(decision: SettledDecision) -> str | None:
    outcome = Outcome.model_validate_json(decision.outcome)
    if decision.charged != "agent":
        return "charged_to_others"
    if outcome.status is not OutcomeStatus.SUCCEEDED:
        return "not_succeeded"
    if outcome.correct_intent not in (None, decision.intent):
        return "corrected"
    if outcome.quality is not None and outcome.quality < LEAST_QUALITY:
        return "low_quality"
    return None


def _reading_problem(request: dict[str, Any], answer: dict[str, Any]) -> str | None:
    reading, target = answer.get("intent") or {}, answer.get("target") or {}
    if answer["action"] != Action.INVOKE or request.get("caller_choice"):
        return "not_routed"
    if reading.get("source") == "caller":
        return "intent_of_caller"  # it may have named any, whatever the text says
    if answer["reason"] == Reason.STICKY_SESSION or answer.get("parts") or target.get("intent") != reading.get("name"):
        return "not_of_this_text"
    return None if reading["confidence"] >= LEAST_CONFIDENCE else "not_sure"


def _text_problem(text: str | None, *, may_be_masked: bool = False) -> str | None:
    if text is None or _DIGEST.match(text) or not has_words(normalize(text)):
        return "no_text"
    if not may_be_masked and _MASK.search(text):
        return "masked"
    return "too_long" if len(text) > MOST_CHARS else None
