from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from router import index as module
from router.index import POOLED_ROWS, Bools, Floats, Index, Ints, Mask, pooled
from tests.router.brute_force import all_owners, at_cosine, unit_rows

SEEDS = st.integers(0, 2**32 - 1)
QUERY = np.eye(16, dtype=np.float32)[0]


def everything(n_rows: int) -> Mask:
    return Mask.of(np.ones(n_rows, dtype=np.bool_))


def nearest(rows: list[Floats], owners: list[int], n_owners: int = 5) -> list[tuple[int, float]]:
    """The owners nearest to QUERY, every row allowed."""
    return Index(np.array(rows)).nearest(QUERY, np.array(owners), everything(len(rows)), n_owners)


def allowed_rows(rng: np.random.Generator, owners: Ints, density: float, single: bool) -> Bools:
    """Random rows, or all those of one owner."""
    if single:
        return np.asarray(owners == rng.choice(owners), dtype=np.bool_)
    return np.asarray(rng.random(len(owners)) < density, dtype=np.bool_)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    seed=SEEDS,
    n_rows=st.integers(1, 200),
    n_owners=st.integers(1, 30),
    density=st.sampled_from([0.02, 0.3, 0.9, 1.0]),
    single=st.booleans(),
    wanted=st.integers(1, 30),
)
def test_answers_equal_brute_force_under_any_mask(
    seed: int, n_rows: int, n_owners: int, density: float, single: bool, wanted: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors = unit_rows(rng, n_rows)
    owners = rng.integers(0, n_owners, n_rows)
    allowed = allowed_rows(rng, owners, density, single)
    query = unit_rows(rng, 1)[0] if rng.random() < 0.5 else vectors[rng.integers(n_rows)]
    expected = all_owners(vectors, owners, allowed, query)

    found = Index(vectors).nearest(query, owners, Mask.of(allowed), wanted)

    best = sorted(expected.values(), reverse=True)[:wanted]
    assert [similarity for _, similarity in found] == pytest.approx(best, abs=1e-5)
    assert {owner: expected[owner] for owner, _ in found} == pytest.approx(dict(found), abs=1e-5)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(seed=SEEDS, n_rows=st.integers(1, 400), few=st.integers(1, 10), more=st.integers(11, 40))
def test_asking_for_more_owners_only_appends(seed: int, n_rows: int, few: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, owners = unit_rows(rng, n_rows), rng.integers(0, 40, n_rows)
    index, mask = Index(vectors), everything(n_rows)
    query = unit_rows(rng, 1)[0]
    assert index.nearest(query, owners, mask, few) == index.nearest(query, owners, mask, more)[:few]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(seed=SEEDS, n_weaker=st.integers(1, 1500), cosine=st.floats(-0.9, 0.9999))
@example(seed=0, n_weaker=1500, cosine=0.9999)
def test_an_identical_text_beats_any_number_of_weaker_ones(seed: int, n_weaker: int, cosine: float) -> None:
    rng = np.random.default_rng(seed)
    weaker = [at_cosine(QUERY, cosine, rng) for _ in range(n_weaker)]
    best, second = nearest([*weaker, QUERY], [0] * n_weaker + [1])
    assert best == (1, 1.0)
    assert second[0] == 0
    assert second[1] < 1.0


@settings(max_examples=200, derandomize=True, deadline=None)
@given(seed=SEEDS, n_rows=st.integers(1, 80), n_added=st.integers(1, 40), cosine=st.floats(-0.9, 1.0))
def test_more_examples_never_lower_an_owner(seed: int, n_rows: int, n_added: int, cosine: float) -> None:
    rng = np.random.default_rng(seed)
    vectors, owners = unit_rows(rng, n_rows), rng.integers(0, 5, n_rows)
    query = unit_rows(rng, 1)[0]
    owner = int(rng.choice(owners))
    before = dict(Index(vectors).nearest(query, owners, everything(n_rows), 5))

    added = np.array([at_cosine(query, cosine, rng) for _ in range(n_added)])
    all_rows, all_own = np.vstack([vectors, added]), np.append(owners, [owner] * n_added)
    after = dict(Index(all_rows).nearest(query, all_own, everything(len(all_rows)), 5))

    assert after[owner] >= before[owner] - 1e-6


def test_one_text_counts_as_its_cosine() -> None:
    rng = np.random.default_rng(1)
    assert dict(nearest([at_cosine(QUERY, 0.6, rng)], [4])) == pytest.approx({4: 0.6}, abs=1e-6)


def test_several_texts_of_an_owner_count_for_more_than_the_best_of_them() -> None:
    similarity = pooled(np.array([1, 1, 1]), np.array([0.8, 0.8, 0.8], dtype=np.float32))[0][1]
    doubt = (1 - np.exp(-0.2 / 0.05)) ** 3
    assert similarity == pytest.approx(1 + 0.05 * np.log(1 - doubt), abs=1e-6)
    assert similarity > 0.85


def test_an_owner_beyond_the_pooled_rows_follows_by_its_nearest_row() -> None:
    rng = np.random.default_rng(2)
    near = [at_cosine(QUERY, 0.7, rng) for _ in range(POOLED_ROWS)]
    far = [at_cosine(QUERY, 0.2, rng) for _ in range(20)]
    found = nearest([*near, *far], [0] * POOLED_ROWS + [1] * 20)
    assert [owner for owner, _ in found] == [0, 1]
    assert found[1][1] == pytest.approx(0.2, abs=1e-6)


def test_rows_are_fetched_until_enough_owners_are_among_them() -> None:
    rng = np.random.default_rng(3)
    crowd = [at_cosine(QUERY, 0.9, rng) for _ in range(3000)]
    others = [at_cosine(QUERY, cosine, rng) for cosine in (0.3, 0.2, 0.1)]
    found = nearest([*crowd, *others], [0] * 3000 + [1, 2, 3], n_owners=4)
    assert [owner for owner, _ in found] == [0, 1, 2, 3]


def test_equal_rows_go_to_the_smaller_owner() -> None:
    row = at_cosine(QUERY, 0.5, np.random.default_rng(4))
    assert [owner for owner, _ in nearest([row, row, row], [7, 2, 5])] == [2, 5, 7]
    assert nearest([QUERY, QUERY], [9, 3]) == [(3, 1.0), (9, 1.0)]


def test_fewer_owners_than_wanted_are_all_there_are() -> None:
    assert [owner for owner, _ in nearest([QUERY, QUERY], [3, 3], n_owners=10)] == [3]


def test_an_empty_index_finds_nothing() -> None:
    index = Index(np.zeros((0, 16), dtype=np.float32))
    assert index.n_rows == 0
    assert index.nearest(QUERY, np.zeros(0, dtype=np.int64), everything(0), 5) == []


def test_a_mask_that_allows_nothing_finds_nothing() -> None:
    mask = Mask.of(np.zeros(3, dtype=np.bool_))
    assert mask.n_allowed == 0
    assert Index(np.eye(3, 16, dtype=np.float32)).nearest(QUERY, np.arange(3), mask, 5) == []


def test_the_one_allowed_row_is_found_however_far_it_is() -> None:
    rng = np.random.default_rng(5)
    rows = np.array([*(at_cosine(QUERY, 0.9, rng) for _ in range(5000)), -QUERY])
    allowed = np.zeros(5001, dtype=np.bool_)
    allowed[5000] = True
    found = Index(rows).nearest(QUERY, np.arange(5001), Mask.of(allowed), 3)
    assert dict(found) == pytest.approx({5000: -1.0}, abs=1e-6)


def test_the_index_keeps_its_own_copy_of_the_rows() -> None:
    rows = np.array([QUERY])
    index = Index(rows)
    rows[:] = 0
    assert index.nearest(QUERY, np.array([0]), everything(1), 1) == [(0, 1.0)]


def test_the_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(module) == (0, 1)


def test_a_digest_tells_other_rows_another_order_and_another_shape() -> None:
    rows = unit_rows(np.random.default_rng(1), 6, 16)
    known = Index(rows).digest()
    assert Index(rows.copy()).digest() == known
    bent = rows.copy()
    bent[3, 5] = np.nextafter(bent[3, 5], np.float32(2))
    others = (bent, rows[::-1], rows[:5], np.ascontiguousarray(rows).reshape(3, 32), np.zeros((0, 16), np.float32))
    assert len({known, *(Index(other).digest() for other in others)}) == 1 + len(others)
