from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from models.contract import (
    AgentId,
    Contract,
    Identifier,
    IntentName,
    Label,
    Namespace,
    Permission,
    SemanticVersion,
    VersionRange,
)
from router.versions import admits, parse


class Sample(Contract):
    """A contract to try the rules on."""

    count: int = 0
    share: float = 0.0
    name: str = ""
    on: bool = False


def accepts(kind: Any, value: Any) -> bool:
    try:
        TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (AgentId, ["a", "A-1.b_c:d@e", "x" * 128], ["", "-a", "a b", "a/b", "é", "a\n", "x" * 129]),
        (Namespace, ["default", "prod/commerce", "a.b/c-d/e_f", "x" * 200], ["", "/a", "a/", "a//b", "a b", "x" * 201]),
        (Identifier, ["x", "trc-1", "~!", "x" * 128], ["", " x", "a b", "é", "a\x7f", "a\n", "x" * 129]),
        (
            IntentName,
            ["order_refund_status", "退款", "with blanks", "x" * 128],
            ["", "a\nb", "\x00", "a\x7f", "x" * 129],
        ),
        (Label, ["eu", " ", "x" * 128], ["", "x" * 129]),
        (Permission, ["user:erase", "*"], ["", "a b", "é"]),
        (
            SemanticVersion,
            ["0.0.0", "1.10.3", "1.0.0-rc.1", "1.0.0-x-y.0+b.01", "999999999.0.0"],
            ["1", "1.0", "01.0.0", "v1.0.0", "1.0.0-01", "1.0.0-", "1.0.0+", "1.0.0\n", "1000000000.0.0"],
        ),
        (
            VersionRange,
            ["1", ">=2", "^1.2", "~1.2.3", ">=1.0 <2.0", ">=1.0, <2.0", ">=1.0,<2.0", "=0.0.0", "1 2 3 4 5 6"],
            ["", ">= 2", "1.2.3.4", "*", "latest", "01", ">=1.02", "1.0.0-rc.1", "1  2", "1 ", "1 2 3 4 5 6 7", "||"],
        ),
    ],
)
def test_strings_have_their_forms(kind: Any, good: list[str], bad: list[str]) -> None:
    assert [value for value in good if not accepts(kind, value)] == []
    assert [value for value in bad if accepts(kind, value)] == []


NUMBERS = st.one_of(st.sampled_from(["0", "1", "00", "01", "10", "999999999"]), st.integers(0, 10**10).map(str))
OPERATORS = st.sampled_from(["", ">=", "<=", ">", "<", "=", "^", "~"])
COMPARATORS = st.builds(
    lambda operator, numbers: operator + ".".join(numbers), OPERATORS, st.lists(NUMBERS, min_size=1, max_size=4)
)


@given(
    comparators=st.lists(COMPARATORS, min_size=1, max_size=7),
    separator=st.sampled_from([" ", ",", ", "]),
    version=st.sampled_from(["0.0.0", "1.2.3", "2.0.0-rc.1", "1.0.0+build"]),
)
def test_every_range_that_is_accepted_can_be_asked(comparators: list[str], separator: str, version: str) -> None:
    wanted = separator.join(comparators)
    if accepts(VersionRange, wanted):
        assert admits(wanted, version) in (True, False)


PARTS = st.text("0123456789abcXYZ-.+", max_size=20)


@given(core=st.lists(NUMBERS, min_size=3, max_size=3), rest=PARTS)
def test_every_version_that_is_accepted_can_be_compared(core: list[str], rest: str) -> None:
    version = ".".join(core) + rest
    if accepts(SemanticVersion, version):
        assert parse(version).precedence_key is not None
        assert str(parse(version)) == version


@pytest.mark.parametrize(
    "fields",
    [{"extra": 1}, {"count": "1"}, {"count": 1.0}, {"count": True}, {"share": "0.5"}, {"name": 5}, {"on": 1}],
)
def test_nothing_unknown_is_taken_and_nothing_is_coerced(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        Sample.model_validate(fields)
    assert [error["loc"] for error in caught.value.errors()] == [tuple(fields)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValidationError):
        Sample(share=value)


def test_a_whole_number_may_stand_for_a_float() -> None:
    assert Sample.model_validate({"share": 1}).share == 1.0


def test_instances_do_not_change() -> None:
    sample = Sample()
    with pytest.raises(ValidationError):
        sample.count = 1
