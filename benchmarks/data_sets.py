"""The public data sets that benchmarks read from the folder given as `--data`; nothing of them is kept here."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from models.card import AgentCard
from router.card_files import read_card_files

ONE_NAMESPACE = "default"
_NAMESPACE_LINE = re.compile(r"^(\s+namespace:).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled utterance.

    Attributes:
        part: which part of a file it belongs to, where the file says so.
        is_repeat: whether its text stands in the train part too.
        lang: its language, where the file says so.
    """

    text: str
    intent: str
    part: str = ""
    is_repeat: bool = False
    lang: str = ""


def read_rows(path: Path, *, part: str = "", lang: str = "") -> list[Row]:
    """The rows of a JSON lines file, gzipped or not; the name may leave `.gz` away.

    Args:
        path: where there is only `.gz` of it, that is read.
        part: only rows of this part.
        lang: only rows of this language.

    Raises:
        FileNotFoundError: there is neither.
    """
    zipped = path if path.suffix == ".gz" else path.with_name(path.name + ".gz")
    if path.suffix != ".gz" and path.exists():
        text = path.read_text(encoding="utf-8")
    elif zipped.exists():
        text = gzip.decompress(zipped.read_bytes()).decode()
    else:
        raise FileNotFoundError(f"there is neither {path} nor {zipped.name}: is --data the folder with intents/ in it?")
    # not splitlines: U+2028 ends no line of JSON lines
    rows = [_row(json.loads(line)) for line in text.split("\n") if line.strip()]
    return [row for row in rows if part in ("", row.part) and lang in ("", row.lang)]


def _row(value: dict[str, Any]) -> Row:
    return Row(
        text=value["text"],
        intent=value["intent"],
        part=value.get("part", ""),
        is_repeat=bool(value.get("dup_in_train", False)),
        lang=value.get("lang", ""),
    )


def one_namespace(cards: Path, out: Path) -> Path:
    """A copy of a card file in which every agent is in the namespace `default`; where it is.

    Raises:
        ValueError: two agents would get the same key.
    """
    out.write_text(_NAMESPACE_LINE.sub(rf"\1 {ONE_NAMESPACE}", cards.read_text(encoding="utf-8")), encoding="utf-8")
    keys = [card.key for card in read_card_files([out]).cards]
    if len(set(keys)) != len(keys):
        raise ValueError(f"{len(keys)} agents of {cards} have only {len(set(keys))} keys in one namespace")
    return out


def permissions_of(cards: Iterable[AgentCard]) -> frozenset[str]:
    """All permissions that any capability requires."""
    return frozenset(
        permission
        for card in cards
        for capability in card.capabilities
        for permission in capability.required_permissions
    )


def examples_by_intent(cards: Iterable[AgentCard]) -> dict[str, list[str]]:
    """Intent → distinct examples of all enabled agents that serve it, both sorted."""
    found: dict[str, set[str]] = {}
    for card in cards:
        for capability in card.capabilities if card.enabled else ():
            found.setdefault(capability.intent, set()).update(capability.examples)
    return {intent: sorted(texts) for intent, texts in sorted(found.items())}


def example_utterances() -> list[str]:
    """The sentences of the bundled example set's labelled requests."""
    lines = files("router.example").joinpath("requests.jsonl").read_text(encoding="utf-8").splitlines()
    requests = (json.loads(line)["request"] for line in lines if line.strip())
    return list(dict.fromkeys(request["utterance"] for request in requests if "utterance" in request))


def cycled(items: Sequence[str], n: int) -> list[str]:
    """`n` items, from the start again where they end."""
    if not items:
        raise ValueError(f"{n} items are wanted, there are 0 to take them from")
    return [items[number % len(items)] for number in range(n)]
