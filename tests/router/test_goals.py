from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from intent.dummy_embedder import DummyEmbedder
from models.decision import Action, Reason
from models.errors import InvalidPayloadError
from models.events import GoalRow
from models.settings import Settings
from router.goals import Goals
from router.permit import OPEN
from router.running import running
from tests.builders import capability, card, request
from tests.service_builders import MemoryRecords, service_of


async def stored(*rows: GoalRow) -> MemoryRecords:
    records = MemoryRecords()
    await records.append(rows)
    return records


async def test_the_first_seen_goal_of_a_task_holds() -> None:
    goals = Goals(MemoryRecords())
    assert [await goals.claim("default", "task", goal) for goal in ("one", "two", "one")] == ["one", "one", "one"]


async def test_tasks_of_other_names_and_namespaces_have_their_own() -> None:
    goals = Goals(MemoryRecords())
    assert await goals.claim("default", "task", "one") == "one"
    assert await goals.claim("other", "task", "two") == "two"
    assert await goals.claim("default", "task2", "three") == "three"


async def test_a_goal_in_the_store_is_the_first_seen() -> None:
    goals = Goals(await stored(GoalRow("default", "task", "old", 0)))
    assert await goals.claim("default", "task", "new") == "old"
    assert await goals.claim("other", "task", "new") == "new"


async def test_looking_keeps_nothing() -> None:
    goals = Goals(MemoryRecords())
    assert await goals.claim("default", "task", "dry", keep=False) == "dry"
    assert await goals.claim("default", "task", "real") == "real"
    assert await goals.claim("default", "task", "dry", keep=False) == "real"


async def test_of_two_that_race_one_wins_for_both() -> None:
    class SlowRecords(MemoryRecords):
        async def goal(self, namespace: str, task_id: str) -> str | None:
            found = await super().goal(namespace, task_id)
            await asyncio.sleep(0)
            return found

    goals = Goals(SlowRecords())
    claims = await asyncio.gather(*(goals.claim("default", "task", f"goal-{n}") for n in range(20)))
    assert set(claims) == {"goal-0"}


async def test_a_task_that_left_the_memory_is_found_in_the_store() -> None:
    records = await stored(GoalRow("default", "task-0", "first", 0))
    goals = Goals(records, max_tasks=2)
    for number in range(5):
        await goals.claim("default", f"task-{number}", "first")
    assert await goals.claim("default", "task-0", "second") == "first"
    assert len(goals._first) == 2


async def test_a_changed_goal_is_not_routed_on() -> None:
    desk = service_of([card("a", capability("echo"))])
    first = await desk.route(request(intent="echo", task_id="task", global_goal_hash="one"))
    assert first.action is Action.INVOKE
    changed = await desk.route(request(intent="echo", task_id="task", global_goal_hash="two"), explain=True)
    assert (changed.action, changed.reason) == (Action.CLARIFY, Reason.GOAL_MISMATCH)
    assert (changed.target, changed.plan, changed.candidates) == (None, [], [])
    assert changed.clarify is not None
    assert changed.clarify.question == "The goal of this task has changed: is it still the same task?"
    assert changed.envelope.global_goal_hash == "two"
    again = await desk.route(request(intent="echo", task_id="task", global_goal_hash="one"))
    assert again.action is Action.INVOKE
    assert {row[:3] for row in desk.records.goals} == {("default", "task", "one")}


@pytest.mark.parametrize("fields", [{"task_id": "task"}, {"global_goal_hash": "two"}, {}])
async def test_half_of_a_goal_is_none(fields: dict[str, str]) -> None:
    desk = service_of([card("a", capability("echo"))])
    await desk.route(request(intent="echo", task_id="task", global_goal_hash="one"))
    decision = await desk.route(request(intent="echo", **fields))
    assert decision.action is Action.INVOKE
    assert len(desk.records.goals) == 1


async def test_a_dry_run_claims_no_goal_but_sees_one() -> None:
    desk = service_of([card("a", capability("echo"))])
    dry = await desk.route(request(intent="echo", task_id="task", global_goal_hash="dry", dry_run=True))
    assert dry.action is Action.INVOKE
    assert desk.records.rows == []
    real = await desk.route(request(intent="echo", task_id="task", global_goal_hash="real"))
    assert real.action is Action.INVOKE
    seen = await desk.route(request(intent="echo", task_id="task", global_goal_hash="dry", dry_run=True))
    assert seen.reason is Reason.GOAL_MISMATCH


async def test_of_two_requests_that_race_one_goal_wins() -> None:
    desk = service_of([card("a", capability("echo"))])
    decisions = await asyncio.gather(
        *(desk.route(request(intent="echo", task_id="task", global_goal_hash=goal)) for goal in ("one", "two"))
    )
    assert [decision.reason for decision in decisions] == [Reason.ONLY_CANDIDATE, Reason.GOAL_MISMATCH]
    assert {row.goal_hash for row in desk.records.goals} == {"one"}


async def test_a_goal_first_seen_with_an_invalid_payload_is_written_down_too() -> None:
    desk = service_of([card("a", capability("echo"))])
    with pytest.raises(InvalidPayloadError):
        await desk.route(request(intent="echo", task_id="task", global_goal_hash="one", payload=5))
    changed = await desk.route(request(intent="echo", task_id="task", global_goal_hash="two"))
    assert changed.reason is Reason.GOAL_MISMATCH
    assert [row.goal_hash for row in desk.records.goals] == ["one"]


async def test_a_goal_outlives_a_restart(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/store.db", watch=False)
    reasons = []
    for goal, namespace in (("one", "default"), ("two", "default"), ("two", "other"), ("one", "default")):
        async with running(settings, embedder=DummyEmbedder()) as parts:
            await parts["readiness"].ready.wait()
            asked = request(intent="echo", task_id="task", global_goal_hash=goal, namespace=namespace)
            decision, _ = await parts["service"].route(asked, OPEN)
            reasons.append(decision.reason)
    assert reasons == [
        Reason.NO_CAPABLE_AGENT,
        Reason.GOAL_MISMATCH,
        Reason.NO_CAPABLE_AGENT,
        Reason.NO_CAPABLE_AGENT,
    ]
