"""Report: the exam's figures and verdict, out of how both models read the rows of a plan."""

from __future__ import annotations

from typing import Any

from intent.model_folder import Manifest
from models.exam_report import Change, ExamReport, OosSource, SuccessExam
from router.retraining.exam import (
    Readings,
    answered_of,
    confusions_of,
    ece_of,
    golden_score,
    oos_auroc_of,
    overconfidence_of,
    score_of,
    scores_by_intent,
)
from router.retraining.plan import Plan
from router.retraining.verdict import Figures, refusals_of


def report_of(
    plan: Plan,
    readings: Readings,
    manifest: Manifest,
    *,
    base_digest: str | None,
    allow_golden_loss: bool,
    loses_sets: bool,
    success: SuccessExam,
) -> ExamReport:
    """The exam of a model.

    Args:
        plan: what it was trained on.
        readings: of the plan's held-out rows, then of its pinned ones.
        manifest: the new model's.
        base_digest: of the model before; None for one that was fitted on the cards alone.
        allow_golden_loss: whether pinned rows may be lost.
        loses_sets: whether the model before read several intents in one text and the new one does not.
        success: of the heads that foresee how agents do.
    """
    n = len(plan.held_out)
    held_out, golden = readings.part(slice(n)), readings.part(slice(n, None))
    auroc, measured_on = _oos(readings, manifest.metrics)
    score, by_intent, golden_rows = score_of(held_out), scores_by_intent(held_out), golden_score(golden)
    figures = Figures(auroc, overconfidence_of(readings), answered_of(readings))
    refusals = refusals_of(
        golden_rows,
        score,
        by_intent,
        figures,
        n_out_of_scope=sum(row.is_out_of_scope for row in readings.rows),
        allow_golden_loss=allow_golden_loss,
        loses_sets=loses_sets,
    )
    return ExamReport(
        model_digest=manifest.digest,
        base_digest=base_digest,
        made_at=plan.made_at,
        n_examples=plan.n_examples,
        n_left_out=plan.left_out,
        n_held_out=plan.n_held_out,
        golden=golden_rows,
        held_out=score,
        by_intent=by_intent,
        confusions=confusions_of(held_out),
        oos_auroc=auroc,
        oos_measured_on=measured_on,
        ece=ece_of(readings),
        overconfidence=figures.overconfidence,
        answered=figures.answered,
        success=success,
        passes=not refusals,
        refusals=refusals,
    )


def _oos(readings: Readings, metrics: dict[str, Any]) -> tuple[Change | None, OosSource | None]:
    """By labelled rows, else by the intents that cross-validation withheld."""
    measured = oos_auroc_of(readings)
    if measured is not None:
        return measured, "held_out"
    withheld = metrics.get("oos_auroc")
    return (None, None) if withheld is None else (Change(after=withheld), "withheld_intents")
