from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from feedback.leader import BROAD, DEEP, LEAD, Leader

CHANGES = st.lists(
    st.tuples(st.sampled_from(["", "ann", "bob", "cid"]), st.integers(0, 5), st.integers(0, 2 * DEEP)), max_size=40
)


@given(CHANGES)
def test_who_leads_follows_from_the_sums_alone(changes: list[tuple[str, int, int]]) -> None:
    leader, sums = Leader(), defaultdict[str, dict[int, int]](dict)
    for caller, cell, n in changes:
        leader.put(caller, sums[caller].get(cell, 0), n)
        sums[caller][cell] = n
        leads = set(sums)
        for most in (BROAD, DEEP):
            told = {name: sum(min(each, most) for each in of.values()) for name, of in sums.items()}
            leads &= {name for name in sums if told[name] > LEAD * sum(told.values())}
        assert leader.name == ((leads.pop() or None) if leads else None)
