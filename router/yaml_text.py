"""YAML and JSON text as operators write it, read into plain values, with the line of every value.

Stricter than YAML 1.1: only `true` and `false` are booleans (`yes`, `no`, `on` are text), there are no dates and no
base-60 numbers, keys are text and stand once, a file is one document, and aliases may not blow it up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from models.errors import ConfigError, FieldProblem

MAX_DEPTH = 100
"""Levels of lists and mappings in one document."""

MAX_EXPANDED_NODES = 1_000_000
"""Values that the aliases of one document may add to it."""

_CHARS_PER_NODE = 100
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_TAG = "tag:yaml.org,2002:"
_COLLECTION_TAGS = (None, "!", f"{_TAG}map", f"{_TAG}seq")
_JSON_ESCAPE = re.compile(r"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)", re.DOTALL)
_MERGE = object()


@dataclass(slots=True)
class _Node:
    """A value with what is needed to find lines in it and to bound its copies."""

    value: Any
    line: int
    depth: int = 0
    weight: int = 1
    children: dict[str | int, tuple[int, _Node]] = field(default_factory=dict)


@dataclass(slots=True)
class _Frame:
    """A list or mapping that is still open."""

    node: _Node
    anchor: str | None
    key: Any = None
    key_line: int = 0
    merged: list[_Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says.

    Attributes:
        value: plain dicts, lists, strings, numbers, booleans and None; aliased parts are shared objects.
    """

    value: Any
    _root: _Node

    def line_of(self, path: Iterable[str | int]) -> int:
        """The line, from 1, of the value at `path`, or of its nearest ancestor that the text has."""
        line, node = self._root.line, self._root
        for step in path:
            if step not in node.children:
                break
            line, node = node.children[step]
        return line


def read_yaml(path: Path, error: type[ConfigError] = ConfigError) -> Document:
    """Read a YAML file, or a JSON one if its name ends in `.json`.

    Args:
        path: the file.
        error: what is raised.

    Raises:
        ConfigError: `error`, if the file cannot be read or `parse_yaml` refuses its text.
    """
    try:
        content = path.read_bytes()
    except OSError as cause:
        problem = FieldProblem(str(path), f"cannot be read: {cause.strerror or cause}")
        raise error(f"{path} cannot be read", [problem]) from cause
    return parse_yaml(content, str(path), error, is_json=path.suffix.lower() == ".json")


def parse_yaml(content: bytes, name: str, error: type[ConfigError] = ConfigError, *, is_json: bool = False) -> Document:
    """Parse one document.

    Args:
        content: UTF-8, with or without a byte order mark.
        name: of the file, for messages.
        error: what is raised.
        is_json: tabs between tokens and pairs of escaped surrogates are JSON's but not YAML's.

    Raises:
        ConfigError: `error` with one problem, its line and the file's name as its path.

    >>> document = parse_yaml(b"intent: yes\\ncost: [1, 2.5]", "cards.yaml")
    >>> document.value, document.line_of(("cost", 1))
    ({'intent': 'yes', 'cost': [1, 2.5]}, 2)
    """
    builder = _Builder(name, error)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        builder.fail(content.count(b"\n", 0, cause.start) + 1, f"not UTF-8: byte 0x{content[cause.start]:02x}")
    if is_json:
        text = _JSON_ESCAPE.sub(_joined_surrogates, text.replace("\t", " "))
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.feed(event)
    except yaml.YAMLError as cause:
        builder.fail(*_syntax_error(cause, text))
    root = builder.root
    if root is None:
        builder.fail(1, "the file is empty")
    return Document(root.value, root)


class _Builder:
    """Builds values from parser events, without recursion: the depth of a text must not cost stack."""

    def __init__(self, name: str, error: type[ConfigError]) -> None:
        self.root: _Node | None = None
        self._name = name
        self._error = error
        self._open: list[_Frame] = []
        self._anchors: dict[str, _Node] = {}
        self._expanded = 0

    def fail(self, line: int, message: str) -> NoReturn:
        raise self._error(f"{self._name} cannot be read", [FieldProblem(self._name, message, line)])

    def feed(self, event: yaml.Event) -> None:
        line = 1 if event.start_mark is None else event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor or "", line)
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            self.fail(line, "a second document begins here; a file holds one")

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        if self._wants_key():
            self._key(event, line)
            return
        value = self._value(event, line)
        node = _Node(value, line, weight=1 + len(event.value) // _CHARS_PER_NODE)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._add(node)

    def _wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].node.value, dict) and self._open[-1].key is None

    def _key(self, event: yaml.ScalarEvent, line: int) -> None:
        frame = self._open[-1]
        frame.key_line = line
        if event.value == "<<" and event.implicit[0]:
            frame.key = _MERGE
            return
        key = self._value(event, line)
        if not isinstance(key, str):
            self.fail(line, f'a key must be text, got {event.value or "nothing"}; quote it: "{event.value}"')
        if key in frame.node.value:
            first = frame.node.children[key][0]
            self.fail(line, f"the key '{key}' stands here a second time; the first is in line {first}")
        frame.key = key

    def _start(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if self._wants_key():
            self.fail(line, "a key must be text, got a list or mapping")
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in _COLLECTION_TAGS or event.tag == f"{_TAG}{'seq' if is_mapping else 'map'}":
            self.fail(line, f"the tag {event.tag} is not allowed")
        if len(self._open) >= MAX_DEPTH:
            self.fail(line, f"nested deeper than {MAX_DEPTH} levels")
        self._open.append(_Frame(_Node({} if is_mapping else [], line), event.anchor))

    def _end(self) -> None:
        frame = self._open.pop()
        for node in frame.merged:
            for key, child in node.children.items():
                if key not in frame.node.value:
                    frame.node.value[key] = child[1].value
                    frame.node.children[key] = child
        if frame.anchor is not None:
            self._anchors[frame.anchor] = frame.node
        self._add(frame.node)

    def _alias(self, anchor: str, line: int) -> None:
        if self._wants_key():
            self.fail(line, "a key must be text, got an alias")
        node = self._anchors.get(anchor)
        if node is None:
            self.fail(line, f"the alias *{anchor} has no &{anchor} that ends before it")
        self._expanded += node.weight
        if self._expanded > MAX_EXPANDED_NODES:
            self.fail(line, f"aliases expand this document beyond {MAX_EXPANDED_NODES} values")
        if len(self._open) + node.depth > MAX_DEPTH:
            self.fail(line, f"nested deeper than {MAX_DEPTH} levels")
        self._add(node, line)

    def _add(self, node: _Node, line: int | None = None) -> None:
        if not self._open:
            self.root = node
            return
        frame = self._open[-1]
        parent = frame.node
        parent.depth = max(parent.depth, node.depth + 1)
        parent.weight += node.weight
        if isinstance(parent.value, list):
            parent.children[len(parent.value)] = (line or node.line, node)
            parent.value.append(node.value)
        elif frame.key is _MERGE:
            frame.merged += self._mappings(node, line or node.line)
            frame.key = None
        else:
            parent.children[frame.key] = (frame.key_line, node)
            parent.value[frame.key] = node.value
            frame.key = None

    def _mappings(self, node: _Node, line: int) -> list[_Node]:
        parts = [child for _, child in node.children.values()] if isinstance(node.value, list) else [node]
        if not all(isinstance(part.value, dict) for part in parts):
            self.fail(line, "'<<' merges mappings, got something else")
        return parts

    def _value(self, event: yaml.ScalarEvent, line: int) -> Any:
        text, tag = event.value, event.tag
        if tag in (f"{_TAG}str", "!") or (tag is None and not event.implicit[0]):
            return text
        if tag is not None:
            self.fail(line, f"the tag {tag} is not allowed")
        if text in _WORDS:
            return _WORDS[text]
        if _NOT_FINITE.fullmatch(text):
            self.fail(line, f'{text} is no number that can be used; quote it if text is meant: "{text}"')
        try:
            number = int(text) if _INT.fullmatch(text) else float(text) if _FLOAT.fullmatch(text) else None
        except ValueError:
            number = math.inf
        if number is None:
            return text
        # an int is always finite, and isfinite() would overflow on a large one
        if isinstance(number, float) and not math.isfinite(number):
            self.fail(line, "a number too large to be read")
        return number


def _joined_surrogates(match: re.Match[str]) -> str:
    escape = match.group()
    if len(escape) == 2:
        return escape
    return bytes.fromhex(escape[2:6] + escape[8:12]).decode("utf-16-be")


def _syntax_error(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    """(line, message) of a parser's error."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return line, f"not valid YAML: the control character U+{ord(text[error.position]):04X} is not allowed"
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return 1, f"not valid YAML: {error}"
    line = error.problem_mark.line + 1
    lines = text.splitlines()
    blank = lines[line - 1][: error.problem_mark.column + 1] if line <= len(lines) else ""
    hint = "; indent with spaces, not tabs" if "\t" in blank else ""
    context = f" ({error.context})" if error.context else ""
    return line, f"not valid YAML: {error.problem}{context}{hint}"
