from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from intent.heads import Heads
from intent.intake import Intake
from models.events import ShadowRow
from models.learning_policy import RetentionPolicy
from models.policy import NamespacePolicy, Policy
from models.ports import Embedder
from models.reading import Certainty, Reading
from models.request import CallerChoice
from router.case import Case
from router.journal import Journal
from router.live.admission import Admission
from router.live.live import Live
from router.pick import Picker
from router.promotion import Lane, Lanes
from router.promotion_shadow import Shadow, leads_to_same
from router.snapshot import Snapshot
from tests.builders import FakeClock, capability, card, request, snapshot_of
from tests.router.memory_store import WaitingEmbedder
from tests.router.promotions import CARDS, SAID, bad_heads, good_heads
from tests.service_builders import MemoryRecords, case_of, learning_of

PARCEL = SAID["track_parcel"]


@dataclass
class Stage:
    """A service's parts as far as a candidate needs them."""

    snapshot: Snapshot
    lanes: Lanes
    shadow: Shadow
    picker: Picker
    journal: Journal
    records: MemoryRecords
    live: Live

    async def decided(self, utterance: str | None = PARCEL, **fields: Any) -> Case:
        """A case that was decided in earnest."""
        made = {name: fields.pop(name) for name in ("decision_id",) if name in fields}
        case = case_of(request(utterance, **fields), self.snapshot, **made)
        self.lanes.assign(case)
        if utterance is None or case.request.intent is not None:
            intent = case.request.intent
            case.reading = Reading("", "en", Certainty.SURE, intent, 1.0, "caller")
        else:
            case.reading = await self.lanes.own.read(
                utterance,
                self.snapshot.scope(case.namespaces),
                rules=self.snapshot.rules,
                namespace="default",
                thresholds=case.policy.confidence,
                wait_ms=5000,
            )
        if case.reading.certainty is Certainty.SURE:
            await self.picker.pick(case)
        return case

    async def read(self, case: Case) -> dict[str, Any]:
        """What the candidate writes down of a case."""
        self.shadow.offer(case)
        await self.shadow.read_next()
        await self.journal.flush(1000)
        found = [row for row in self.records.rows if isinstance(row, ShadowRow)]
        assert (found[-1].decision_id, found[-1].promotion_id) == (case.decision_id, 4)
        body: dict[str, Any] = json.loads(found[-1].body)
        return body


@pytest.fixture(scope="module")
def good() -> Heads:
    return good_heads()


@pytest.fixture(scope="module")
def bad() -> Heads:
    return bad_heads()


@asynccontextmanager
async def stage_of(
    own: Heads, candidate: Heads | None, *, policy: Policy | None = None, cards: Any = CARDS, **how: Any
) -> AsyncIterator[Stage]:
    embedder: Embedder = how.pop("embedder", DummyEmbedder())
    snapshot, clock, records = snapshot_of(cards, policy), FakeClock(), MemoryRecords()
    with EmbedPool(embedder, n_threads=1) as pool:
        cascade = Cascade(Calibration())
        cascade.use(own)
        lanes = Lanes(Intake(pool, cascade))
        beside = cascade.beside()
        beside.use(candidate)
        lanes.put(shadow=Lane(lanes.own.beside(beside), 4))
        live = Live(Random(1))
        live.health.follow(snapshot.digest_of, clock.monotonic_ms())
        journal = Journal(records, max_rows=100, batch=100, wait_ms=1, clock=clock)
        picker = Picker(Admission(live, clock), live, learning_of(snapshot), None, clock)
        shadow = Shadow(lanes, picker, pool, journal, clock, **how)
        yield Stage(snapshot, lanes, shadow, picker, journal, records, live)


async def test_a_candidate_that_reads_the_same_has_the_logged_propensities(good: Heads) -> None:
    async with stage_of(good, good) as stage:
        body = await stage.read(await stage.decided())
        assert (body["intent"], body["logged_intent"], body["is_same"]) == ("track_parcel", "track_parcel", True)
        assert (body["options"], body["chosen"]) == ([["default", "tracker", "1.0.0", 1.0, 1.0]], 0)
        assert body["confidence"] > 0.9


async def test_propensities_of_near_equals_are_those_of_the_draw(good: Heads) -> None:
    twins = (*CARDS, card("tracker_2", capability("track_parcel", ["where is my parcel"])))
    async with stage_of(good, good, cards=twins) as stage:
        body = await stage.read(await stage.decided())
        logged = [option[3] for option in body["options"]]
        assert sorted(option[1] for option in body["options"]) == ["tracker", "tracker_2"]
        assert logged == [option[4] for option in body["options"]] == [0.5, 0.5]


async def test_another_reading_leads_to_the_agents_of_its_own_intent(good: Heads, bad: Heads) -> None:
    async with stage_of(good, bad) as stage:
        body = await stage.read(await stage.decided())
        assert (body["intent"], body["logged_intent"], body["is_same"]) == ("refund_status", "track_parcel", False)
        assert body["options"] == [
            ["default", "tracker", "1.0.0", 1.0, 0.0],
            ["default", "refunder", "1.0.0", 0.0, 1.0],
        ]
        assert body["chosen"] == 0
        assert body["declared"] == [0.0, CARDS[2].capabilities[0].quality]


async def test_what_it_would_choose_takes_no_place(good: Heads, bad: Heads) -> None:
    async with stage_of(good, bad) as stage:
        stage.live.posting.add("")
        case = await stage.decided()
        assert (len(stage.live.leases), len(stage.live.opened)) == (1, 1)
        await stage.read(case)
        assert (len(stage.live.leases), len(stage.live.opened)) == (1, 1)
        assert case.selection is not None
        assert case.selection.chosen.card.agent_id == "tracker"


async def test_one_that_is_not_sure_would_choose_nobody(good: Heads) -> None:
    strict = Policy(defaults=NamespacePolicy())
    async with stage_of(good, None, policy=strict) as stage:
        body = await stage.read(await stage.decided(SAID["refund_status"]))
        assert body["certainty"] == "ambiguous"
        assert body["options"] == [["default", "refunder", "1.0.0", 1.0, 0.0]]
        assert not body["is_same"]


async def test_where_nobody_was_chosen_that_is_told(good: Heads) -> None:
    async with stage_of(good, good) as stage:
        case = await stage.decided("qwertz uiop")
        assert case.selection is None
        body = await stage.read(case)
        assert (body["chosen"], body["options"]) == (-1, [])


async def test_given_intents_dry_runs_and_callers_choices_are_not_read(good: Heads) -> None:
    async with stage_of(good, good) as stage:
        choice = CallerChoice(agent_id="mine")
        for case in (
            await stage.decided(None, intent="track_parcel"),
            await stage.decided(PARCEL, intent="track_parcel"),
            await stage.decided(dry_run=True),
            await stage.decided(caller_choice=choice),
        ):
            stage.shadow.offer(case)
        assert stage.shadow.n_waiting == 0


async def test_where_utterances_are_kept_as_digests_nothing_is_read(good: Heads) -> None:
    policy = Policy(retention=RetentionPolicy(utterances="digest"))
    async with stage_of(good, good, policy=policy) as stage:
        stage.shadow.offer(await stage.decided())
        assert stage.shadow.n_waiting == 0


async def test_what_it_cannot_keep_up_with_is_dropped_and_counted(good: Heads) -> None:
    async with stage_of(good, good, max_waiting=3) as stage:
        for number in range(5):
            stage.shadow.offer(await stage.decided(decision_id=f"d-{number}"))
        assert (stage.shadow.n_waiting, stage.shadow.n_dropped) == (3, 2)
        for _ in range(4):
            await stage.shadow.read_next()
        assert (stage.shadow.n_waiting, stage.shadow.n_read, stage.shadow.n_failed) == (0, 3, 0)


async def test_a_candidate_that_is_none_any_more_reads_nothing(good: Heads) -> None:
    async with stage_of(good, good) as stage:
        stage.shadow.offer(await stage.decided())
        stage.lanes.put()
        await stage.shadow.read_next()
        assert (stage.shadow.n_waiting, stage.shadow.n_read) == (0, 0)
        stage.shadow.offer(await stage.decided())
        assert stage.shadow.n_waiting == 0


async def test_a_candidate_that_cannot_read_in_time_fails_alone(good: Heads) -> None:
    with WaitingEmbedder() as waiting:
        async with stage_of(good, None, embedder=waiting, read_ms=20.0) as stage:
            case = await stage.decided()  # by its words, the encoder is not asked
            stage.shadow.offer(case)
            await stage.shadow.read_next()
            assert (stage.shadow.n_failed, stage.shadow.n_read) == (1, 0)
            waiting.may_end.set()


def reading(certainty: Certainty, intent: str = "track_parcel") -> Reading:
    return Reading("", "en", certainty, intent, 0.9, "lexical")


SURE, AMBIGUOUS, OUT = Certainty.SURE, Certainty.AMBIGUOUS, Certainty.OUT_OF_SCOPE


@pytest.mark.parametrize(
    ("logged", "read", "sticky", "is_same"),
    [
        (reading(SURE), reading(SURE), None, True),
        (reading(SURE), reading(SURE, "other"), None, False),
        (reading(AMBIGUOUS), reading(SURE), None, False),
        (reading(SURE), reading(AMBIGUOUS), None, False),
        (reading(AMBIGUOUS), reading(AMBIGUOUS), None, True),
        (reading(AMBIGUOUS), reading(OUT), None, False),
        (reading(SURE), reading(AMBIGUOUS, "other"), "tracker", True),
        (reading(SURE), reading(SURE, "other"), "tracker", False),
    ],
)
def test_readings_are_told_apart_by_what_they_lead_to(
    logged: Reading, read: Reading, sticky: str | None, is_same: bool
) -> None:
    case = case_of(request(PARCEL), snapshot_of(CARDS))
    case.sticky_agent = sticky
    assert leads_to_same(case, logged, read) is is_same
