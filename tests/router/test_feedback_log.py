from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from models.events import DecisionRow, OutcomeRow
from models.learning_policy import RewardPolicy
from router.feedback_log import PAGE, entries, logged
from router.stores.feedback_log import LogQuery, RecordedDecision
from tests.router.policy_log import World


class Rows:
    """Recorded decisions in memory, and the most that was asked for at once."""

    def __init__(self, rows: Sequence[RecordedDecision]) -> None:
        self.rows = rows
        self.n_pages = 0

    async def page(self, query: LogQuery, after: tuple[int, str] | None, limit: int) -> Sequence[RecordedDecision]:
        self.n_pages += 1
        key = lambda row: (row.decision.happened_at, row.decision.decision_id)  # noqa: E731
        return [row for row in self.rows if after is None or key(row) > after][:limit]


def recorded(n: int) -> list[RecordedDecision]:
    found = []
    decision: DecisionRow | None = None
    for row in World().rows(n):
        if isinstance(row, DecisionRow):
            decision = row
        elif isinstance(row, OutcomeRow) and decision is not None:
            found.append(RecordedDecision(decision, (row,)))
    return found


async def test_all_decisions_come_once_in_pages() -> None:
    rows = Rows(recorded(2 * PAGE + 5))
    found = [one.decision_id async for one in entries(rows, LogQuery())]
    assert found == [f"d{number:06}" for number in range(2 * PAGE + 5)]
    assert rows.n_pages == 3


async def test_no_page_is_asked_for_before_it_is_needed() -> None:
    rows = Rows(recorded(2 * PAGE))
    async for _ in logged(rows, LogQuery()):
        break
    assert rows.n_pages == 1


async def test_rewards_are_those_of_the_policy() -> None:
    rows = Rows(recorded(40))
    shipped = [one.reward async for one in entries(rows, LogQuery())]
    halved = [one.reward async for one in entries(rows, LogQuery(), RewardPolicy(succeeded=0.5))]
    assert set(shipped) == {0.0, 1.0}
    assert halved == [each and each / 2 for each in shipped]


async def test_records_that_cannot_be_taken_are_counted_and_the_rest_goes_on() -> None:
    rows = recorded(6)
    broken = [
        rows[0],
        rows[1]._replace(decision=rows[1].decision._replace(inputs='{"seed": 1}')),
        rows[2]._replace(decision=rows[2].decision._replace(inputs="")),
        rows[3]._replace(decision=rows[3].decision._replace(answer="null")),
        *rows[4:],
    ]
    unread: Counter[str] = Counter()
    found = [one.entry.decision_id async for one in logged(Rows(broken), LogQuery(), unread=unread)]
    assert found == ["d000000", "d000004", "d000005"]
    assert unread == {"older_format": 1, "unreadable": 2}
