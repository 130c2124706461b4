"""Run: a retraining step by step; what is done is not done again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from intent.embedder import FileRecord
from intent.evaluate import Meant, Read, read_all
from intent.heads import Heads
from intent.model_folder import (
    RETRAIN_FOLDER,
    SUCCESS_FILE,
    Origin,
    check_writable,
    load_heads,
    read_manifest,
    save_heads,
    tuned_encoder,
)
from intent.vector_cache import Progress, VectorCache, silent
from models.errors import ModelError, RouterError
from models.exam_report import EXAM_FILE, ExamReport, SuccessExam
from models.ports import Clock, Embedded, Embedder
from router.clock import SystemClock
from router.retraining.exam import Readings
from router.retraining.gather import gather
from router.retraining.job import Job
from router.retraining.lock import locked
from router.retraining.plan import Plan
from router.retraining.report import report_of
from router.retraining.rows import Row
from router.retraining.state import State, write_whole
from router.retraining.success import SuccessPart, examined, part_of
from router.retraining.success_rows import SuccessRows

_CHUNK = 4096
"""Texts that are embedded before their vectors are written down."""

_TIMES = ("embed_s", "fit_s")

Bar = Callable[[str], AbstractContextManager[Progress]]
"""Shows a step by its name."""


def no_bar(what: str) -> AbstractContextManager[Progress]:
    """A `Bar` that shows nothing."""
    return nullcontext(silent)


def go_on(step: str) -> None:
    """Told after each step; one that raises ends the run, which can be taken up again."""


@dataclass(slots=True)
class Run:
    """One run of a job.

    Attributes:
        embedder: of the model in force, or the one that the new one is for.
        bar: shows the steps that take long.
        after: told of each step that is done.
        done: steps that this run did itself, not an earlier one.
    """

    job: Job
    embedder: Embedder
    clock: Clock = field(default_factory=SystemClock)
    bar: Bar = no_bar
    after: Callable[[str], None] = go_on
    done: list[str] = field(default_factory=list)

    def run(self) -> ExamReport:
        """Do what is not done yet; blocks for minutes.

        Raises:
            RouterError: something that the job names cannot be used, or the folder cannot be written.
        """
        job = self.job
        if job.base is not None and job.base.resolve() == job.out.resolve():
            raise ModelError(f"{job.out} is the model in force itself: name a new folder as --out")
        with locked(job.out):
            check_writable(job.out)
            return self._run()

    def _run(self) -> ExamReport:
        state = State(self.job.out / RETRAIN_FOLDER)
        state.open(self.job.digest(self.embedder.encoder_id), int(self.clock.now_ms()))
        plan, outcomes = self._gathered(state)
        part = part_of(outcomes)
        vectors = self._embedded(state, [*plan.texts(), *part.texts])
        success = self._success(state, part, outcomes.left_out, vectors)
        before = self._before(state, plan, vectors)
        after = self._after(state, plan, vectors, success)
        report = self._examined(state, plan, vectors, before, after, success)
        self._written(state, after, report)
        state.close()
        return report

    def _gathered(self, state: State) -> tuple[Plan, SuccessRows]:
        found, outcomes = state.plan(), state.outcomes()
        if found is not None and outcomes is not None:
            return Plan.of_json(found), SuccessRows.of_json(outcomes)
        job, made_at = self.job, int(self.clock.now_ms())
        try:
            with self.bar("reading the log") as told:
                plan, rows = asyncio.run(gather(job, made_at=made_at, progress=told))
        except RouterError:
            state.close()  # nothing was done that could be taken up again
            raise
        state.keep_plan(plan.to_json(), rows.to_json())
        self._tell("gather")
        return plan, rows

    def _embedded(self, state: State, wanted: Sequence[str]) -> VectorCache:
        is_new = not state.vectors.exists()
        vectors, texts = VectorCache(self.embedder, state.vectors), list(dict.fromkeys(wanted))
        with self.bar("embedding") as told:
            for start in range(0, len(texts), _CHUNK):
                vectors.of(texts[start : start + _CHUNK])
                told(min(start + _CHUNK, len(texts)), len(texts))
        if is_new:
            self._tell("embed")
        return vectors

    def _before(self, state: State, plan: Plan, vectors: VectorCache) -> Heads:
        if self.job.base is not None:
            return load_heads(self.job.base, encoder_id=self.embedder.encoder_id)
        cards_only = Plan(plan.made_at, cards=plan.cards)
        return self._fitted("before", state.before, cards_only, vectors, always_encoded=False)

    def _after(self, state: State, plan: Plan, vectors: VectorCache, success: SuccessExam) -> Heads:
        # success heads are asked about vectors alone: words that tell the intent do not tell who does it well
        return self._fitted("after", state.after, plan, vectors, always_encoded=success.is_kept)

    def _fitted(self, step: str, folder: Path, plan: Plan, vectors: VectorCache, *, always_encoded: bool) -> Heads:
        """Heads fitted on a plan, and kept."""
        from intent.fit_multi import ALWAYS_ENCODED
        from intent.multi import Multi
        from intent.train import train

        if not (folder / "manifest.json").exists():
            outside = plan.out_of_scope
            with self.bar(f"fitting ({step})"):
                found = train(
                    plan.examples,
                    vectors,
                    out_of_scope=outside,
                    seed=self.job.seed,
                    multi=Multi(plan.multi, none=tuple(outside) if plan.multi else ()),
                    weights=plan.weights,
                )
            metrics = {name: value for name, value in found.metrics.items() if name not in _TIMES}
            origin = Origin(
                encoder_id=self.embedder.encoder_id if found.heads.semantic is not None else None,
                seed=self.job.seed,
                n_examples=found.n_examples,
                data=plan.data,
                metrics=metrics,
                made_by="retrain",
            )
            save_heads(replace(found.heads, early=ALWAYS_ENCODED) if always_encoded else found.heads, folder, origin)
            self._tell(f"fit_{step}")
        return load_heads(folder)

    def _success(
        self, state: State, part: SuccessPart, left_out: Mapping[str, int], vectors: VectorCache
    ) -> SuccessExam:
        """The exam of success heads, which are kept if they passed."""
        if not state.success_exam.exists():
            with self.bar("fitting (success)"):
                embedder = self.embedder
                found = examined(
                    part, left_out, vectors.of(part.texts), encoder_id=embedder.encoder_id, seed=self.job.seed
                )
            heads = None if found.heads is None else found.heads.to_bytes()
            state.keep_success(heads, found.exam.model_dump_json(indent=1))
            self._tell("fit_success")
        return SuccessExam.model_validate_json(state.success_exam.read_bytes())

    def _examined(
        self, state: State, plan: Plan, vectors: VectorCache, before: Heads, after: Heads, success: SuccessExam
    ) -> ExamReport:
        if state.exam.exists():
            return ExamReport.model_validate_json(state.exam.read_bytes())
        rows = (*plan.held_out, *plan.golden)
        with self.bar("examining") as told:
            reads = [self._read(heads, rows, vectors, told) for heads in (before, after)]
        manifest = read_manifest(state.after)
        if success.is_kept:
            manifest = manifest.with_files({**manifest.files, SUCCESS_FILE: FileRecord.of(state.success.read_bytes())})
        report = report_of(
            plan,
            Readings(rows, *reads),
            manifest,
            base_digest=None if self.job.base is None else read_manifest(self.job.base).digest,
            allow_golden_loss=self.job.allow_golden_loss,
            loses_sets=before.relevance is not None and after.relevance is None,
            success=success,
        )
        state.keep_exam(report.model_dump_json(indent=1))
        self._tell("exam")
        return report

    def _read(self, heads: Heads, rows: Sequence[Row], vectors: VectorCache, told: Progress) -> list[Read]:
        known = vectors.of([row.text for row in rows])

        def embed(text: str) -> Embedded:
            return known[text] if text in known else self.embedder.embed(text)

        texts: list[tuple[str, Meant]] = [(row.text, None if row.is_out_of_scope else row.intent) for row in rows]
        return read_all(heads, embed, texts, told, self.embedder.languages)

    def _written(self, state: State, after: Heads, report: ExamReport) -> None:
        """The folder that is served; its exam comes last, and without it nothing can be promoted."""
        manifest = read_manifest(state.after)
        told = report.model_dump(mode="json", exclude={"model_digest", "confusions"})
        metrics = {**manifest.metrics, "exam": told}
        origin = Origin.model_validate({**manifest.model_dump(include=set(Origin.model_fields)), "metrics": metrics})
        encoder = None if self.job.base is None else tuned_encoder(self.job.base)
        is_kept = report.success is not None and report.success.is_kept
        success = state.success.read_bytes() if is_kept else None
        written = save_heads(after, self.job.out, origin, encoder, success)
        if written.digest != report.model_digest:
            raise ModelError(f"{self.job.out} has the digest {written.digest}, examined was {report.model_digest}")
        write_whole(self.job.out / EXAM_FILE, report.model_dump_json(indent=1))
        self._tell("write")

    def _tell(self, step: str) -> None:
        self.done.append(step)
        self.after(step)
