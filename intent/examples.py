"""Example files: JSON Lines of `text` and `intent`, optionally gzipped; other fields are ignored."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from intent.fit_classifiers import Example
from intent.normalize import has_words, normalize
from models.errors import FieldProblem, ModelError

OUT_OF_SCOPE = "oos"
"""The intent of a text that means none of the intents."""

_MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Labelled:
    """What example files hold.

    Attributes:
        examples: texts as they are written, in the order of the files.
        out_of_scope: texts whose intent is `oos`.
        digests: file name → sha256 of its bytes.
    """

    examples: tuple[Example, ...]
    out_of_scope: tuple[str, ...]
    digests: dict[str, str]


def read_examples(paths: Iterable[Path]) -> Labelled:
    """Read example files.

    Raises:
        ModelError: a file cannot be read, or lines of it are no examples; each is named with its file and line.
    """
    rows: list[Example] = []
    problems: list[FieldProblem] = []
    digests: dict[str, str] = {}
    for path in paths:
        content, digests[str(path)] = _content(path)
        for number, line in enumerate(content.split("\n"), 1):
            if line.strip():
                row = _row(line)
                if isinstance(row, str):
                    problems.append(FieldProblem(str(path), row, number))
                else:
                    rows.append(row)
    if problems:
        raise ModelError(f"the examples cannot be used: {len(problems)} problem(s)", problems[:_MAX_PROBLEMS])
    examples = tuple(row for row in rows if row.intent != OUT_OF_SCOPE)
    return Labelled(examples, tuple(row.text for row in rows if row.intent == OUT_OF_SCOPE), digests)


def distinct(examples: Iterable[Example]) -> list[Example]:
    """The examples normalized, each text and intent once; those without a letter or digit are left out."""
    return [
        Example(text, intent)
        for text, intent in dict.fromkeys((normalize(text), intent) for text, intent in examples)
        if has_words(text)
    ]


def _content(path: Path) -> tuple[str, str]:
    """The text of a file and the digest of its bytes."""
    try:
        content = path.read_bytes()
        plain = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        return plain.decode("utf-8-sig"), sha256(content).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        raise ModelError(f"{path} cannot be read ({error})") from error
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 ({error})") from error


def _row(line: str) -> Example | str:
    """The example of a line, or what is wrong with it."""
    try:
        row = json.loads(line)
    except ValueError as error:
        return f"not JSON: {error}"
    except RecursionError:
        return "not JSON that we read: nested too deeply"
    if not isinstance(row, dict):
        return 'expected an object {"text": …, "intent": …}'
    for name in ("text", "intent"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            found = json.dumps(row[name])[:60] if name in row else "nothing"
            return f"{name}: expected a text, found {found}"
    return Example(row["text"], row["intent"].strip())
