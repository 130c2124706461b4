"""NOTICE names whose work is carried along, and under which licence."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["intent/weights", "router/static"])
def test_every_file_of_others_is_named(folder: str) -> None:
    ours = {"__init__.py", "PROVENANCE.md", "manifest.json"}
    names = {path.name for path in (ROOT / folder).iterdir() if path.is_file()} - ours

    assert {name for name in names if f"{folder}/{name}" not in NOTICE} == set()


@pytest.mark.parametrize("part", ["all-MiniLM-L6-v2", "swagger-ui-dist"])
def test_a_part_is_named_with_its_licence(part: str) -> None:
    section = NOTICE.partition(f"\n{part}")[2].partition("\n\n")[0]

    assert "Licensed under the Apache License, Version 2.0" in section


def test_the_weights_are_those_of_the_provenance() -> None:
    provenance = (ROOT / "intent/weights/PROVENANCE.md").read_text(encoding="utf-8")
    revision = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"

    assert revision in NOTICE
    assert revision in provenance
