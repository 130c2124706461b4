from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "name", ["models.card", "models.deadline", "router.planner", "router.scorer", "router.versions", "router.why_not"]
)
def test_examples_in_docstrings_hold(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name))
    assert tried > 0
    assert failed == 0
