"""Success heads in a running service: of its model, of a candidate in the shadow, of a canary, of what is full."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from feedback.promote import LIMITS, moved
from intent.dummy_embedder import DummyEmbedder
from intent.embedder import FileRecord
from intent.heads import Heads
from intent.model_folder import MANIFEST_FILE, SUCCESS_FILE, read_manifest
from models.decision import RouteDecision
from models.errors import ModelError
from models.events import DecisionRow
from models.promotion import Change, PromotionStage
from router.permit import OPEN
from router.running import Parts
from tests.builders import request
from tests.router.promotions import CARDS, ENCODER, fitted, model_folder, promoting, steps_of
from tests.router.waiting import eventually
from tests.success_world import FLEET, hard, success_heads

SHADOW, CANARY, FULL, *_ = PromotionStage
HALF = replace(LIMITS, canary_share=0.5)
SHIPPED = {"confidence": {"accept": 0.0, "plausible": 0.0}, "weights": {"similarity": 0.0}}
POLICY = {"defaults": SHIPPED, "learning": {"exponents": False}}
OTHERS = tuple(each for each in CARDS if each.agent_id != "tracker")


@pytest.fixture(scope="module")
def classifiers() -> Heads:
    # words alone are never enough, so that there is a vector
    return replace(fitted(DummyEmbedder(), is_good=True), early=1.1)


@pytest.fixture(scope="module")
def content() -> bytes:
    return success_heads(DummyEmbedder()).to_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, classifiers: Heads, content: bytes) -> Path:
    return model_folder(tmp_path_factory.mktemp("models") / "with", classifiers, success=content)


def serving(folder: Path, model: Path | None = None) -> AbstractAsyncContextManager[Parts]:
    policy = folder / "policy.yaml"
    policy.write_text(json.dumps(POLICY))
    return promoting(folder, HALF, (*FLEET, *OTHERS), policy=policy, model=model)


async def said(parts: Parts, seed: int = 1, session: str | None = None) -> RouteDecision:
    caller = {"session_id": session} if session else {}
    decision, _ = await parts["service"].route(request(hard(10_000 + seed), caller=caller), OPEN, explain=True)
    assert decision.intent is not None
    assert (decision.intent.name, decision.intent.source) == ("track_parcel", "semantic")
    return decision


def agent_of(decision: RouteDecision) -> str:
    assert decision.target is not None
    return decision.target.agent_id


async def verdicts(parts: Parts, decisions: list[RouteDecision]) -> set[tuple[str, str | None]]:
    await parts["journal"].flush(5000)
    told = [await parts["replayer"].replay(each.decision_id) for each in decisions]
    return {(each.verdict, each.detail) for each in told if each is not None}


async def to(parts: Parts, stage: PromotionStage, folder: Path) -> None:
    """Put a model in a stage, whatever speaks for it."""
    told = await steps_of(parts).promote(folder)
    assert told.promotion is not None
    assert not told.move.is_refused
    if stage is not PromotionStage.SHADOW:
        after = moved(told.promotion, stage, told.promotion.updated_at, "me", "by hand")
        assert await parts["store"].promotions.change([Change(told.promotion, after)])
    await parts["promotion"].follower.follow()


async def test_a_named_model_serves_its_heads_and_replays_are_equal_without_it(tmp_path: Path, folder: Path) -> None:
    async with serving(tmp_path, model=folder) as parts:
        decisions = [await said(parts, seed) for seed in range(20)]
        assert Counter(map(agent_of, decisions)) == {"dear": 20}
        assert await verdicts(parts, decisions) == {("equal", None)}
    async with serving(tmp_path) as parts:
        assert agent_of(await said(parts)) == "cheap"
        assert await verdicts(parts, decisions) == {("equal", None)}


async def test_an_altered_prediction_is_found(tmp_path: Path, folder: Path) -> None:
    async with serving(tmp_path, model=folder) as parts:
        decision = await said(parts)
        await parts["journal"].flush(5000)
        row = await parts["store"].records.decision(decision.decision_id)
        assert isinstance(row, DecisionRow)
        inputs = json.loads(row.inputs)
        inputs["learned"]["heads"]["said"][0][0] += 0.01
        altered = row._replace(inputs=json.dumps(inputs, separators=(",", ":")))
        seal, before = await parts["store"].seals.seal(decision.decision_id)
        told = await parts["replayer"].replay_sealed(decision.decision_id, seal, before, altered)
        assert (told.verdict, told.part) == ("differs", "weights")


async def test_a_candidate_in_the_shadow_is_compared_with_its_heads(
    tmp_path: Path, folder: Path, classifiers: Heads
) -> None:
    async with serving(tmp_path) as parts:
        await to(parts, SHADOW, folder)
        shadow = parts["promotion"].shadow
        decision = await said(parts)
        assert agent_of(decision) == "cheap"
        await eventually(lambda: shadow.n_read == 1)
        await parts["journal"].flush(5000)
        [(row, _)] = await parts["store"].promotions.shadows(1, "", 10)
        body = json.loads(row.body)
        assert (body["intent"], body["is_same"]) == ("track_parcel", False)
        assert {each[1]: each[3:] for each in body["options"]} == {"cheap": [1.0, 0.0], "dear": [0.0, 1.0]}


async def test_a_canary_goes_by_its_own_heads_and_the_others_go_on(tmp_path: Path, folder: Path) -> None:
    async with serving(tmp_path) as parts:
        await to(parts, CANARY, folder)
        decisions = [await said(parts, number, f"s-{number}") for number in range(60)]
        named = Counter((each.generations.classifier, agent_of(each)) for each in decisions)
        assert sorted(agent for _, agent in named) == ["cheap", "dear"]
        assert min(named.values()) > 15
        assert [agent_of(await said(parts, number, f"s-{number}")) for number in range(60)] == list(
            map(agent_of, decisions)
        )
        assert await verdicts(parts, decisions) == {("equal", None)}


async def test_full_heads_serve_after_a_restart_until_they_are_rolled_back(tmp_path: Path, folder: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "model"))
    async with serving(tmp_path) as parts:
        await to(parts, FULL, copy)
        assert {agent_of(await said(parts, seed)) for seed in range(10)} == {"dear"}
    shutil.rmtree(copy)
    async with serving(tmp_path) as parts:
        assert agent_of(await said(parts)) == "dear"
        await steps_of(parts).roll_back("by hand")
        await parts["promotion"].follower.follow()
        assert agent_of(await said(parts)) == "cheap"


async def test_a_model_without_heads_leaves_the_posteriors(tmp_path: Path, classifiers: Heads) -> None:
    plain = model_folder(tmp_path / "plain", classifiers)
    async with serving(tmp_path, model=plain) as parts:
        decision = await said(parts)
        assert agent_of(decision) == "cheap"
        assert [each.predicted for each in decision.candidates] == [None, None]


async def test_heads_of_another_encoder_end_the_start(tmp_path: Path, classifiers: Heads) -> None:
    class Other(DummyEmbedder):
        encoder_id = "other"

    foreign = model_folder(tmp_path / "foreign", classifiers, success=success_heads(Other(), n=500).to_bytes())
    with pytest.raises(
        ModelError, match=f"success_heads.npz was fitted with the vectors of encoder other, .* {ENCODER};"
    ):
        async with serving(tmp_path, model=foreign):
            pass
    async with serving(tmp_path) as parts:
        [*_, check] = [each for each in (await steps_of(parts).promote(foreign)).move.checks if not each.is_met]
        assert (check.name, "encoder other" in check.told) == ("folder", True)


async def test_damaged_heads_end_the_start(tmp_path: Path, folder: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "model"))
    (copy / SUCCESS_FILE).write_bytes(b"no archive")
    with pytest.raises(ModelError, match=r"success_heads\.npz is not the file of the manifest"):
        async with serving(tmp_path, model=copy):
            pass
    manifest = read_manifest(copy)
    files = {**manifest.files, SUCCESS_FILE: FileRecord.of(b"no archive")}
    (copy / MANIFEST_FILE).write_text(manifest.with_files(files).model_dump_json(), encoding="utf-8")
    with pytest.raises(ModelError, match="no success heads"):
        async with serving(tmp_path, model=copy):
            pass
