from __future__ import annotations

from router.count_waiters import CountWaiters


async def test_those_are_woken_whose_number_was_reached_in_their_order() -> None:
    waiters = CountWaiters()
    first, second, third = (waiters.add(until) for until in (1, 1, 4))
    assert waiters.reach(0) == 0
    assert waiters.reach(3) == 2
    assert [each.done() for each in (first, second, third)] == [True, True, False]
    assert len(waiters) == 1
    assert waiters.reach(9) == 1
    assert third.done()


async def test_who_gave_up_is_forgotten_and_counts_as_nobody() -> None:
    waiters = CountWaiters()
    for until in range(100):
        waiters.add(until).cancel()
    assert len(waiters) == 1
    kept = waiters.add(100)
    waiters.add(101).cancel()
    assert waiters.reach(200) == 1
    assert kept.done()
    assert not kept.cancelled()
    assert len(waiters) == 0
