from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from models.events import DecisionRow, OutcomeRow, RepeatRow, Row
from router.pending_rows import PendingRows, not_among
from tests.router.stores.samples import decision, event, outcome, repeat, span, used

IDS = st.sampled_from(["a", "b"])
ROWS = st.one_of(
    st.builds(decision, IDS, answer=st.sampled_from(["{}", "other"])),
    st.builds(outcome, IDS, body=st.sampled_from(["1", "22"])),
    st.builds(repeat, IDS),
    st.builds(event, payload=st.sampled_from(["", "xyz"])),
    st.builds(span, st.integers(1, 3)),
    st.builds(used),
)
STEPS = st.lists(st.one_of(st.lists(ROWS, max_size=5), st.integers(0, 6)), max_size=12)


def kept(rows: list[Row]) -> dict[tuple[type[Row], str], Row]:
    """The first row of each key of which a store keeps one."""
    found: dict[tuple[type[Row], str], Row] = {}
    for row in rows:
        if isinstance(row, DecisionRow | RepeatRow):
            found.setdefault((type(row), row.decision_id if isinstance(row, DecisionRow) else row.idempotency_key), row)
    return found


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_what_waits_is_told_as_a_look_at_every_row_finds_it(steps: list[list[Row] | int]) -> None:
    pending, rows, stored = PendingRows(), list[Row](), list[Row]()
    for step in steps:
        if isinstance(step, list):
            pending.put(step, 0.0)
            rows += step
        else:
            stored += rows[:step]
            del rows[:step]
            pending.drop(min(step, len(pending)))
        assert pending.head(100) == rows
        assert (pending.n_put, pending.n_dropped) == (len(stored) + len(rows), len(stored))
        for name in ("a", "b"):
            assert pending.outcomes(name) == [
                row for row in rows if isinstance(row, OutcomeRow) and row.decision_id == name
            ]
        # what a store has of a key already, it is asked for
        for (kind, name), row in kept(rows).items():
            if (kind, name) not in kept(stored):
                told = pending.decision(name) if kind is DecisionRow else pending.repeat("web", name)
                assert told == row
    pending.drop(len(pending))
    assert (pending.n_chars, pending.head(1), pending.outcomes("a")) == (0, [], [])
    assert (pending.decision("a"), pending.repeat("web", "a")) == (None, None)


def test_of_equal_rows_as_many_are_left_as_were_not_stored() -> None:
    rows = [outcome(body="1"), outcome(body="2"), outcome(body="1")]
    assert not_among([rows[0]], rows) == rows[1:]
    assert not_among([], rows) == rows
    assert not_among(rows, rows) == []


def test_what_was_put_together_leaves_together_as_far_as_it_fits() -> None:
    pending = PendingRows()
    assert (pending.oldest_ms, pending.head(5)) == (None, [])
    for n_rows, now_ms in ((2, 10.0), (0, 11.0), (2, 12.0), (7, 13.0)):
        pending.put([used(n) for n in range(n_rows)], now_ms)
    assert [len(pending.head(n_rows)) for n_rows in (1, 2, 3, 4, 10, 11)] == [1, 2, 2, 4, 4, 11]
    pending.drop(3)
    assert (pending.oldest_ms, len(pending.head(3))) == (12.0, 1)
    pending.drop(1)
    assert (pending.oldest_ms, len(pending.head(3))) == (13.0, 3)
