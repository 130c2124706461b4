"""Fits the numbers of `router.index` and `intent.calibrate` on validation rows, never on a test file.

`python -m benchmarks.fit_confidence --data DIR [--json]`

It prints what it finds and whether the shipped numbers agree; it changes none.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.data_sets import Row, one_namespace, read_rows
from benchmarks.report import Report
from benchmarks.serving import router_in_process
from intent.calibrate import Calibration
from intent.embedder import bundled
from intent.normalize import match_key, normalize
from models.ports import Embedder
from router.index import POOL_WIDTH, POOLED_ROWS
from router.snapshot import Snapshot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDTHS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15)
N_POOLED = (8, 16, 32, 64, 10_000)
MAX_LEADS = (0.1, 0.15, 0.2, 0.25, 0.3, inf)
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
AGREEMENT = 0.03
"""The shipped numbers agree if their confidences differ from those of the fit by no more than this, on the average."""
_NONE = -1


@dataclass(frozen=True, slots=True)
class Set:
    """Validation rows of a data set against its cards.

    Attributes:
        cosines: float64, shape (n_rows, n_texts): each row's with each text of the cards.
        owners: int64, shape (n_texts,): the intent of each text.
        gold: int64, shape (n_rows,): the right intent, -1 out of scope.
    """

    name: str
    cosines: Floats
    owners: Ints
    gold: Ints


@dataclass(frozen=True, slots=True)
class Read:
    """The two features of each row's best intent.

    Attributes:
        similarity: pooled, shape (n_rows,).
        lead: over the second best, uncapped.
        is_right: whether it is the right one; never out of scope.
        is_inside: whether the row is in scope.
    """

    similarity: Floats
    lead: Floats
    is_right: NDArray[np.bool_]
    is_inside: NDArray[np.bool_]

    @property
    def accuracy(self) -> float:
        """Right among those in scope, 0..1."""
        return float(self.is_right[self.is_inside].mean())


def pooled_all(cosines: Floats, owners: Ints, n_owners: int, width: float, n_pooled: int) -> Floats:
    """What `router.index.pooled` gives, for many rows at once and any parameters; shape (n_rows, n_owners).

    >>> pooled_all(np.array([[0.8, 0.7]]), np.array([1, 0]), 2, width=0.05, n_pooled=32).round(3).tolist()
    [[0.7, 0.8]]
    """
    near = np.argsort(-cosines, axis=1, kind="stable")[:, : min(n_pooled, cosines.shape[1])]
    found = np.take_along_axis(cosines, near, axis=1)
    identical = 1 - 1e-5
    faded = np.log1p(-np.exp((np.minimum(found, identical) - 1) / width))
    doubt = np.zeros((len(cosines), n_owners))
    rows = np.arange(len(cosines))[:, None]
    np.add.at(doubt, (rows, owners[near]), faded)
    nearest = np.full((len(cosines), n_owners), -1.0)
    np.maximum.at(nearest, (rows, np.broadcast_to(owners, cosines.shape)), cosines)
    with np.errstate(divide="ignore"):
        joint = 1 + width * np.log(-np.expm1(doubt))
    pooled: Floats = np.where(nearest >= identical, 1.0, np.minimum(identical, np.maximum(nearest, joint)))
    return pooled


def read(rows: Set, width: float = POOL_WIDTH, n_pooled: int = POOLED_ROWS) -> Read:
    """The best intent of every row and how far ahead it is."""
    scores = pooled_all(rows.cosines, rows.owners, int(rows.owners.max()) + 1, width, n_pooled)
    best = scores.argmax(axis=1)
    top = np.partition(scores, -2, axis=1)
    return Read(top[:, -1], top[:, -1] - top[:, -2], best == rows.gold, rows.gold != _NONE)


def joined(reads: Sequence[Read]) -> tuple[Read, Floats]:
    """All rows, with weights: every set counts the same, and in it what is in scope the same as what is out."""
    weights = [
        np.where(item.is_inside, 0.5 / item.is_inside.sum(), 0.5 / (~item.is_inside).sum()) / len(reads)
        for item in reads
    ]
    whole = Read(
        np.concatenate([item.similarity for item in reads]),
        np.concatenate([item.lead for item in reads]),
        np.concatenate([item.is_right for item in reads]),
        np.concatenate([item.is_inside for item in reads]),
    )
    return whole, np.concatenate(weights)


def fit(whole: Read, weights: Floats, max_lead: float) -> Calibration:
    """Platt scaling: the probability that the best intent is the right one. `weights` add up to 1."""
    features = np.column_stack([whole.similarity, np.minimum(whole.lead, max_lead)])
    model = LogisticRegression(C=1e6, max_iter=10_000, tol=1e-8)
    model.fit(features, whole.is_right, sample_weight=weights * len(weights))
    similarity_weight, lead_weight = model.coef_[0].tolist()
    return Calibration(similarity_weight, lead_weight, float(model.intercept_[0]), max_lead)


def confidences(calibration: Calibration, rows: Read) -> Floats:
    """Of every row's best intent, by the code that is served."""
    pairs = zip(rows.similarity.tolist(), rows.lead.tolist(), strict=True)
    return np.array([calibration.confidences([best, best - lead])[0] for best, lead in pairs])


def log_loss(found: Floats, is_right: NDArray[np.bool_], weights: Floats) -> float:
    """Mean of -log probability of what was the case, in nats."""
    said = np.clip(np.where(is_right, found, 1 - found), 1e-12, 1)
    return float(-(np.log(said) * weights).sum() / weights.sum())


def report_pooling(report: Report, sets: Sequence[Set]) -> None:
    """Accuracy on validation rows by the two parameters of the index."""
    report.section("router.index: right intent among validation rows in scope (the rows of the shipped numbers marked)")
    names = [rows.name for rows in sets]
    for n_pooled in N_POOLED:
        for width in WIDTHS if n_pooled == POOLED_ROWS else (POOL_WIDTH,):
            found = [read(rows, width, n_pooled).accuracy for rows in sets]
            marks = "shipped" if (width, n_pooled) == (POOL_WIDTH, POOLED_ROWS) else ""
            each = ", ".join(f"{name} {100 * value:.2f} %" for name, value in zip(names, found, strict=True))
            report.add(
                f"POOL_WIDTH {width}, POOLED_ROWS {n_pooled if n_pooled < 10_000 else 'all'}: mean",
                float(np.mean(found)),
                "%",
                None,
                "; ".join(filter(None, [each, marks])),
            )
    nearest = [read(rows, 1e-4, 1).accuracy for rows in sets]
    report.add("nearest text only: mean", float(np.mean(nearest)), "%")


def report_calibration(report: Report, sets: Sequence[Set]) -> Calibration:
    """The fit, beside the numbers that are shipped; the fitted ones."""
    whole, weights = joined([read(rows) for rows in sets])
    report.section("intent.calibrate: log-loss of the fit for each max_lead, in nats")
    fits = {max_lead: fit(whole, weights, max_lead) for max_lead in MAX_LEADS}
    for max_lead, fitted in fits.items():
        report.add(f"max_lead {max_lead}", log_loss(confidences(fitted, whole), whole.is_right, weights), "nats")
    shipped = Calibration()
    report.section("intent.calibrate: fitted with the shipped max_lead, and shipped")
    fitted = fits.get(shipped.max_lead) or fit(whole, weights, shipped.max_lead)
    for name in ("similarity_weight", "lead_weight", "bias", "max_lead"):
        report.add(name, getattr(fitted, name), "", None, f"shipped {getattr(shipped, name)}")
    ours, theirs = confidences(fitted, whole), confidences(shipped, whole)
    loss = log_loss(theirs, whole.is_right, weights)
    report.add("log-loss of the fit", log_loss(ours, whole.is_right, weights), "nats", None, f"shipped {loss:.4f}")
    apart = float((np.abs(ours - theirs) * weights).sum())
    verdict = "they agree" if apart <= AGREEMENT else "they do NOT agree: take the fitted numbers"
    report.add("mean difference of the two confidences", apart, "", None, f"{verdict}, bound {AGREEMENT}")
    return fitted


def report_operating_points(report: Report, name: str, calibration: Calibration, sets: Sequence[Set]) -> None:
    """What the numbers do at each threshold."""
    for rows in sets:
        found = read(rows)
        sure = confidences(calibration, found)
        n_inside, n_outside = found.is_inside.sum(), (~found.is_inside).sum()
        report.section(f"{rows.name}, {name} numbers: accepted of {n_inside} rows in scope ({n_outside} out of scope)")
        for threshold in THRESHOLDS:
            accepted = sure >= threshold
            inside = accepted & found.is_inside
            right = found.is_right[inside].mean() if inside.any() else 0.0
            outside = accepted[~found.is_inside].mean()
            note = f"right among those {100 * right:.2f} %, accepted out of scope {100 * outside:.2f} %"
            report.add(f"confidence >= {threshold}", float(inside.sum() / n_inside), "%", None, note)


def rows_against(name: str, snapshot: Snapshot, encoder: Embedder, rows: Sequence[Row]) -> Set:
    """The cosines of rows with the texts of cards; rows that stand on a card word for word are left out."""
    number_of = {intent: number for number, intent in enumerate(snapshot.intents)}
    texts = dict.fromkeys(
        (number_of[entry.capability.intent], text)
        for entry in snapshot.entries
        if entry.flaw is None
        for text in map(normalize, (*entry.capability.examples, entry.capability.description))
        if text
    )
    kept = [row for row in rows if match_key(normalize(row.text)) not in snapshot.exact]
    cosines = matrix(encoder, [normalize(row.text) for row in kept]) @ matrix(encoder, [text for _, text in texts]).T
    owners = np.array([owner for owner, _ in texts], dtype=np.int64)
    return Set(name, cosines, owners, np.array([number_of.get(row.intent, _NONE) for row in kept], dtype=np.int64))


def matrix(encoder: Embedder, texts: Sequence[str]) -> Floats:
    """Their vectors, shape (n_texts, dim)."""
    return np.array([np.frombuffer(encoder.embed(text).vector, dtype="<f4") for text in texts], dtype=np.float64)


def validation_rows(data: Path, name: str) -> list[Row]:
    """Rows in scope and out of scope, none from a test file; CLINC150's out-of-scope rows serve for both sets."""
    intents = data / "intents"
    outside = [row for part in ("oos_val", "oos_train") for row in read_rows(intents / f"clinc150/{part}.jsonl")]
    if name == "clinc150":
        return read_rows(intents / "clinc150/val.jsonl") + outside
    return [row for row in read_rows(intents / f"{name}/train.jsonl") if row.part == "val"] + outside


async def sets_of(data: Path) -> list[Set]:
    """Both data sets."""
    encoder = await asyncio.to_thread(bundled)
    sets = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for name in ("clinc150", "banking77"):
            cards = one_namespace(data / f"cards/{name}.yaml", Path(folder) / f"{name}.yaml")
            async with router_in_process([cards]) as parts:
                snapshot = parts["registry"].snapshot
            sets.append(rows_against(name, snapshot, encoder, validation_rows(data, name)))
    return sets


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with cards/ and intents/ in it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    made = Report("Fit of pooling and confidence on validation rows", options.json)
    of_both = asyncio.run(sets_of(options.data))
    report_pooling(made, of_both)
    newly = report_calibration(made, of_both)
    report_operating_points(made, "shipped", Calibration(), of_both)
    report_operating_points(made, "fitted", newly, of_both)
    made.close()
