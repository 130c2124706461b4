from __future__ import annotations

from router.random_ids import random_ids
from tests.builders import START_MS, FakeClock

N = 3000
"""More than one block of digits is good for."""


def test_ids_are_hexadecimal_distinct_and_rise_with_the_time() -> None:
    clock = FakeClock()
    ids = random_ids(clock)
    made = []
    for _ in range(N):
        made.append(ids.new())
        clock.advance(1)
    assert {len(each) for each in made} == {32}
    assert [int(each[:12], 16) for each in made] == [int(START_MS) + number for number in range(N)]
    assert made == sorted(made)
    assert len({each[16:] for each in made}) == N


def test_ids_of_one_millisecond_differ_and_no_digit_of_chance_is_used_twice() -> None:
    ids = random_ids(FakeClock())
    chances = {ids.new()[12:] for _ in range(N)}
    assert len(chances) == N
    assert len({chance[start : start + 10] for chance in chances for start in (0, 10)}) == 2 * N


def test_seeds_fill_their_range() -> None:
    ids = random_ids(FakeClock())
    seeds = [ids.seed() for _ in range(N)]
    assert len(set(seeds)) == N
    assert 0 <= min(seeds) < 2**56
    assert 2**63 - 2**56 < max(seeds) < 2**63
