from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from models.contract import SemanticVersion, VersionRange
from router.versions import admits, order, parse

RANGE_PATTERN = TypeAdapter(VersionRange).json_schema()["pattern"]
VERSION_PATTERN = TypeAdapter(SemanticVersion).json_schema()["pattern"]


@pytest.mark.parametrize(
    ("wanted", "version", "admitted"),
    [
        ("1.2.3", "1.2.3", True),
        ("1.2.3", "1.2.4", False),
        ("1.2", "1.2.9", True),
        ("1.2", "1.3.0", False),
        ("1", "1.99.0", True),
        ("=1.2.3", "1.2.3", True),
        (">=2", "1.99.99", False),
        (">=2", "2.0.0", True),
        (">1", "1.5.0", False),
        (">1.2.3", "1.2.4", True),
        ("<2", "1.99.99", True),
        ("<=1", "1.5.0", True),
        ("^1.2", "1.9.0", True),
        ("^1.2", "2.0.0", False),
        ("^0.2", "0.3.0", False),
        ("^0.0.3", "0.0.4", False),
        ("~1.2", "1.2.9", True),
        ("~1.2", "1.3.0", False),
        (">=1.0 <2", "1.4.0", True),
        (">=1.0, <2", "1.4.0", True),
        (">=1.0,<2", "2.0.0", False),
        (">=10", "9.0.0", False),
        (">=1", "2.0.0-rc.1", False),
        (">=1", "1.0.0+build.7", True),
    ],
)
def test_ranges_mean_what_npm_says(wanted: str, version: str, admitted: bool) -> None:
    assert admits(wanted, version) is admitted


def test_leading_zeros_in_a_range_count_for_nothing() -> None:
    assert admits("^01.02", "1.3.0")
    assert not admits("<00.0.0", "0.0.0")
    assert admits(">=0", "0.0.1")
    assert admits(">=100", "100.0.0")


@settings(max_examples=150, derandomize=True, deadline=None)
@given(wanted=st.from_regex(RANGE_PATTERN, fullmatch=True), version=st.from_regex(VERSION_PATTERN, fullmatch=True))
def test_whatever_the_contract_lets_through_gets_an_answer(wanted: str, version: str) -> None:
    assert admits(wanted, version) in (True, False)


def test_versions_are_ordered_by_precedence() -> None:
    # semver.org 2.0.0, paragraph 11
    ordered = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.2.0",
        "1.10.0",
        "2.0.0",
    ]
    shuffled = random.Random(3).sample(ordered, len(ordered))
    assert sorted(shuffled, key=order) == ordered
    assert all(parse(older) < parse(newer) for older, newer in pairwise(ordered))


def test_versions_that_differ_in_build_only_have_an_order_too() -> None:
    versions = ["1.0.0+b", "1.0.0+01", "1.0.0", "1.0.0+1", "1.0.0+a"]
    expected = sorted(versions, key=order)
    for seed in range(5):
        assert sorted(random.Random(seed).sample(versions, len(versions)), key=order) == expected
