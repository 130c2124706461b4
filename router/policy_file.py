"""The policy as the operator writes it: layers merged, validated whole, every problem with its place.

Built-in defaults < `defaults` < `namespaces.<name>`. Mappings merge by key. A list replaces a list only if it says so:
where a lower layer has entries in the same list, the upper one is `{extend_from_base: true|false, items: [...]}`
(SPEC A15). null takes back what a lower layer says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from intent.rules import compile_pattern
from models.errors import FieldProblem, PolicyError
from models.policy import NamespacePolicy, Policy
from router.field_problems import path_text, problems_of, shown, unknown_field
from router.model_walk import FieldPath
from router.yaml_text import Document, read_yaml

_LIST_KEYS = ("extend_from_base", "items")


@dataclass(frozen=True, slots=True)
class _Source:
    """A policy as written, and what is wrong with it."""

    value: Any
    name: str = ""
    document: Document | None = None
    problems: list[FieldProblem] = field(default_factory=list)

    def place(self, path: FieldPath) -> tuple[str, int | None]:
        text = path_text(path)
        if self.document is None:
            return text, None
        return (f"{self.name}:{text}" if text else self.name), self.document.line_of(path)

    def fault(self, path: FieldPath, message: str) -> None:
        text, line = self.place(path)
        self.problems.append(FieldProblem(text, message, line))

    def has(self, path: FieldPath) -> bool:
        """Whether the text itself says something at `path`."""
        value = self.value
        for step in path:
            is_item = isinstance(value, list) and isinstance(step, int) and step < len(value)
            if not (is_item or (isinstance(value, dict) and step in value)):
                return False
            value = value[step]
        return True


def read_policy(path: Path | str) -> Policy:
    """Read a policy file.

    Raises:
        PolicyError: with every problem, its file, path and line.
    """
    document = read_yaml(Path(path), PolicyError)
    return _policy(_Source(document.value, str(path), document))


def parse_policy(value: Any) -> Policy:
    """Validate a policy that came as JSON; as strict as a file.

    Raises:
        PolicyError: with every problem and its path.

    >>> parse_policy({"defaults": {"hide_denied": True}, "namespaces": {"prod": {}}}).of("prod").hide_denied
    True
    """
    return _policy(_Source(value))


def policy_source(policy: Policy) -> dict[str, Any]:
    """A policy in the form that `parse_policy` reads back equal: lists of namespaces say that they replace.

    >>> parse_policy(policy_source(Policy())) == Policy()
    True
    """
    value = policy.model_dump(mode="json")
    value["namespaces"] = {name: _marked(layer) for name, layer in value["namespaces"].items()}
    return value


def _policy(source: _Source) -> Policy:
    if isinstance(source.value, dict):
        merged = _merged_layers(source)
        try:
            policy = Policy.model_validate(merged)
        except ValidationError as error:
            source.problems.extend(_validation_problems(source, error))
        else:
            _check_meaning(source, policy)
            if not source.problems:
                return policy
    else:
        source.fault((), f"expected a mapping, got {shown(source.value)}")
    problems = sorted(dict.fromkeys(source.problems), key=lambda problem: problem.line or 0)
    raise PolicyError(f"the policy cannot be used: {len(problems)} problem(s)", problems)


def _merged_layers(source: _Source) -> dict[str, Any]:
    """The policy with complete `defaults` and `namespaces`; sections that are left empty count as absent."""
    value = {
        name: section
        for name, section in source.value.items()
        if section is not None or name not in Policy.model_fields
    }
    built_in = NamespacePolicy().model_dump()
    value["defaults"] = _merged(source, built_in, value.get("defaults", {}), ("defaults",))
    namespaces = value.get("namespaces", {})
    if isinstance(namespaces, dict) and isinstance(value["defaults"], dict):
        value["namespaces"] = {
            name: _merged(source, value["defaults"], {} if layer is None else layer, ("namespaces", name))
            for name, layer in namespaces.items()
        }
    return value


def _merged(source: _Source, lower: Any, upper: Any, path: FieldPath) -> Any:
    """`upper` laid over `lower`; what cannot be merged is noted, what is of a wrong type is left to validation."""
    if isinstance(upper, dict) and ("extend_from_base" in upper or ("items" in upper and isinstance(lower, list))):
        return _merged_list(source, lower, upper, path)
    if isinstance(upper, list) and isinstance(lower, list) and lower:
        source.fault(
            path,
            f"{_layers_below(path)} has entries in this list too: write {{extend_from_base: true, items: [...]}} to "
            "add to them or {extend_from_base: false, items: [...]} to replace them",
        )
        return lower
    if isinstance(upper, dict):
        base = lower if isinstance(lower, dict) else {}
        return {**base, **{key: _merged(source, base.get(key), value, (*path, key)) for key, value in upper.items()}}
    return upper


def _merged_list(source: _Source, lower: Any, upper: Mapping[str, Any], path: FieldPath) -> Any:
    before = len(source.problems)
    for key in upper:
        if key not in _LIST_KEYS:
            source.fault((*path, key), unknown_field(key, _LIST_KEYS))
    extends, items = upper.get("extend_from_base"), upper.get("items")
    if "extend_from_base" not in upper:
        source.fault(path, "extend_from_base is missing: true adds to the layer below, false replaces it")
    elif not isinstance(extends, bool):
        source.fault((*path, "extend_from_base"), f"expected true or false, got {shown(extends)}")
    if not isinstance(items, list):
        source.fault((*path, "items"), f"expected a list, got {shown(items)}" if "items" in upper else "is missing")
    if len(source.problems) > before or not isinstance(items, list):
        return lower
    if not extends or not isinstance(lower, list):
        return items
    return lower + [item for item in items if item not in lower]


def _layers_below(path: FieldPath) -> str:
    return "'defaults'" if path[0] == "namespaces" else "the built-in policy"


def _validation_problems(source: _Source, error: ValidationError) -> list[FieldProblem]:
    """The problems of a validation; what a namespace only inherits is told once, under `defaults`."""

    def locate(path: FieldPath) -> tuple[str, int | None]:
        below: FieldPath = ("defaults", *path[2:])
        is_inherited = path[:1] == ("namespaces",) and len(path) > 2 and not source.has(path) and source.has(below)
        return source.place(below if is_inherited else path)

    homes = {source.place(path): message for path, message in _misplaced(source.value)}
    return [
        FieldProblem(each.path, homes.get((each.path, each.line), each.message), each.line)
        for each in problems_of(error, Policy, locate=locate)
    ]


def _misplaced(value: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Sections that stand one level too deep or too high, with where they belong."""
    whole, layer = set(Policy.model_fields), set(NamespacePolicy.model_fields)
    yield from (((name,), "belongs under 'defaults' or a namespace") for name in value if name in layer - whole)
    layers: dict[FieldPath, Any] = {("defaults",): value.get("defaults")}
    namespaces = value.get("namespaces")
    if isinstance(namespaces, dict):
        layers |= {("namespaces", name): inner for name, inner in namespaces.items()}
    for path, inner in layers.items():
        inside = inner if isinstance(inner, dict) else ()
        yield from (
            ((*path, name), "belongs beside 'defaults', not in a layer") for name in inside if name in whole - layer
        )


def _check_meaning(source: _Source, policy: Policy) -> None:
    """What types cannot say."""
    for number, rule in enumerate(policy.rules):
        try:
            if rule.pattern is not None:
                compile_pattern(rule.pattern)
        except ValueError as error:
            source.fault(("rules", number, "pattern"), f"no RE2 pattern: {error}")


def _marked(value: Any) -> Any:
    """The same with every list that has entries as one that replaces."""
    if isinstance(value, dict):
        return {key: _marked(inner) for key, inner in value.items()}
    return {"extend_from_base": False, "items": value} if isinstance(value, list) else value
