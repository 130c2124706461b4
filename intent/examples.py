"""Example files: JSON Lines of `text` and `intent`, or `intents`, optionally gzipped; other fields are ignored."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from intent.fit_classifiers import Example
from intent.multi import MultiExample
from intent.normalize import has_words, normalize
from models.errors import FieldProblem, ModelError

OUT_OF_SCOPE = "oos"
"""The intent of a text that means none of the intents."""

_MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Labelled:
    """What example files hold.

    Attributes:
        examples: texts as they are written, in the order of the files, that mean one intent.
        out_of_scope: texts whose intent is `oos`, or whose `intents` are none.
        digests: file name → sha256 of its bytes.
        multi: texts that mean several intents.
    """

    examples: tuple[Example, ...]
    out_of_scope: tuple[str, ...]
    digests: dict[str, str]
    multi: tuple[MultiExample, ...] = ()


def read_examples(paths: Iterable[Path]) -> Labelled:
    """Read example files.

    Raises:
        ModelError: a file cannot be read, or lines of it are no examples; each is named with its file and line.
    """
    numbered, digests = read_numbered(paths)
    rows = [row for _, row in numbered]
    return Labelled(
        tuple(Example(text, *intents) for text, intents in rows if len(intents) == 1),
        tuple(text for text, intents in rows if not intents),
        digests,
        tuple(row for row in rows if len(row.intents) > 1),
    )


def read_numbered(paths: Iterable[Path]) -> tuple[list[tuple[str, MultiExample]], dict[str, str]]:
    """Read example files line by line.

    Returns:
        (each row with its place, `name.jsonl:12`, and all of its intents, none out of scope; file name → sha256 of its
        bytes).

    Raises:
        ModelError: as `read_examples`.
    """
    rows: list[tuple[str, MultiExample]] = []
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
                    rows.append((f"{path.name}:{number}", row))
    if problems:
        raise ModelError(f"the examples cannot be used: {len(problems)} problem(s)", problems[:_MAX_PROBLEMS])
    return rows, digests


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


def _row(line: str) -> MultiExample | str:
    """The example of a line, with all of its intents (none out of scope), or what is wrong with it."""
    try:
        row = json.loads(line)
    except ValueError as error:
        return f"not JSON: {error}"
    except RecursionError:
        return "not JSON that we read: nested too deeply"
    if not isinstance(row, dict):
        return 'expected an object {"text": …, "intent": …} or {"text": …, "intents": […]}'
    if "intent" in row and "intents" in row:
        return "intents: give either these or intent, not both"
    if not _is_text(row.get("text")):
        return f"text: expected a text, found {_shown(row, 'text')}"
    if "intents" not in row:
        if not _is_text(row.get("intent")):
            return f"intent: expected a text, found {_shown(row, 'intent')}"
        intents = [row["intent"]]
    elif isinstance(row["intents"], list) and all(map(_is_text, row["intents"])):
        intents = row["intents"]
    else:
        return f"intents: expected a list of texts, found {_shown(row, 'intents')}"
    named = tuple(dict.fromkeys(intent.strip() for intent in intents))
    if OUT_OF_SCOPE in named and len(named) > 1:
        return f'intents: "{OUT_OF_SCOPE}" is none of the intents and stands alone'
    return MultiExample(row["text"], () if named == (OUT_OF_SCOPE,) else named)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _shown(row: dict[str, Any], name: str) -> str:
    return json.dumps(row[name])[:60] if name in row else "nothing"
