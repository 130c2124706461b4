from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from feedback.leader import LEAD, MOST_TOLD, Leader

CHANGES = st.lists(
    st.tuples(st.sampled_from(["", "ann", "bob", "cid"]), st.integers(0, 5), st.integers(0, 2 * MOST_TOLD)), max_size=40
)


@given(CHANGES)
def test_who_leads_follows_from_the_sums_alone(changes: list[tuple[str, int, int]]) -> None:
    leader, sums = Leader(), defaultdict[str, dict[int, int]](dict)
    for caller, cell, n in changes:
        leader.put(caller, sums[caller].get(cell, 0), n)
        sums[caller][cell] = n
        n_sums = {name: sum(each > 0 for each in of.values()) for name, of in sums.items()}
        told = {name: sum(min(each, MOST_TOLD) for each in of.values()) for name, of in sums.items()}
        leads = [
            name
            for name in sums
            if n_sums[name] > LEAD * sum(n_sums.values()) and told[name] > LEAD * sum(told.values())
        ]
        assert leader.name == ((leads[0] or None) if leads else None)
