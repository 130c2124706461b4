"""Success heads with the real service, its encoder and its command line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.embedder import bundled
from intent.model_folder import Origin, save_heads
from tests.router.promotions import CARDS, fitted
from tests.service.conftest import Serve
from tests.service.server import Server, run, run_json
from tests.success_world import FLEET, easy, hard, success_heads

N = 40
UNSEEN = 10_000
"""Requests from here on are none that the heads were fitted on."""

DEFAULTS = {"confidence": {"accept": 0.0, "plausible": 0.0}, "weights": {"similarity": 0.0}}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same classifiers with success heads, without, and with those of another encoder."""
    encoder, folder = bundled(), tmp_path_factory.mktemp("models")
    # words alone are never enough, so that there is a vector
    classifiers = replace(fitted(encoder, is_good=True), early=1.1)
    contents = {"with": success_heads(encoder), "without": None, "foreign": success_heads(DummyEmbedder(), n=500)}
    for name, heads in contents.items():
        origin = Origin(encoder_id=encoder.encoder_id, made_by="retrain")
        save_heads(classifiers, folder / name, origin, None, None if heads is None else heads.to_bytes())
    return {name: folder / name for name in contents}


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    folder = tmp_path_factory.mktemp("fleet")
    cards = [each.model_dump(mode="json") for each in (*FLEET, *CARDS) if each.agent_id != "tracker"]
    (folder / "cards.json").write_text(json.dumps({"agents": cards}))
    (folder / "policy.yaml").write_text(json.dumps(policy()))
    return ("--cards", str(folder / "cards.json"), "--policy", str(folder / "policy.yaml"))


@pytest.fixture(scope="module")
def server(serve: Serve, models: dict[str, Path], options: Sequence[str]) -> Server:
    return serve(*options, "--model", str(models["with"]))


def policy(**learning: Any) -> dict[str, Any]:
    return {"defaults": DEFAULTS, "learning": {"exponents": False, **learning}}


def decided(server: Server, kind: Callable[[int], str], n: int = N) -> list[dict[str, Any]]:
    requests = [{"utterance": kind(UNSEEN + seed)} for seed in range(n)]
    answers: list[dict[str, Any]] = server.client.post("/route/batch?explain=true", json=requests).json()
    read = {(each["intent"]["name"], each["intent"]["source"]) for each in answers}
    assert read == {("track_parcel", "semantic")}
    return answers


def named(answers: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(each["target"]["agent_id"] for each in answers)


def test_each_request_goes_to_the_cheapest_agent_that_can_do_it(server: Server) -> None:
    of_hard, of_easy = decided(server, hard), decided(server, easy)
    assert named(of_hard)["dear"] >= 0.9 * N
    assert named(of_easy)["cheap"] >= 0.9 * N
    for each in of_hard:
        predicted = {found["agent_id"]: found["predicted"] for found in each["candidates"]}
        assert predicted["dear"] > predicted["cheap"] + 0.2
    assert {verdict(server, each["decision_id"]) for each in (*of_hard[:5], *of_easy[:5])} == {("equal", None)}


def verdict(server: Server, decision_id: str) -> tuple[str, str | None]:
    told = server.client.post(f"/decisions/{decision_id}/replay").json()
    return told["verdict"], told["detail"]


@pytest.mark.parametrize(("learning", "shows"), [({"mode": "observe"}, True), ({"heads": False}, False)])
def test_the_policy_leaves_heads_without_effect(server: Server, learning: dict[str, Any], shows: bool) -> None:
    try:
        server.client.put("/policy", json=policy(**learning)).raise_for_status()
        answers = decided(server, hard)
        assert named(answers) == {"cheap": N}
        qualities = {each["features"]["quality"] for answer in answers for each in answer["candidates"]}
        assert [round(each, 6) for each in qualities] == [0.7]
        assert {each["predicted"] is not None for answer in answers for each in answer["candidates"]} == {shows}
    finally:
        server.client.put("/policy", json=policy()).raise_for_status()


def test_an_agent_without_a_head_keeps_what_is_known_of_it(server: Server) -> None:
    form = {"input_schema": "text", "output_schema": "text", "quality": 0.55, "cost_level": 5}
    served = [{"intent": "track_parcel", "examples": ["where is my parcel"], **form}]
    card = {"version": "1.0.0", "endpoint": "http://new/", "capabilities": served}
    server.client.put("/agents/new", json=card).raise_for_status()
    try:
        for answer in decided(server, hard, n=5):
            found = {
                each["agent_id"]: (each["predicted"], each["features"]["quality"]) for each in answer["candidates"]
            }
            assert found["new"] == (None, pytest.approx(0.55, abs=0.2))
            assert found["dear"][0] is not None
            assert verdict(server, answer["decision_id"]) == ("equal", None)
    finally:
        server.client.delete("/agents/new").raise_for_status()


def test_heads_of_another_encoder_end_the_start_with_a_clear_error(
    models: dict[str, Path], options: Sequence[str], tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    code, _, errors = run("serve", *options, "--port", "0", "--store", store, "--model", str(models["foreign"]))
    assert code == 1
    told = " ".join(errors.split())
    assert "was fitted with the vectors of encoder dummy-64, the encoder at hand is" in told
    assert "Traceback" not in errors


def test_without_heads_one_agent_gets_all_and_what_was_decided_with_them_is_replayed(
    serve: Serve, server: Server, models: dict[str, Path], options: Sequence[str]
) -> None:
    before = [each["decision_id"] for each in decided(server, hard, n=5)]
    server.stop()
    plain = serve(*options, "--model", str(models["without"]), "--store", server.store)
    assert named(decided(plain, hard)) == named(decided(plain, easy)) == {"cheap": N}
    assert {verdict(plain, each) for each in before} == {("equal", None)}
    plain.stop()
    report = run_json("replay", "--all", "--store", server.store)
    assert report["verdicts"] == {"equal": report["n"]}
    assert report["n"] >= 2 * N + 5
