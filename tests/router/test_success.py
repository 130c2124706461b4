from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

import numpy as np
import pytest

from feedback.success_heads import SuccessHeads
from feedback.success_slates import Slates
from intent.dummy_embedder import DummyEmbedder
from models.decision import RouteDecision
from models.learning_policy import RetentionPolicy
from models.outcome import Outcome
from models.policy import Policy
from models.ports import Embedded
from models.reading import Certainty, Reading
from router.case_plan import asked_of
from router.extraction import find
from router.learned import Foreseen, Learned, Said
from router.logged_decision import read_record
from router.permit import OPEN
from router.selection import Selection
from router.service import Ids
from router.success import Asked, chosen_with, foretold, heads_of, sealed_heads, without_heads
from router.target_policy import TargetPolicy
from tests.builders import START_MS, capability, card, request, snapshot_of
from tests.service_builders import Desk, case_of, service_of
from tests.success_world import CHEAP, DEAR, FLEET, easy, hard, success_heads

ENCODER = DummyEmbedder()
N_ASKED = 40
NEW = card("new", capability("track_parcel", ["where is my parcel"], quality=0.7, cost_level=3), max_inflight=1000)
KNOWN = Learned("exploit", (6.0, 30.0), (4.0, 10.0), 0.0, 0.5, 3)
UNSEEN = 10_000
LOST_AFTER = 150
BACK_AFTER = 300
RULES: tuple[tuple[str, dict[str, Any]], ...] = (("with", {}), ("without", {"heads": False}))
READING = Reading(
    "where is it", "en", Certainty.SURE, "track_parcel", 0.9, "semantic", vector=ENCODER.embed("it").vector
)


class Shorter(DummyEmbedder):
    """Says that it is the same encoder, and is not."""

    dim = 32

    def embed(self, text: str) -> Embedded:
        values = np.frombuffer(super().embed(text).vector, dtype="<f4")[:32].copy()
        values[0] += 1e-3
        return Embedded((values / np.linalg.norm(values)).astype("<f4").tobytes(), 0.0)


@pytest.fixture(scope="module")
def heads() -> SuccessHeads:
    return success_heads(ENCODER)


def policy_of(**learning: Any) -> Policy:
    """With one intent to be meant: whatever is said means it. What live state would do is left out."""
    out = {"enabled": False}
    weights = {"similarity": 0.0, "health": 0.0, "load": 0.0}
    sure = {"accept": 0.0, "plausible": 0.0}
    defaults = {"confidence": sure, "weights": weights, "breaker": out, "dependency": out, "ejection": out}
    return Policy.model_validate({"defaults": defaults, "learning": {"exponents": False, **learning}})


def desk_of(success: SuccessHeads | None, *, cards: Sequence[Any] = FLEET, **learning: Any) -> Desk:
    return service_of(cards, policy_of(**learning), success=success)


async def asked(desk: Desk, utterance: str, **fields: Any) -> RouteDecision:
    decision = await desk.route(request(utterance, **fields), explain=True)
    assert decision.target is not None
    return decision


async def named(desk: Desk, kind: Any) -> Counter[str]:
    """Whom requests of a kind go to, of which the heads have not seen one."""
    decisions = [await asked(desk, kind(UNSEEN + seed)) for seed in range(N_ASKED)]
    assert {each.intent and each.intent.source for each in decisions} == {"semantic"}
    return Counter(each.target.agent_id for each in decisions if each.target)


async def selected(desk: Desk, text: str, policy: Policy) -> Selection:
    """The selection of a case, as it stands after the decision."""
    case = case_of(request(text), snapshot_of(FLEET, policy))
    await desk.service._decider.decide(case)
    assert case.selection is not None
    return case.selection


def question(heads: SuccessHeads, text: str) -> Asked:
    return Asked(Slates(heads), text, ENCODER.embed(text).vector)


def entries_of(*cards: Any) -> Any:
    return snapshot_of(cards or FLEET).routable(("default",), "track_parcel")


async def test_hard_requests_go_to_who_can_do_them_and_easy_ones_to_the_cheap_one(heads: SuccessHeads) -> None:
    desk = desk_of(heads)
    assert (await named(desk, hard))["dear"] >= 0.95 * N_ASKED
    assert (await named(desk, easy))["cheap"] >= 0.95 * N_ASKED
    assert desk.learning.n_failures == 0


async def test_without_heads_one_agent_gets_all(heads: SuccessHeads) -> None:
    for desk in (desk_of(None), desk_of(heads, heads=False)):
        assert await named(desk, hard) == await named(desk, easy) == {"cheap": N_ASKED}


async def test_the_explanation_shows_what_was_predicted_and_made_of_it(heads: SuccessHeads) -> None:
    decision = await asked(desk_of(heads, cards=(*FLEET, NEW)), hard(1))
    found = {each.agent_id: each for each in decision.candidates}
    assert found["new"].predicted is None
    assert (found["new"].features and found["new"].features.quality) == 0.7
    for name, low, high in (("dear", 0.75, 0.97), ("cheap", 0.03, 0.4)):
        predicted, features = found[name].predicted, found[name].features
        assert predicted is not None
        assert features is not None
        assert low < predicted < high
        assert features.quality == pytest.approx(0.75 * predicted + 0.25 * 0.7)


async def test_what_is_sealed_is_blended_and_says_what_the_heads_said(heads: SuccessHeads) -> None:
    desk = desk_of(heads, cards=(*FLEET, NEW))
    decision = await asked(desk, hard(1))
    learned = json.loads(desk.records.decisions[-1].inputs)["learned"]
    predicted = {each.agent_id: each.predicted for each in decision.candidates}
    assert learned["heads"] == {
        "said": [[predicted["cheap"], 0.75], [predicted["dear"], 0.75], None],
        "alpha": [pytest.approx(7)] * 3,
        "beta": [pytest.approx(3)] * 3,
    }
    means = [alpha / (alpha + beta) for alpha, beta in zip(learned["alpha"], learned["beta"], strict=True)]
    features = {each.agent_id: each.features.quality for each in decision.candidates if each.features}
    assert means == pytest.approx([features[name] for name in ("cheap", "dear", "new")])


async def test_mode_observe_decides_as_without_heads(heads: SuccessHeads) -> None:
    with_heads, without = [await asked(desk_of(each, mode="observe"), hard(1)) for each in (heads, None)]
    assert [each.predicted is None for each in with_heads.candidates] == [False, False]
    told = [each.model_copy(update={"predicted": None}) for each in with_heads.candidates]
    assert (with_heads.target, with_heads.utility, told) == (without.target, without.utility, without.candidates)


async def test_heads_that_fail_leave_the_posterior_and_are_counted() -> None:
    desk = desk_of(success_heads(Shorter(), n=500))
    decision = await asked(desk, hard(1))
    assert (decision.target and decision.target.agent_id, decision.degraded) == ("cheap", [])
    assert decision.candidates == (await asked(desk_of(None), hard(1))).candidates
    assert desk.learning.n_failures == 1


async def test_exploration_draws_from_what_is_blended(heads: SuccessHeads) -> None:
    decision = await asked(desk_of(heads, mode="explore", temperature=1.0), hard(1))
    shares = {each.agent_id: each.propensity for each in decision.candidates}
    assert shares["dear"] is not None
    # its mean is 0.5 higher; with the evidence of ten outcomes, as the card alone gives, that is not certain
    assert 0.8 < shares["dear"] <= 0.99
    without = await asked(desk_of(None, mode="explore", temperature=1.0), hard(1))
    assert all(each.propensity and 0.2 < each.propensity < 0.8 for each in without.candidates)


@pytest.mark.parametrize("mode", ["exploit", "explore"])
async def test_an_agent_that_fails_loses_its_traffic_whatever_its_head_says(heads: SuccessHeads, mode: str) -> None:
    desk = desk_of(heads, mode=mode, floor=0.1)
    desk.live.posting.update({f"c{number}" for number in range(12)})
    luck = np.random.default_rng(8)
    assert share(await lived(desk, luck, 40, rate=0.9)) >= 0.8
    assert share((await lived(desk, luck, LOST_AFTER, rate=0.05))[-40:]) <= 0.25
    if mode == "explore":  # else nobody tries it again
        assert share((await lived(desk, luck, BACK_AFTER, rate=0.9))[-40:]) >= 0.6


async def lived(desk: Desk, luck: np.random.Generator, n: int, rate: float) -> list[str]:
    """Whom hard requests go to, of which the dear agent does the share `rate` well and the cheap one a fifth."""
    agents = []
    for _ in range(n):
        seed = int(luck.integers(1 << 30))
        desk.service._ids = Ids(desk.service._ids.new, lambda seed=seed: seed << 20)  # type: ignore[misc]
        caller = {"agent_id": f"c{seed % 12}"}
        decision = await desk.route(request(hard(UNSEEN + seed), caller=caller))
        assert decision.target is not None
        agents.append(decision.target.agent_id)
        succeeded = luck.random() < (rate if agents[-1] == "dear" else 0.2)
        told = {"decision_id": decision.decision_id, "status": "succeeded" if succeeded else "failed"}
        task = asyncio.ensure_future(desk.settlement.settle([Outcome.model_validate(told)], OPEN))
        while not task.done():
            await asyncio.sleep(0)
            await desk.journal.flush(1000)
    return agents


def share(agents: Sequence[str]) -> float:
    """That of the dear agent."""
    return agents.count("dear") / len(agents)


def test_means_move_by_the_trust_in_the_head_and_the_evidence_stays(heads: SuccessHeads) -> None:
    entries, text = entries_of(), hard(2)
    found = foretold(KNOWN, entries, question(heads, text))
    predicted = dict(zip(heads.agents, heads.predict(text, ENCODER.embed(text).vector).probabilities, strict=True))
    assert [entry.agent[1] for entry in entries] == ["cheap", "dear"]
    assert found.means == pytest.approx(
        [0.75 * predicted[CHEAP] + 0.25 * 0.6, 0.75 * predicted[DEAR] + 0.25 * 0.75], abs=1e-5
    )
    assert [a + b for a, b in zip(found.alpha, found.beta, strict=True)] == pytest.approx([10, 40])
    assert without_heads(found) == without_heads(KNOWN) == KNOWN


def test_an_agent_that_the_heads_do_not_know_keeps_its_posterior(heads: SuccessHeads) -> None:
    known = KNOWN._replace(alpha=(*KNOWN.alpha, 7.3), beta=(*KNOWN.beta, 2.1))
    found = foretold(known, entries_of(*FLEET, NEW), question(heads, hard(2)))
    assert found.heads is not None
    assert (found.alpha[2], found.beta[2], found.heads.said[2]) == (7.3, 2.1, None)
    assert None not in found.heads.said[:2]
    strangers = foretold(KNOWN, entries_of(NEW, card("newer", NEW.capabilities[0])), question(heads, hard(2)))
    assert strangers is KNOWN


def test_a_version_that_the_heads_do_not_know_is_another_agent(heads: SuccessHeads) -> None:
    cards = [each.model_copy(update={"version": "2.0.0"}) for each in FLEET]
    assert foretold(KNOWN, entries_of(*cards), question(heads, hard(2))) is KNOWN


async def test_heads_see_a_request_as_retention_keeps_it(heads: SuccessHeads) -> None:
    text, kept = "where is 8841, ann@example.com?", "where is [number], [email]?"
    policy = policy_of()
    redacting = policy.model_copy(update={"retention": RetentionPolicy(utterances="redacted")})
    for parts, expected in (((), kept), ((READING,), "where is it")):
        case = case_of(request(text), snapshot_of(FLEET, redacting), heads=Slates(heads))
        case.reading, case.found = replace(READING, parts=parts), find(text, START_MS, UTC, "en")
        found = asked_of(case)
        assert found is not None
        assert found.text == expected
    desk = service_of(FLEET, redacting, success=heads)
    await asked(desk, text)
    assert json.loads(desk.records.decisions[-1].request)["utterance"] == kept


def test_sealed_heads_come_back_for_the_contenders_that_are_sealed() -> None:
    heads = Foreseen((Said(0.5, 0.25), None, Said(0.1, 0.2)), (1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    sealed = json.loads(json.dumps({"heads": sealed_heads(heads, [1, 2])}))
    assert heads_of(sealed) == Foreseen((None, Said(0.1, 0.2)), (2.0, 3.0), (5.0, 6.0))
    assert heads_of({}) is None


async def test_other_heads_choose_among_the_same_contenders_by_the_same_draws(heads: SuccessHeads) -> None:
    text = hard(3)
    for learning in ({}, {"mode": "explore"}):
        policy = policy_of(**learning)
        with_heads, without = [await selected(desk_of(each, **learning), text, policy) for each in (heads, None)]
        entries = entries_of()
        again = chosen_with(without, entries, question(heads, text), seed=7)
        assert again == with_heads != without
        assert chosen_with(with_heads, entries, question(heads, text), seed=7) is with_heads
        assert chosen_with(with_heads, entries, None, seed=7) == without


async def test_a_policy_without_heads_is_evaluated_by_what_was_known_without_them(heads: SuccessHeads) -> None:
    desk = desk_of(heads, mode="explore")
    await asked(desk, hard(1))
    logged = read_record(desk.records.decisions[-1], (), lambda *_: None)
    found = {name: TargetPolicy(policy_of(mode="explore", **rules), FLEET).chances(logged) for name, rules in RULES}
    plain = desk_of(None, mode="explore")
    without = {each.agent_id: each.propensity for each in (await asked(plain, hard(1))).candidates}
    assert found["without"] is not None
    assert found["with"] is not None
    assert found["without"].shares == (without["cheap"], without["dear"])
    assert found["with"].shares == logged.propensities != found["without"].shares


@pytest.mark.parametrize(
    ("fields", "of_reading", "is_asked"),
    [
        ({}, {}, True),
        ({}, {"vector": None}, False),
        ({}, {"source": "caller"}, False),
        ({"utterance": None, "intent": "track_parcel"}, {"source": "caller", "vector": None}, False),
    ],
)
def test_heads_are_asked_only_of_what_was_said_and_embedded(
    heads: SuccessHeads, fields: dict[str, Any], of_reading: dict[str, Any], is_asked: bool
) -> None:
    case = case_of(request(**{"utterance": "Where IS it", **fields}), snapshot_of(FLEET), heads=Slates(heads))
    case.reading = replace(READING, **of_reading)
    found = asked_of(case)
    assert (found is not None) == is_asked
    assert found is None or (found.text, found.vector) == ("Where IS it", READING.vector)


def test_heads_of_another_encoder_are_not_asked(heads: SuccessHeads) -> None:
    slates = Slates(replace(heads, encoder_id="other"))
    case = case_of(request("where is it"), snapshot_of(FLEET), heads=slates)
    case.reading = READING
    assert asked_of(case) is None


def test_of_a_sentence_of_several_wishes_the_heads_see_the_part(heads: SuccessHeads) -> None:
    case = case_of(request("Where IS it, and stop it"), snapshot_of(FLEET), heads=Slates(heads))
    case.reading = replace(READING, parts=(READING,))
    found = asked_of(case)
    assert found is not None
    assert found.text == READING.text
