"""Decisions among more agents than are sealed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from intent.dummy_embedder import DummyEmbedder
from models.card import AgentCard
from models.events import DecisionRow
from models.policy import Policy
from models.settings import Settings
from router.permit import OPEN
from router.replayed import Replayed
from router.running import running
from router.sealed_inputs import MOST
from tests.builders import FakeClock, capability, card, request

N = 400


@asynccontextmanager
async def decided(
    folder: Path, agent: Callable[[int], AgentCard], policy: Policy | None = None, **asked: Any
) -> AsyncIterator[tuple[DecisionRow, Replayed]]:
    settings = Settings(store=f"sqlite:///{folder}/store.db", watch=False, classifier=False)
    async with running(settings, embedder=DummyEmbedder(), clock=FakeClock()) as parts:
        await parts["readiness"].ready.wait()
        await parts["registry"].replace_files([agent(number) for number in range(N)])
        await parts["registry"].set_policy(policy or Policy())
        decision, _ = await parts["service"].route(request(intent="work", **asked), OPEN, explain=True)
        await parts["journal"].flush(5000)
        row = await parts["store"].records.decision(decision.decision_id)
        told = await parts["replayer"].replay(decision.decision_id)
        assert row is not None
        assert told is not None
        yield row, told


def ranked(number: int) -> AgentCard:
    """Each is a little worse than the one before; the dearest and the backup stand at the end."""
    work = capability("work", quality=1.0 - number / 1000, cost_level=5 if number == N - 2 else 1)
    return card(f"a{number}", work, backup_agent_id=f"a{N - 1}")


async def test_of_many_those_ranked_first_are_sealed_and_the_decision_is_made_again_of_them(tmp_path: Path) -> None:
    policy = Policy.model_validate({"defaults": {"share_within": 0.0}}, strict=False)
    async with decided(tmp_path, ranked, policy) as (row, told):
        inputs = json.loads(row.inputs)
        sealed = {each[0].split("/")[1] for each in inputs["contenders"]}
        # the slowest is any of them, as all are alike
        assert MOST + 2 <= len(sealed) <= MOST + 3
        assert {"a0", f"a{MOST - 1}", f"a{N - 2}", f"a{N - 1}"} <= sealed
        assert (inputs["n_contenders"], inputs["refs"]) == (N, [5.0, 15000.0])
        assert len(inputs["learned"]["alpha"]) == len(inputs["propensities"]) == len(inputs["contenders"])
        assert len(row.inputs) < 40_000
        assert [step["target"]["agent_id"] for step in json.loads(row.answer)["plan"]][-1] == f"a{N - 1}"
        assert (told.verdict, told.detail, told.is_partial) == ("equal", None, True)


async def test_where_the_others_mattered_it_cannot_be_made_again(tmp_path: Path) -> None:
    async with decided(tmp_path, lambda number: card(f"a{number}", capability("work"))) as (_, told):
        assert (told.verdict, told.part, told.is_partial) == ("not_replayable", None, True)
        assert "more agents" in (told.detail or "")


async def test_of_many_that_are_left_out_so_many_are_sealed(tmp_path: Path) -> None:
    def excluded(number: int) -> AgentCard:
        return card(f"a{number}", capability("work", cost_level=5 if number else 1))

    async with decided(tmp_path, excluded, max_cost_level=1) as (row, told):
        inputs = json.loads(row.inputs)
        assert (len(inputs["left_out"]), inputs["n_left_out"]) == (MOST, N - 1)
        assert (told.verdict, told.is_partial) == ("equal", True)
