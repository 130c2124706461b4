from __future__ import annotations

from collections import Counter

from models.learning_policy import RewardPolicy
from router.feedback_log import PAGE, entries, logged
from router.stores.feedback_log import LogQuery
from tests.router.policy_log import Pages, World


async def test_all_decisions_come_once_in_pages() -> None:
    rows = Pages(World().rows(2 * PAGE + 5))
    found = [one.decision_id async for one in entries(rows, LogQuery())]
    assert found == [f"d{number:06}" for number in range(2 * PAGE + 5)]
    assert rows.n_pages == 3


async def test_no_page_is_asked_for_before_it_is_needed() -> None:
    rows = Pages(World().rows(2 * PAGE))
    async for _ in logged(rows, LogQuery()):
        break
    assert rows.n_pages == 1


async def test_rewards_are_those_of_the_policy() -> None:
    rows = Pages(World().rows(40))
    shipped = [one.reward async for one in entries(rows, LogQuery())]
    halved = [one.reward async for one in entries(rows, LogQuery(), RewardPolicy(succeeded=0.5))]
    assert set(shipped) == {0.0, 1.0}
    assert halved == [each and each / 2 for each in shipped]


async def test_records_that_cannot_be_taken_are_counted_and_the_rest_goes_on() -> None:
    pages = Pages(World().rows(6))
    rows = pages.rows
    pages.rows = [
        rows[0],
        rows[1]._replace(decision=rows[1].decision._replace(inputs='{"seed": 1}')),
        rows[2]._replace(decision=rows[2].decision._replace(inputs="")),
        rows[3]._replace(decision=rows[3].decision._replace(answer="null")),
        *rows[4:],
    ]
    unread: Counter[str] = Counter()
    found = [one.entry.decision_id async for one in logged(pages, LogQuery(), unread=unread)]
    assert found == ["d000000", "d000004", "d000005"]
    assert unread == {"older_format": 1, "unreadable": 2}
