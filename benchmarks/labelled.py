"""Labelled texts of the public data sets as the trainer takes them, by part and language."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from intent.examples import distinct
from intent.fit_classifiers import Example


def labelled(path: Path, *, part: str = "", lang: str = "") -> list[Example]:
    """The rows of a file as they are written.

    Args:
        path: `.jsonl`; where there is only `.jsonl.gz`, that is read.
        part: only rows of this part.
        lang: only rows of this language.

    Raises:
        FileNotFoundError: there is neither.
    """
    zipped = path.with_name(path.name + ".gz")
    if not path.exists() and not zipped.exists():
        raise FileNotFoundError(f"there is neither {path} nor {zipped.name}: is --data the folder with intents/ in it?")
    content = path.read_text(encoding="utf-8") if path.exists() else gzip.decompress(zipped.read_bytes()).decode()
    rows = [json.loads(line) for line in content.split("\n") if line.strip()]
    return [
        Example(row["text"], row["intent"])
        for row in rows
        if part in ("", row.get("part")) and lang in ("", row.get("lang"))
    ]


def texts_of(*lists: Iterable[Example]) -> list[str]:
    """The distinct normalized texts."""
    return list(dict.fromkeys(each.text for rows in lists for each in distinct(rows)))
