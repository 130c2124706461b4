from __future__ import annotations

import inspect
import re

from models import errors
from models.errors import CardError, FieldProblem, NotReadyError, OverloadedError, RequestError, RouterError


def tree() -> list[type[RouterError]]:
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RouterError)]
    return sorted(classes, key=lambda kind: kind.__name__)


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in tree()]
    assert len(set(codes)) == len(codes) > 15
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)


def test_the_module_s_tree_names_every_error_at_its_place() -> None:
    assert errors.__doc__ is not None
    drawn: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    for line in errors.__doc__.splitlines()[2:]:
        found = re.match(r"([│├└─ ]*)(\w+Error)\b", line)
        if found is None:
            continue
        depth, name = len(found[1]), found[2]
        above = [(level, parent) for level, parent in above if level < depth]
        drawn[name] = above[-1][1] if above else None
        above.append((depth, name))
    assert set(drawn) == {kind.__name__ for kind in tree()}
    for kind in tree():
        parent = drawn[kind.__name__]
        assert parent is None or parent in [base.__name__ for base in kind.__mro__[1:]]


def test_a_problem_tells_its_line_its_path_or_neither() -> None:
    assert str(FieldProblem("agents[2].quality", "is too high", 3)) == "line 3, agents[2].quality: is too high"
    assert str(FieldProblem("quality", "is too high")) == "quality: is too high"
    assert str(FieldProblem("", "is empty", 1)) == "line 1: is empty"
    assert str(FieldProblem("", "is empty")) == "is empty"


def test_an_error_tells_its_problems_line_by_line() -> None:
    error = CardError("2 problems", (FieldProblem(name, "is missing") for name in ("a", "b")))
    assert str(error) == "2 problems\n  a: is missing\n  b: is missing"
    assert error.problems == (FieldProblem("a", "is missing"), FieldProblem("b", "is missing"))
    assert str(CardError("none")) == "none"


def test_an_overload_says_when_to_come_back() -> None:
    for kind in (OverloadedError, NotReadyError):
        assert kind("full", retry_after_ms=250).retry_after_ms == 250
        assert issubclass(kind, RequestError)
