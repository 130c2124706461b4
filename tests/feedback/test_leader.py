from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from feedback.leader import LEAD, Leader


@given(st.lists(st.tuples(st.sampled_from(["", "ann", "bob", "cid"]), st.integers(0, 6)), max_size=40))
def test_who_leads_follows_from_the_counts_alone(targets: list[tuple[str, int]]) -> None:
    leader, counts = Leader(), Counter[str]()
    for caller, target in targets:
        while counts[caller] != target:
            step = 1 if counts[caller] < target else -1
            counts[caller] += step
            leader.step(caller, step)
            leads = [name for name, n in counts.items() if n > LEAD * counts.total()]
            assert leader.name == ((leads[0] or None) if leads else None)
