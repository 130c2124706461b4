from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np

from router.retraining.kept import MOST_OF_CALLER, MOST_OF_INTENT, Kept
from router.retraining.rows import Row, Source


def row(text: str, intent: str = "track", caller: str = "web") -> Row:
    return Row(f"decision:{text}", text, intent, Source.OUTCOMES, 0.25, caller)


def test_one_caller_has_so_many_rows_of_an_intent_and_others_have_theirs() -> None:
    kept = Kept(0)
    for n in range(1000):
        kept.offer(row(f"parcel {n}", caller="mallory"))
    for n in range(5):
        kept.offer(row(f"my parcel {n}", caller="web"))
        kept.offer(row(f"bill {n}", "invoice", "mallory"))
    found = Counter((each.caller, each.intent) for each in kept.rows())
    assert found == {("mallory", "track"): MOST_OF_CALLER, ("web", "track"): 5, ("mallory", "invoice"): 5}
    assert kept.left_out["over_cap"] == 1000 - MOST_OF_CALLER


def test_which_rows_stay_hangs_on_the_seed_and_not_on_the_order() -> None:
    texts = [f"parcel {n}" for n in range(100)]
    found = []
    for seed, order in ((0, texts), (0, texts[::-1]), (0, np.random.default_rng(1).permutation(texts)), (1, texts)):
        kept = Kept(seed)
        for text in order:
            kept.offer(row(str(text)))
        found.append([each.text for each in kept.rows()])
    assert found[0] == found[1] == found[2]
    assert set(found[0]) != set(found[3])
    assert set(found[0]) != set(texts[:MOST_OF_CALLER])


def test_a_text_counts_once_whoever_says_it_and_however_it_is_written() -> None:
    for order in permutations(["Where is it?", "where is it", "WHERE IS IT!"]):
        kept = Kept(0)
        for number, text in enumerate(order):
            kept.offer(row(text, caller=f"c{number}"))
        assert [each.text for each in kept.rows()] == [order[0]]
        assert kept.left_out == {"repeated": 2}


def test_an_intent_has_so_many_rows_of_all_callers() -> None:
    kept = Kept(0)
    for caller in range(40):
        for n in range(MOST_OF_CALLER):
            kept.offer(row(f"parcel {caller}-{n}", caller=f"c{caller}"))
    found = kept.rows()
    assert len(found) == MOST_OF_INTENT
    assert kept.n_held == 40 * MOST_OF_CALLER
    assert max(Counter(each.caller for each in found).values()) <= MOST_OF_CALLER
