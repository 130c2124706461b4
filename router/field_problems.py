"""pydantic's errors in plain words: which field, what is wrong with it, what would be right."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from models.contract import AgentId, Identifier, IntentName, Namespace, Permission, SemanticVersion, VersionRange
from models.errors import FieldProblem
from router.model_walk import FieldPath, field_names, literals, walk

Locate = Callable[[FieldPath], tuple[str, int | None]]
"""From a path in the model to the path shown and its line."""

_MAX_LISTED = 12
_MAX_SHOWN_CHARS = 60
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
}
_PATTERN_WORDS = {
    AgentId: "is no agent id: letters, digits and . _ : @ - (the first one a letter or digit), at most 128",
    Namespace: "is no namespace such as prod/commerce: letters, digits and . _ -, parts joined by /",
    SemanticVersion: "is no semantic version such as 1.2.0",
    VersionRange: "is no version range such as >=2, ^1.2 or >=1.0 <2.0",
    Identifier: "is no id: 1 to 128 visible ASCII characters",
    IntentName: "is no name of an intent: 1 to 128 characters, no control characters",
    Permission: "is no permission such as user:erase: 1 to 128 visible ASCII characters",
}
_WORDS_OF_PATTERN = {kind.__metadata__[0].pattern: words for kind, words in _PATTERN_WORDS.items()}  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class _Mismatch:
    """One of pydantic's errors, its location freed of the names of union members."""

    path: FieldPath
    message: str
    expected: str | None
    got: str
    hint: str
    in_union: bool


def problems_of(
    error: ValidationError, model: Any, *, root: str = "", locate: Locate | None = None
) -> tuple[FieldProblem, ...]:
    """Translate the errors of a validation.

    Args:
        error: what pydantic raised.
        model: what was validated: a model class, or an annotation such as `list[Outcome]`.
        root: put before every path.
        locate: from a path in the model to the path shown and its line; by default the same path and no line.

    Returns:
        One problem per field, in the order of the fields.

    >>> from models.request import RouteRequest
    >>> try:
    ...     RouteRequest.model_validate({"utterance": "hello", "namespce": "prod"})
    ... except ValidationError as error:
    ...     problems_of(error, RouteRequest)
    (FieldProblem(path='namespce', message="unknown field; did you mean 'namespace'?", line=None),)
    """
    place = locate or (lambda path: (path_text(path, root), None))
    found = [_mismatch(details, model) for details in error.errors(include_url=False)]
    return tuple(
        FieldProblem(*_placed(place, each[0].path, _joined(each))) for each in _by_path(_without_shallow(found))
    )


def path_text(path: Iterable[str | int], root: str = "") -> str:
    """A path as people write it.

    >>> path_text(("agents", 2, "capabilities", 0, "intent"))
    'agents[2].capabilities[0].intent'
    """
    text = root
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def unknown_field(name: str, known: Iterable[str]) -> str:
    """The message for a field that does not exist.

    >>> unknown_field("vresion", ["version", "weight"])
    "unknown field; did you mean 'version'?"
    """
    names = list(known)
    meant = closest(name, names)
    if meant is not None:
        return f"unknown field; did you mean '{meant}'?"
    if 0 < len(names) <= _MAX_LISTED:
        return f"unknown field; known are {', '.join(names)}"
    return "unknown field"


def unknown_parameter(name: str, known: Sequence[str]) -> str:
    """The message for a query parameter that a call does not know.

    >>> unknown_parameter("verison", ["namespace", "version"])
    "unknown parameter; did you mean 'version'? Known are namespace, version"
    >>> unknown_parameter("dry_run", ["namespace", "version"])
    'unknown parameter; known are namespace, version'
    >>> unknown_parameter("version", [])
    'unknown parameter; this call takes none in its query'
    """
    if not known:
        return "unknown parameter; this call takes none in its query"
    meant, names = closest(name, known), ", ".join(known)
    if meant is not None:
        return f"unknown parameter; did you mean '{meant}'? Known are {names}"
    return f"unknown parameter; known are {names}"


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be; None if none is near.

    >>> closest("Agent-ID", ["agent_id", "endpoint"])
    'agent_id'
    """
    by_form = {_plain_form(each): each for each in known}
    near = difflib.get_close_matches(_plain_form(name[:200]), by_form, n=1, cutoff=0.7)
    return by_form[near[0]] if near else None


def shown(value: Any) -> str:
    """A value as JSON with its kind, shortened: what stands in a message after "got".

    >>> shown(1.0), shown(True), shown("a"), shown([1])
    ('the number 1.0', 'true', "text 'a'", 'a list')
    """
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, str):
        return f"text '{_cut(value)}'"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f"the number {_number(value)}"


def _plain_form(name: str) -> str:
    return name.replace("-", "_").replace(" ", "_").casefold()


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"


def _number(value: Any) -> str:
    try:
        return _cut(str(value))
    except ValueError:  # more digits than Python prints
        return "with thousands of digits"


def _placed(place: Locate, path: FieldPath, message: str) -> tuple[str, str, int | None]:
    text, line = place(path)
    return text, message, line


def _mismatch(details: ErrorDetails, model: Any) -> _Mismatch:
    path, owners, in_union = walk(details["loc"], model)
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    expected = _EXPECTED.get(kind)
    hint = ""
    if kind in ("literal_error", "enum"):
        options = [str(option) for option in literals(owners)]
        expected = f"one of {', '.join(repr(option) for option in options)}" if options else context["expected"]
        meant = closest(value, options) if isinstance(value, str) else None
        hint = f"; did you mean '{meant}'?" if meant else ""
    elif expected is not None:
        hint = _quoting_hint(kind, value)
    message = unknown_field(str(path[-1]), field_names(owners)) if kind == "extra_forbidden" and path else ""
    return _Mismatch(path, message or _sentence(details), expected, shown(value), hint, in_union)


def _quoting_hint(kind: str, value: Any) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float):
        text = json.dumps(value) if isinstance(value, bool) else _number(value)
        return f'; quote it: "{text}"'
    if kind in ("int_type", "float_type") and isinstance(value, str) and value.replace(".", "", 1).isdecimal():
        return "; write it without quotes"
    if kind == "bool_type" and isinstance(value, str):
        word = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
        return f"; write {word[value.lower()]}" if value.lower() in word else ""
    return ""


def _sentence(details: ErrorDetails) -> str:
    """What is wrong where it is not the type."""
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "missing":
        return "required field is missing"
    if kind == "string_pattern_mismatch":
        return f"'{_cut(value)}' {_WORDS_OF_PATTERN.get(context['pattern'], _alternatives(context['pattern']))}"
    if kind == "string_too_short":
        return "must not be empty" if context["min_length"] == 1 else f"needs {context['min_length']} characters"
    if kind == "string_too_long":
        return f"has {len(value)} characters, more than {context['max_length']}"
    if kind == "too_short":
        return "must not be empty" if context["min_length"] == 1 else f"needs {context['min_length']} entries"
    if kind == "too_long":
        return f"has {context['actual_length']} entries, more than {context['max_length']}"
    for name, words in {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}.items():
        if name in context:
            return f"must be {words} {context[name]:g}, got {_number(value)}"
    if kind == "invalid_key":
        return f"a key must be text, got {shown(value)}"
    return details["msg"].removeprefix("Value error, ")


def _alternatives(pattern: str) -> str:
    """Words for a pattern; one of the form ^(a|b)$ is a list of words."""
    words = pattern.removeprefix("^(").removesuffix(")$").split("|")
    if all(word.isalpha() for word in words):
        return f"is none of {', '.join(words)}"
    return f"does not match the pattern {pattern}"


def _without_shallow(found: Sequence[_Mismatch]) -> list[_Mismatch]:
    """Without the errors of union members that did not match where another member matched and has errors inside."""
    inner = {each.path[:length] for each in found if each.in_union for length in range(len(each.path))}
    return [each for each in found if not (each.in_union and each.expected and each.path in inner)]


def _by_path(found: Sequence[_Mismatch]) -> list[list[_Mismatch]]:
    groups: dict[FieldPath, list[_Mismatch]] = {}
    for each in found:
        groups.setdefault(each.path, []).append(each)
    return list(groups.values())


def _joined(same_path: Sequence[_Mismatch]) -> str:
    mismatches = [each for each in same_path if each.expected]
    others = [each.message for each in same_path if not each.expected]
    if others:
        return "; ".join(dict.fromkeys(others))
    expected = " or ".join(dict.fromkeys(str(each.expected) for each in mismatches))
    hint = next((each.hint for each in mismatches if each.hint), "")
    return f"expected {expected}, got {mismatches[0].got}{hint}"
