"""The arrays of heads as bytes: NumPy's own format, without pickle, and every shape checked on the way in."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intent.confidence import RiskTable
from intent.heads import Heads, Stage
from intent.model_numbers import RelevanceNumbers, Slopes
from intent.relevance import Relevance

Arrays = Mapping[str, NDArray[Any]]

_INTEGERS = frozenset({"first"})
_RISK = ("confidences", "n_wrong", "n_above")
_RELEVANCE = ("lexical", "vectors", "centre", "bias")
"""The arrays of a `Relevance`, in the order of its fields."""


def bytes_of(heads: Heads) -> bytes:
    """All arrays of the heads, by name, as one archive."""
    lexical, semantic = heads.lexical, heads.semantic
    arrays: dict[str, NDArray[Any]] = {
        "idf": lexical.idf,
        "lexical_weights": lexical.weights,
        "lexical_bias": lexical.bias,
    }
    for name, stage in (("lexical", heads.lexical_stage), ("full", heads.full_stage)):
        arrays |= {f"{name}_{part}": getattr(stage.risk, part) for part in _RISK}
    if semantic is not None:
        arrays |= {"semantic_weights": semantic.weights, "semantic_bias": semantic.bias}
        arrays |= {"prototypes": semantic.prototypes, "first": semantic.first}
    if heads.relevance is not None:
        arrays |= {f"relevance_{part}": getattr(heads.relevance, part) for part in _RELEVANCE}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def read_arrays(content: bytes) -> Arrays:
    """The arrays by name.

    Raises:
        ValueError: the bytes are no archive of plain arrays.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(f"no archive of plain arrays ({error})") from error


def checked(arrays: Arrays, *, n_rows: int, n_labels: int, has_relevance: bool = False) -> Arrays:
    """The arrays, if they are those of heads.

    Args:
        arrays: by name.
        n_rows: grams in the vocabulary.
        n_labels: intents.
        has_relevance: whether the heads say what a text means besides.

    Raises:
        ValueError: one is missing, or has another shape or type; the message gives both.
    """
    shapes = _shapes(arrays, n_rows, n_labels)
    if has_relevance:
        shapes |= _shapes_of_relevance(arrays, n_rows, n_labels)
    if set(arrays) != set(shapes):
        raise ValueError(f"holds the arrays {sorted(arrays)}, expected {sorted(shapes)}")
    for name, shape in shapes.items():
        array, kind = arrays[name], "i" if name in _INTEGERS else "f"
        if array.shape != shape:
            raise ValueError(f"{name} has the shape {array.shape}, expected {shape}")
        if array.dtype.kind != kind or not np.isfinite(array).all():
            raise ValueError(f"{name} is of {array.dtype}, expected finite numbers of kind '{kind}'")
    if "first" in arrays:
        starts = [*arrays["first"].tolist(), len(arrays["prototypes"])]
        if starts[0] != 0 or any(end <= start for start, end in pairwise(starts)):
            raise ValueError(f"first does not give each of the {n_labels} labels a prototype")
    return arrays


def stage_of(in_scope: Slopes, is_right: Slopes, arrays: Arrays, name: str) -> Stage:
    """The stage of heads that has this name among the arrays."""
    risk = RiskTable(*(arrays[f"{name}_{part}"] for part in _RISK))
    return Stage(in_scope.confidence(), is_right.confidence(), risk)


def relevance_of(numbers: RelevanceNumbers | None, arrays: Arrays) -> Relevance | None:
    """What says which intents a text means besides; None where the heads are without."""
    if numbers is None:
        return None
    lexical, vectors, centre, bias = (arrays[f"relevance_{part}"] for part in _RELEVANCE)
    return Relevance(lexical, vectors, centre, bias, numbers.confidence.confidence(), numbers.least)


def _shapes(arrays: Arrays, n_rows: int, n_labels: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "idf": (n_rows,),
        "lexical_weights": (n_rows, n_labels),
        "lexical_bias": (n_labels,),
    }
    for name in ("lexical", "full"):
        n_readings = arrays[f"{name}_confidences"].size if f"{name}_confidences" in arrays else 0
        shapes |= {f"{name}_{part}": (n_readings,) for part in _RISK}
    if "prototypes" in arrays:
        n_prototypes, dim = (*arrays["prototypes"].shape, 0, 0)[:2]
        shapes |= {"semantic_weights": (n_labels, dim), "semantic_bias": (n_labels,)}
        shapes |= {"prototypes": (n_prototypes, dim), "first": (n_labels,)}
    return shapes


def _shapes_of_relevance(arrays: Arrays, n_rows: int, n_labels: int) -> dict[str, tuple[int, ...]]:
    """Its vectors are as long as those of the semantic head, or of no length where there is none."""
    dim = (*arrays["prototypes"].shape, 0, 0)[1] if "prototypes" in arrays else 0
    return {
        "relevance_lexical": (n_rows, n_labels),
        "relevance_vectors": (n_labels, dim),
        "relevance_centre": (dim,),
        "relevance_bias": (n_labels,),
    }
