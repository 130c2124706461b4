"""The four top-level names are generic: what is imported must be ours, whatever else lies around."""

from __future__ import annotations

from importlib.metadata import packages_distributions

import pytest


@pytest.mark.parametrize("name", ["router", "intent", "feedback", "models"])
def test_a_top_level_name_belongs_to_this_distribution_alone(name: str) -> None:
    assert set(packages_distributions()[name]) == {"agency-router"}
