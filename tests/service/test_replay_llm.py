"""Replays of decisions in which a language model had a say: its answer is taken as sealed, all else made again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from intent.embedder import bundled
from models.ports import Embedder
from tests.llm_desk import desk_of
from tests.llm_server import Asked, LlmServer, Reply, fails, says
from tests.llm_world import CANCEL


@pytest.fixture(scope="module")
def encoder() -> Embedder:
    return bundled()


def none_of_them(_: Asked) -> Reply:
    return says('{"choice": "none"}')


def broken(_: Asked) -> Reply:
    return fails(500)


@pytest.mark.parametrize(
    ("script", "reason", "degraded"),
    [
        (CANCEL, "only_candidate", []),
        (none_of_them, "out_of_scope", []),
        (broken, "ambiguous", ["llm: llm_error"]),
    ],
    ids=["chosen", "none", "broken"],
)
async def test_the_answer_of_the_model_is_taken_and_the_rest_made_again(
    tmp_path: Path, encoder: Embedder, script: Callable[[Asked], Reply], reason: str, degraded: list[str]
) -> None:
    async with LlmServer(script) as server, desk_of(tmp_path, encoder, server.base_url) as desk:
        decision = await desk.route()
        assert (decision["reason"], decision["degraded"]) == (reason, degraded)
        n_asked = len(server.asked)
        assert n_asked > 0
        told = (await desk.client.post(f"/decisions/{decision['decision_id']}/replay")).json()
        assert (told["verdict"], told["detail"], told["taken"]) == ("equal", None, ["llm"])
        assert {"classifier", "reading", "answer"} <= set(told["checked"])
        assert len(server.asked) == n_asked
