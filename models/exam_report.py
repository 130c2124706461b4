"""ExamReport: what a retrained model is worth beside the one before; `retrain` writes it, `promote` reads it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from models.answer import Answer
from models.contract import Contract

EXAM_FILE = "exam.json"
"""Its name in the model's folder."""

Count = Annotated[int, Field(ge=0)]
OosSource = Literal["held_out", "withheld_intents"]
"""What stood for texts out of scope: labelled ones, or texts of intents that were withheld in cross-validation."""


class Change(Answer):
    """A figure of the model before, and of the new one; None where that one has none."""

    before: float | None = None
    after: float | None = None


class Score(Answer):
    """Rows that each of the two models got right, of the same `n`."""

    n: Count = 0
    right_before: Count = 0
    right_after: Count = 0


class GoldenScore(Score):
    """The pinned rows.

    One is right where it is read as meant and may be in scope, or is read as out of scope where that is what it is.

    Attributes:
        lost: ids of those that only the model before got right.
        gained: ids of those that only the new one gets right.
    """

    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()


class Confusion(Answer):
    """Held-out rows that mean one intent and are read as another by one of the two models only.

    Attributes:
        n: how many.
        examples: ids of some of them, never their texts.
    """

    meant: str
    read: str
    n: Annotated[int, Field(ge=1)]
    examples: tuple[str, ...] = ()


class Confusions(Answer):
    """What the new model confuses and the one before did not, and the reverse; most frequent first."""

    gained: tuple[Confusion, ...] = ()
    lost: tuple[Confusion, ...] = ()


class SuccessExam(Answer):
    """What heads that foresee success by wording and embedding are worth beside the table by intent and agent.

    Attributes:
        is_kept: whether the folder holds them.
        why: why, or why not.
        n_outcomes: agent ("namespace/agent_id/version") → its outcomes that count, a caller's cap taken off.
        n_left_out: why outcomes of the log were not used → how many.
        n_held_out: requests that nothing was fitted on for the exam.
        half_trust: outcomes of an agent from which on its head counts for half beside the posterior; None where there
            was no exam, or in one of before it was chosen.
        log_loss: on those, mean of an outcome; `before` is that of the table, `after` that of heads and table blended,
            each half of the requests by the half-trust that the other half chose.
        gain: by how much it is lower.
        standard_error: of the gain, requests being drawn anew.
        ece: expected calibration error of the same two.
    """

    is_kept: bool
    why: str
    n_outcomes: dict[str, Count] = {}
    n_left_out: dict[str, Count] = {}
    n_held_out: Count = 0
    half_trust: Annotated[int, Field(ge=1)] | None = None
    log_loss: Change | None = None
    gain: float | None = None
    standard_error: float | None = None
    ece: Change | None = None


class ExamReport(Contract):
    """The exam of a retrained model.

    Attributes:
        model_digest: of the folder it was written beside (`Manifest.digest`); that of any other folder is void.
        base_digest: of the model it was compared with; None for one that was fitted on the cards alone.
        made_at: epoch, milliseconds.
        n_examples: source (`cards`, `examples`, `corrections`, `outcomes`, `out_of_scope`) → texts trained on.
        n_left_out: why rows of the log were not trained on → how many.
        n_held_out: source → rows that nothing was trained on and both models were examined by.
        held_out: all of them in scope; it and `by_intent` ask for the right intent, whatever the confidence.
        by_intent: the same by the intent that is meant.
        oos_auroc: out-of-scope AUROC; None where there was nothing to measure it on.
        oos_measured_on: what it was measured on; by `withheld_intents` the figure of the model before is not known.
        ece: expected calibration error over all held-out and pinned rows.
        overconfidence: the part of it by which confidences promise too much.
        answered: share of the same rows in scope that are read right, and surely enough to be acted on.
        success: of heads that foresee how agents do; None in exams of before they were made. Refuses nothing: heads
            that do not pass are left out.
        passes: whether the new one may be promoted.
        refusals: why not, one sentence each.
    """

    model_config = ConfigDict(extra="forbid", strict=False, frozen=True)

    format: Literal[1] = 1
    model_digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    base_digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    made_at: Count
    n_examples: dict[str, Count] = {}
    n_left_out: dict[str, Count] = {}
    n_held_out: dict[str, Count] = {}
    golden: GoldenScore = GoldenScore()
    held_out: Score = Score()
    by_intent: dict[str, Score] = {}
    confusions: Confusions = Confusions()
    oos_auroc: Change | None = None
    oos_measured_on: OosSource | None = None
    ece: Change | None = None
    overconfidence: Change | None = None
    answered: Change | None = None
    success: SuccessExam | None = None
    passes: bool
    refusals: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.passes == bool(self.refusals):
            raise ValueError(f"passes is {self.passes}, but there are {len(self.refusals)} refusals")
        return self
