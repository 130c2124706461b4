from __future__ import annotations

from random import Random

from models.candidate import Stage
from models.card import AgentCard
from models.heartbeat import Heartbeat
from models.policy import NamespacePolicy
from router.live.figured import Figured
from router.live.live import Live
from router.snapshot import Entry, Snapshot
from router.standing import Standing
from tests.builders import card, snapshot_of

HOLDS = NamespacePolicy()
HEALTH = {"default": HOLDS.health}


def figured_of(*cards: AgentCard) -> tuple[Live, Snapshot, Figured]:
    live, snapshot = Live(Random(1)), snapshot_of(cards)
    live.health.follow(snapshot.digest_of, 0.0)
    return live, snapshot, Figured(live)


def standing(figured: Figured, entry: Entry, now_ms: float) -> Standing:
    """One by one and all at once are the same."""
    found = figured.all([entry], HEALTH, now_ms)
    assert found == {entry.number: figured.of(entry, HOLDS.health, now_ms)}
    assert figured.all([entry], HEALTH, now_ms) == found
    return found[entry.number]


def test_an_agent_of_which_nothing_is_known_is_fresh() -> None:
    _, snapshot, figured = figured_of(card("a"))
    [entry] = snapshot.entries
    assert standing(figured, entry, 0.0) is entry.fresh


def test_a_place_that_is_taken_or_given_back_shows_at_once() -> None:
    live, snapshot, figured = figured_of(card("a", max_inflight=2))
    [entry] = snapshot.entries
    loads = [standing(figured, entry, 0.0).load]
    for number in range(2):
        live.leases.take(f"l{number}", entry.agent, None, 1000.0, 0.0)
        loads.append(standing(figured, entry, 0.0).load)
    live.leases.give_back("l0")
    loads.append(standing(figured, entry, 0.0).load)
    assert loads == [1.0, 1.0, 0.0, 1.0]
    assert standing(figured, entry, 0.0).share_weight == 200.0


def test_outcomes_show_in_score_latency_and_timeout_together_within_a_second() -> None:
    live, snapshot, figured = figured_of(card("a", timeout_ms=1000))
    [entry] = snapshot.entries
    before = standing(figured, entry, 0.0)
    for number in range(40):
        failed = number < 10
        latency_ms = None if failed else 200.0
        live.health.outcome(entry.agent, (f"d{number}", 1), failed=failed, latency_ms=latency_ms, now_ms=0.0)
    assert standing(figured, entry, 999.0) == before
    after = standing(figured, entry, 1000.0)
    assert (after.health, after.latency_ms, after.timeout_ms) == (0.75, 200.0, 900)


def test_a_heartbeat_shows_at_once_and_its_absence_when_it_is_due() -> None:
    live, snapshot, figured = figured_of(card("a", heartbeat_s=10))
    [entry] = snapshot.entries
    standing(figured, entry, 0.0)
    beat = Heartbeat(digest=snapshot.digest_of[entry.agent], load=1.0)
    live.health.beat(entry.agent, beat, 10, 0.0, HOLDS.health)
    assert (standing(figured, entry, 0.0).load, standing(figured, entry, 0.0).stage) == (0.0, None)
    assert standing(figured, entry, 14_999.0).health == 1.0
    assert standing(figured, entry, 15_000.0).health < 1.0
    assert standing(figured, entry, 30_000.0) == entry.fresh._replace(health=0.0, stage=Stage.DOWN)


def test_another_card_of_the_agent_counts_at_once() -> None:
    live, snapshot, figured = figured_of(card("a", weight=100))
    [entry] = snapshot.entries
    live.leases.take("l", entry.agent, None, 1000.0, 0.0)
    assert standing(figured, entry, 0.0).share_weight == 1000.0
    [other] = snapshot_of([card("a", weight=10, max_inflight=1)]).entries
    assert (standing(figured, other, 0.0).share_weight, standing(figured, other, 0.0).load) == (10.0, 0.0)


def test_what_is_kept_is_bounded() -> None:
    small = Figured(Live(Random(1)), max_agents=3)
    for entry in snapshot_of([card(f"a{number}") for number in range(5)]).entries:
        small.of(entry, HOLDS.health, 0.0)
        assert len(small) <= 3
