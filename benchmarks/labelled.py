"""Labelled texts of the public data sets as the trainer takes them, by part and language."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.data_sets import read_rows
from intent.examples import distinct
from intent.fit_classifiers import Example


def labelled(path: Path, *, part: str = "", lang: str = "") -> list[Example]:
    """As `read_rows`, with only what a trainer looks at."""
    return [Example(row.text, row.intent) for row in read_rows(path, part=part, lang=lang)]


def texts_of(*lists: Iterable[Example]) -> list[str]:
    """The distinct normalized texts."""
    return list(dict.fromkeys(each.text for rows in lists for each in distinct(rows)))
