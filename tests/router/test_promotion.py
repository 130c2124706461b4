from __future__ import annotations

from collections.abc import Iterator

import pytest

from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.intake import Intake
from router.promotion import Lane, Lanes
from tests.builders import card, request, snapshot_of
from tests.intent.fitted import BOTH, heads_of
from tests.router.memory_store import pool_of
from tests.service_builders import case_of

SNAPSHOT = snapshot_of([BOTH])


@pytest.fixture
def own() -> Iterator[Intake]:
    with pool_of() as pool:
        yield Intake(pool, Cascade(Calibration()))


def lane(own: Intake, promotion_id: int) -> Lane:
    cascade = own.cascade.beside()
    cascade.use(None)
    return Lane(own.beside(cascade), promotion_id)


def assigned(lanes: Lanes, decision_id: str, session_id: str | None = None, **fields: object) -> tuple[int | None, int]:
    """The promotion and the generation that a case gets."""
    caller = {"agent_id": fields.pop("asker", "desk"), "session_id": session_id}
    case = case_of(request("has it shipped", caller=caller, **fields), SNAPSHOT, decision_id=decision_id)
    lanes.assign(case)
    return case.promotion_id, case.classifier_generation


def test_without_promotions_the_service_reads_by_its_own_classifiers(own: Intake) -> None:
    assert assigned(Lanes(own), "d-1") == (None, 0)


def test_a_canary_reads_its_share_and_the_generations_tell_them_apart(own: Intake) -> None:
    lanes = Lanes(own)
    full, canary = lane(own, 1), lane(own, 2)
    lanes.put(full=full, canary=canary, share=0.1)
    found = [assigned(lanes, f"d-{number}") for number in range(2000)]
    assert set(found) == {(1, full.intake.cascade.generation), (2, canary.intake.cascade.generation)}
    assert full.intake.cascade.generation != canary.intake.cascade.generation
    assert 150 < sum(each[0] == 2 for each in found) < 250


def test_a_session_stays_with_its_classifiers_and_two_callers_may_name_theirs_alike(own: Intake) -> None:
    lanes = Lanes(own)
    lanes.put(canary=lane(own, 2), share=0.5)
    of_session = [{assigned(lanes, f"d-{n}", f"s-{session}")[0] for n in range(5)} for session in range(50)]
    assert all(len(each) == 1 for each in of_session)
    assert len({frozenset(each) for each in of_session}) == 2
    of_callers = {assigned(lanes, "d", "s-1", asker=f"agent-{number}")[0] for number in range(50)}
    assert of_callers == {None, 2}


def test_the_share_of_another_promotion_is_of_other_sessions(own: Intake) -> None:
    lanes = Lanes(own)
    members = []
    for promotion_id in (1, 2):
        lanes.put(canary=lane(own, promotion_id), share=0.1)
        members.append({n for n in range(2000) if assigned(lanes, f"d-{n}")[0] is not None})
    assert len(members[0] & members[1]) < 50


def test_a_given_intent_is_nobodys_reading(own: Intake) -> None:
    lanes = Lanes(own)
    lanes.put(full=lane(own, 1), canary=lane(own, 2), share=1.0)
    case = case_of(request(intent="track_parcel"), SNAPSHOT)
    lanes.assign(case)
    assert case.promotion_id is None


def test_a_candidate_with_other_heads_does_not_touch_those_in_force(own: Intake) -> None:
    own.cascade.use(heads_of(BOTH))
    before = own.cascade.generation
    other = own.cascade.beside()
    other.use(heads_of(card("gifts"), BOTH))
    own.cascade.use(heads_of(BOTH))
    assert len({before, other.generation, own.cascade.generation}) == 3


def test_the_floor_rises_only_while_a_candidate_qualifies_and_never_where_nothing_explores(own: Intake) -> None:
    lanes = Lanes(own)
    assert lanes.floor_now(0.02) == 0.02
    lanes.put(shadow=lane(own, 1))
    assert [lanes.floor_now(base) for base in (0.0, 0.02, 0.3)] == [0.0, 0.1, 0.3]
    lanes.put(canary=lane(own, 1), share=0.1)
    assert lanes.floor_now(0.02) == 0.02
