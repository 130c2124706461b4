"""Card files: which files there are, the two forms of a card, and every problem of all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.card import AgentCard
from models.errors import CardError, FieldProblem
from router.card_schemas import check_definition, resolve_schemas
from router.field_problems import path_text, problems_of, shown, unknown_field
from router.model_walk import FieldPath
from router.nested_card import SECTIONS, FlatCard, flatten
from router.schemas import BUILT_IN
from router.yaml_text import Document, read_yaml

_SUFFIXES = (".yaml", ".yml", ".json")
_FILE_KEYS = ("agents", "schemas")
_NESTED_KEYS = (*SECTIONS, "capabilities")
_POLICY_KEYS = frozenset(
    ("version", "defaults", "namespaces", "agents", "rules", "learning", "quotas", "retention", "llm", "risk")
)


@dataclass(frozen=True, slots=True)
class CardFiles:
    """What a load found.

    Attributes:
        cards: in the order of the files and within them.
        files: those that were read.
        warnings: what an operator should know although the load succeeded.
    """

    cards: tuple[AgentCard, ...]
    files: tuple[Path, ...]
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _File:
    """A file that is YAML; `agents` are its cards with their paths."""

    name: str
    document: Document
    agents: list[tuple[FieldPath, dict[str, Any]]] = field(default_factory=list)
    problems: list[FieldProblem] = field(default_factory=list)

    def place(self, path: FieldPath) -> tuple[str, int]:
        """What is shown of a path in the file, and its line."""
        text = path_text(path)
        return (f"{self.name}:{text}" if text else self.name), self.document.line_of(path)

    def fault(self, path: FieldPath, message: str) -> None:
        text, line = self.place(path)
        self.problems.append(FieldProblem(text, message, line))


def read_card_files(paths: Iterable[Path | str]) -> CardFiles:
    """Read cards from files and folders.

    A folder means every .yaml, .yml and .json file in it and below it, hidden ones left out. A file holds a list
    `agents:`, or one card, flat or nested; `schemas:` of any file name schemas for all of them. Top-level keys that
    begin with `x-` are the operator's own.

    Args:
        paths: files and folders.

    Raises:
        CardError: with all problems of all files, each with its file, path and line.
    """
    problems: list[FieldProblem] = []
    warnings: list[str] = []
    files: list[_File] = []
    found = list(_card_paths(paths, problems, warnings))
    for path, named_by_user in found:
        try:
            file = _File(str(path), read_yaml(path, CardError))
        except CardError as error:
            problems += error.problems
            continue
        if not named_by_user and _is_policy(file.document.value):
            warnings.append(f"{path}: a policy, not cards; left out")
            continue
        _collect_agents(file)
        files.append(file)
    cards = _cards(files)
    problems += [each for file in files for each in sorted(file.problems, key=lambda problem: problem.line or 0)]
    if problems:
        n_files = len({problem.path.partition(":")[0] for problem in problems})
        raise CardError(f"the cards cannot be used: {len(problems)} problem(s) in {n_files} file(s)", problems)
    warnings += [f"{file.name}: no cards in it" for file in files if not file.agents and "schemas" not in _keys(file)]
    return CardFiles(tuple(cards), tuple(path for path, _ in found), tuple(warnings))


def _card_paths(
    paths: Iterable[Path | str], problems: list[FieldProblem], warnings: list[str]
) -> Iterator[tuple[Path, bool]]:
    """Each file once, and whether it was named itself."""
    seen: set[Path] = set()
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix.lower() in _SUFFIXES and each.is_file())
            # editors and mounted volumes keep copies under hidden names
            inside = [each for each in inside if not any(part.startswith(".") for part in each.relative_to(path).parts)]
            if not inside:
                warnings.append(f"{path}: no {', '.join(_SUFFIXES)} files in it")
        elif path.exists():
            inside = [path]
        else:
            inside = []
            problems.append(FieldProblem(str(path), "there is no such file or folder"))
        for each in inside:
            if each.resolve() not in seen:
                seen.add(each.resolve())
                yield each, each == path


def _is_policy(value: Any) -> bool:
    """Whether a file in a folder of cards is a policy: `agents` is a list in a card file, a mapping in a policy."""
    if not isinstance(value, dict) or not _POLICY_KEYS.issuperset(value):
        return False
    return isinstance(value.get("agents"), dict) or ("agents" not in value and bool(value.keys() - {"version"}))


def _keys(file: _File) -> Sequence[str]:
    value = file.document.value
    return [key for key in value if not key.startswith("x-")] if isinstance(value, dict) else []


def _collect_agents(file: _File) -> None:
    value, keys = file.document.value, _keys(file)
    if value is None:
        return
    if not isinstance(value, dict):
        file.fault((), f"expected a mapping with 'agents' or one card, got {shown(value)}")
        return
    if "agents" in value:
        for key in keys:
            if key not in _FILE_KEYS:
                file.fault((key,), unknown_field(key, _FILE_KEYS))
        _collect_list(file, value["agents"])
        return
    card = {key: value[key] for key in keys if key != "schemas"}
    if any(key in _NESTED_KEYS or key in AgentCard.model_fields for key in card):
        file.agents.append(((), card))
        return
    for key in card:
        file.fault((key,), unknown_field(key, (*_FILE_KEYS, *_NESTED_KEYS, *AgentCard.model_fields)))


def _collect_list(file: _File, agents: Any) -> None:
    if not isinstance(agents, list):
        file.fault(("agents",), f"expected a list of cards, got {shown(agents)}")
        return
    for number, agent in enumerate(agents):
        if isinstance(agent, dict):
            file.agents.append((("agents", number), agent))
        else:
            file.fault(("agents", number), f"expected a card, got {shown(agent)}")


def _cards(files: Sequence[_File]) -> list[AgentCard]:
    named = _named_schemas(files)
    cards: list[AgentCard] = []
    first: dict[tuple[str, str, str], tuple[str, int]] = {}
    for file in files:
        for path, raw in file.agents:
            card = _card(file, path, raw, named)
            if card is None:
                continue
            if card.key in first:
                text, line = first[card.key]
                what = f"{card.agent_id} {card.version} in namespace {card.namespace}"
                file.fault(path, f"{what} is defined a second time; the first is {text}, line {line}")
                continue
            first[card.key] = file.place(path)
            cards.append(card)
    return cards


def _named_schemas(files: Sequence[_File]) -> dict[str, dict[str, Any] | None]:
    """The schemas of all files by name; None for one that is faulty."""
    named: dict[str, dict[str, Any] | None] = {}
    first: dict[str, tuple[str, int, Any]] = {}
    for file in files:
        section = file.document.value.get("schemas") if isinstance(file.document.value, dict) else None
        if section is None:
            continue
        if not isinstance(section, dict):
            file.fault(("schemas",), f"expected a mapping of names to schemas, got {shown(section)}")
            continue
        for name, schema in section.items():
            path = ("schemas", name)
            if name in first:
                text, line, other = first[name]
                if other != schema:
                    file.fault(path, f"'{name}' is defined differently in {text}, line {line}")
                continue
            first[name] = (*file.place(path), schema)
            message = check_definition(name, schema)
            if name not in BUILT_IN:
                named[name] = None if message else schema
            if message:
                file.fault(path, message)
    return named


def _card(
    file: _File, path: FieldPath, raw: Mapping[str, Any], named: Mapping[str, dict[str, Any] | None]
) -> AgentCard | None:
    """The card at `path`; None where it has problems, which are noted."""
    n_before = len(file.problems)
    is_nested = any(section in raw for section in SECTIONS)
    flat = flatten(raw) if is_nested else FlatCard(dict(raw))
    for inner, message in flat.problems:
        file.fault(path + inner, message)
    resolved, problems = resolve_schemas(flat.card, named)
    for inner, message in problems:
        file.fault(path + flat.origin(inner), message)
    if is_nested and "agent_id" not in resolved:
        resolved["agent_id"] = "missing"  # told already, under its nested name

    def locate(inner: FieldPath) -> tuple[str, int | None]:
        return file.place(path + flat.origin(inner))

    try:
        card = AgentCard.model_validate(resolved)
    except ValidationError as error:
        file.problems += problems_of(error, AgentCard, locate=locate)
        return None
    return card if len(file.problems) == n_before else None
