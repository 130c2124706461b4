"""Files and functions of the four packages stay small, and no package has a facade."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path for name in ("router", "intent", "feedback", "models") for path in (ROOT / name).rglob("*.py"))
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 45


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Name and lines of each function, its docstring left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node) is not None:
                n_lines -= (first.end_lineno or first.lineno) - first.lineno + 1
            yield node.name, n_lines


def test_no_file_is_too_long() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}

    assert {name: n for name, n in lines.items() if n > MAX_FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    lines = {f"{path.relative_to(ROOT)}:{name}": n for path in FILES for name, n in functions(path)}

    assert {name: n for name, n in lines.items() if n > MAX_FUNCTION_LINES} == {}


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name == "__init__.py"], ids=lambda path: path.parent.name
)
def test_a_package_holds_a_docstring_and_nothing_else(path: Path) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"))

    assert ast.get_docstring(module)
    assert len(module.body) == 1
