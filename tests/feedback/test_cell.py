from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedback.caller_cap import Cap
from feedback.cell import ZERO, Cell, Sums
from models.events import EVIDENCE_UNIT

U = EVIDENCE_UNIT
CAP = Cap(0.1, 0)
NAMES = ["", "ann", "bob", "cid", "dan", "eve"]
SUMS = st.tuples(st.sampled_from([0, 1, 5, 20, 100]), st.sampled_from([0, 0.5, 1])).map(
    lambda drawn: (drawn[0] * U, int(drawn[0] * U * drawn[1]))
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), SUMS), st.lists(st.tuples(st.sampled_from(NAMES), SUMS)), st.data())
def test_what_counts_follows_from_the_sums_alone(final: dict[str, Sums], before: list[Any], data: Any) -> None:
    last = dict.fromkeys(NAMES, ZERO) | final
    long, short = Cell(), Cell()
    for caller, sums in [*before, *last.items()]:
        long.put(caller, sums)
        long.counted(CAP, None)
    for caller in data.draw(st.permutations(sorted(final))):
        short.put(caller, final[caller])

    for leader in (None, "ann"):
        counted = long.counted(CAP, leader)
        assert counted == short.counted(CAP, leader)
        n = counted.sums[0] + sum(told.n for told in counted.beyond)
        s = counted.sums[1] + sum(told.s for told in counted.beyond)
        assert (n, s) == (long.n, long.s)
        assert n == sum(of[0] for of in final.values())
        assert s == sum(of[1] for of in final.values())


@pytest.mark.parametrize(("told", "counted"), [({"ann": 50, "bob": 20, "cid": 3}, 43), ({"ann": 50}, 0)])
def test_nobody_counts_for_more_than_the_next_one(told: dict[str, int], counted: int) -> None:
    cell = Cell()
    for caller, n in told.items():
        cell.put(caller, (n * U, n * U))

    assert cell.counted(CAP, None).sums == (counted * U, counted * U)
