from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from feedback.attribution import Charge, Party
from feedback.learner import Learner
from models.errors import NotFoundError
from models.events import LearnerRow
from models.outcome import Outcome, OutcomeStatus
from models.policy import Policy
from models.ports import WeightStore
from router.journal import Journal
from router.learning import Learning
from router.live.open_decisions import OpenDecision, Step
from router.stores.open import open_store
from router.weight_keeper import BEFORE, NEWEST, WeightKeeper, too_many
from tests.builders import START_MS, FakeClock

AGENT = ("default", "a", "1.0.0")
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


class Kept:
    """A keeper over a store of its own."""

    def __init__(
        self, keeper: WeightKeeper, weights: WeightStore, learning: Learning, journal: Journal, policy: Policy
    ) -> None:
        self.keeper = keeper
        self.weights = weights
        self.learning = learning
        self.journal = journal
        self.policy = policy

    def learn(self, n: int, status: OutcomeStatus = OutcomeStatus.SUCCEEDED, cost_usd: float | None = None) -> None:
        for number in range(n):
            opened = OpenDecision(
                f"d{number}", "t", "s", "", "web", "", "default", "echo", None, None, None,
                (Step(AGENT, 1000, 1000, 0, (), ()),), intents=(("echo", 1.0),),
            )  # fmt: skip
            outcome = Outcome(decision_id=opened.decision_id, status=status, cost_usd=cost_usd)
            charged = Charge(Party.AGENT, status is not OutcomeStatus.SUCCEEDED)
            self.learning.take(opened, outcome, charged, self.policy, 0)

    async def back(self, version: int | None = None) -> int:
        going = asyncio.ensure_future(self.keeper.roll_back(version))
        while not going.done():
            await asyncio.sleep(0)
            await self.journal.flush(1000)
        return going.result()

    @property
    def evidence(self) -> tuple[float, float]:
        return self.learning.learner.evidence_of(AGENT, "echo")


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    clock, policy = FakeClock(), Policy.model_validate({"learning": {"snapshot_every": 10}})
    learning = Learning(Learner())
    learning.learner.declare({AGENT: {"echo": 0.5}})
    async with open_store(f"sqlite:///{tmp_path}/a.db", clock=clock) as store:
        journal = Journal(store.records, max_rows=1000, batch=1000, wait_ms=1, clock=clock)
        keeper = WeightKeeper(learning, store.weights, journal, lambda: policy, clock)
        yield Kept(keeper, store.weights, learning, journal, policy)


async def test_a_snapshot_is_taken_after_as_many_outcomes_as_the_policy_says(kept: Kept) -> None:
    kept.learn(9)
    await kept.keeper.tick()
    assert await kept.keeper.snapshots() == []
    kept.learn(1)
    await kept.keeper.tick()
    await kept.keeper.tick()
    assert [each.version for each in await kept.keeper.snapshots()] == [kept.learning.learner.version]


async def test_what_was_learned_before_a_restart_counts_towards_the_next_snapshot(kept: Kept) -> None:
    await kept.keeper.take("test")
    kept.learn(7)
    again = Learning(kept.learning.learner)
    keeper = WeightKeeper(again, kept.weights, kept.journal, lambda: kept.policy, FakeClock())
    kept.learning = again
    await keeper.resume()
    kept.learn(2)
    await keeper.tick()
    assert len(await keeper.snapshots()) == 1
    kept.learn(1)
    await keeper.tick()
    newest, first = await keeper.snapshots()
    assert newest.version == again.learner.version > first.version


def of_agent(kept: Kept) -> dict[str, Any]:
    """What is known of the agent beside its evidence."""
    rows = [row for row in kept.learning.learner.rows(at_ms=0) if isinstance(row, LearnerRow)]
    found: dict[str, Any] = json.loads(next(row.body for row in rows if (row.namespace, *row[1:3]) == AGENT))
    return found


async def test_a_rollback_takes_back_what_drift_and_cost_have_seen_too_and_leaves_a_freeze(kept: Kept) -> None:
    kept.learn(30, cost_usd=0.01)
    await kept.keeper.take("test")
    version, known = kept.learning.learner.version, of_agent(kept)
    assert known["cusum"] < 0.1
    kept.learn(3, OutcomeStatus.FAILED, cost_usd=5.0)
    later = of_agent(kept)
    assert later["cusum"] > known["cusum"] + 1
    assert (later["recent"], later["costs"], later["n_outcomes"]) != (known["recent"], known["costs"], 30)
    kept.learning.learner.freeze("an audit", 1)
    await kept.back(version)
    assert of_agent(kept) == known
    assert kept.learning.learner.frozen == "an audit"
    assert kept.learning.learner.version > version


async def test_each_rollback_without_a_version_goes_one_further_back(kept: Kept) -> None:
    for n in (10, 10, 10):
        kept.learn(n)
        await kept.keeper.take("test")
    kept.learn(5, OutcomeStatus.FAILED)
    found = []
    for _ in range(3):
        await kept.back()
        found.append(kept.evidence)
    assert found == [(30.0, 30.0), (20.0, 20.0), (10.0, 10.0)]
    with pytest.raises(NotFoundError, match="no snapshot of earlier weights"):
        await kept.back()


async def test_after_a_restart_a_rollback_goes_on_one_further_back(kept: Kept) -> None:
    for n in (10, 10, 10):
        kept.learn(n)
        await kept.keeper.take("test")
    kept.learn(5, OutcomeStatus.FAILED)
    await kept.back()
    await kept.back()
    kept.keeper = WeightKeeper(kept.learning, kept.weights, kept.journal, lambda: kept.policy, FakeClock())
    await kept.keeper.resume()
    await kept.back()
    assert kept.evidence == (10.0, 10.0)


async def test_after_new_outcomes_a_rollback_begins_anew(kept: Kept) -> None:
    kept.learn(10)
    await kept.keeper.take("test")
    kept.learn(10)
    await kept.keeper.take("test")
    kept.learn(5, OutcomeStatus.FAILED)
    await kept.back()
    assert kept.evidence == (20.0, 20.0)
    kept.learn(5)
    await kept.back()
    assert kept.evidence == (20.0, 20.0)


async def test_a_rollback_can_be_taken_back_by_its_version(kept: Kept) -> None:
    kept.learn(10)
    await kept.keeper.take("test")
    kept.learn(7)
    version = kept.learning.learner.version
    await kept.back()
    assert [each.version for each in await kept.keeper.snapshots() if each.reason == BEFORE] == [version]
    await kept.back(version)
    assert kept.evidence == (17.0, 17.0)


def test_of_older_snapshots_one_an_hour_and_then_one_a_day_is_kept() -> None:
    now_ms = int(START_MS) // DAY_MS * DAY_MS + DAY_MS - 1
    every_10_min = [(number, now_ms - (10_000 - number) * 600_000) for number in range(10_000, 0, -1)]
    gone = set(too_many(every_10_min, now_ms))
    stay = [(version, at) for version, at in every_10_min if version not in gone]
    assert [version for version, _ in stay[:NEWEST]] == list(range(10_000, 10_000 - NEWEST, -1))
    ages = [(now_ms - at) / HOUR_MS for _, at in stay[NEWEST:]]
    hourly = [age for age in ages if age < 48]
    daily = [age for age in ages if age >= 48]
    assert len(hourly) == 45
    assert max(b - a for a, b in pairwise(daily)) == 24
    assert too_many(stay, now_ms) == []


def test_what_is_older_than_90_days_goes() -> None:
    assert too_many([(n, 0) for n in range(30, 0, -1)], 91 * DAY_MS) == list(range(10, 0, -1))
