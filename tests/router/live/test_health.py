from __future__ import annotations

import doctest
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from models.card import AgentCard
from models.heartbeat import Heartbeat
from models.live_policy import HealthPolicy
from router.live import health as module
from router.live.health import Health
from router.live.health_score import Layers, ProbeResult
from router.live.vitals import NEVER_HEARD, DownReason, HealthState, Vitals

A, B = ("default", "a", "1.0.0"), ("default", "b", "1.0.0")
CARD = AgentCard(agent_id="a", version="1.0.0", timeout_ms=1000)
OLD, NEW = "0" * 64, "f" * 64
POLICY = HealthPolicy()
PERIOD_S = 15.0


def of(*agents: tuple[str, str, str]) -> Health:
    health = Health()
    health.follow(dict.fromkeys(agents or (A, B), OLD), now_ms=0)
    return health


def beat(health: Health, agent: tuple[str, str, str], now_ms: float, digest: str = OLD, **figures: Any) -> bool:
    return health.beat(agent, Heartbeat(digest=digest, **figures), PERIOD_S, now_ms, POLICY)


def state(health: Health, now_ms: float, agent: tuple[str, str, str] = A) -> HealthState:
    return health.state(agent, PERIOD_S, now_ms, POLICY)


def vitals(health: Health, now_ms: float, card: AgentCard = CARD) -> Vitals:
    return health.vitals(A, card, now_ms, POLICY)


def test_the_example_holds() -> None:
    assert doctest.testmod(module) == (0, 5)


def test_an_agent_never_heard_of_is_unknown_for_ever_and_counts_fully() -> None:
    health = of()
    for now_ms in (0, 1e9):
        assert state(health, now_ms) is HealthState.UNKNOWN
        assert vitals(health, now_ms) == Vitals(HealthState.UNKNOWN, None, 1.0, 1.0)


@pytest.mark.parametrize(
    ("silence_ms", "expected"),
    [
        (0, Vitals(HealthState.HEALTHY, None, 1.0)),
        (22_499, Vitals(HealthState.HEALTHY, None, 1.0)),
        (22_500, Vitals(HealthState.SUSPECT, None, 0.5)),
        (44_999, Vitals(HealthState.SUSPECT, None, 0.5)),
        (45_000, Vitals(HealthState.DOWN, DownReason.SILENT, 0.0)),
        (1e9, Vitals(HealthState.DOWN, DownReason.SILENT, 0.0)),
    ],
)
def test_silence_leads_from_healthy_over_suspect_to_down(silence_ms: float, expected: Vitals) -> None:
    health = of()
    beat(health, A, 1000)
    vitals(health, 1000)  # what is kept must not outlive the deadline

    assert vitals(health, 1000 + silence_ms) == expected
    assert state(health, 1000 + silence_ms) is expected.state


def test_a_heartbeat_touches_its_own_agent_only() -> None:
    health = of()
    beat(health, A, 0)
    beat(health, B, 0)
    for now_ms in range(14_000, 600_000, 14_000):
        beat(health, B, now_ms)

    assert state(health, 600_000, A) is HealthState.DOWN
    assert state(health, 600_000, B) is HealthState.HEALTHY


def test_late_heartbeats_of_one_agent_leave_the_rest_healthy() -> None:
    health = of()
    for now_ms in range(0, 600_000, 15_000):
        beat(health, B, now_ms)
        if now_ms % 60_000 == 0:
            beat(health, A, now_ms)
        assert state(health, now_ms + 14_999, B) is HealthState.HEALTHY

    assert state(health, 599_000, A) is HealthState.DOWN


def test_a_heartbeat_brings_an_agent_back() -> None:
    health = of()
    beat(health, A, 0)
    assert vitals(health, 50_000).state is HealthState.DOWN
    assert beat(health, A, 50_001)
    assert vitals(health, 50_001) == Vitals(HealthState.HEALTHY, None, 1.0)


def test_a_heartbeat_of_another_card_is_refused_and_changes_nothing() -> None:
    health = of()
    beat(health, A, 0)

    assert not health.accepts(A, NEW)
    assert health.accepts(A, OLD)
    assert not beat(health, A, 44_000, digest=NEW)
    assert state(health, 45_000) is HealthState.DOWN
    assert not beat(health, B, 0, digest=NEW)
    assert state(health, 0, B) is HealthState.UNKNOWN


def test_an_agent_whose_card_was_replaced_is_down_until_it_presents_the_new_one() -> None:
    health = of()
    beat(health, A, 0)
    vitals(health, 0)
    health.follow({A: NEW, B: NEW}, 1000)

    assert vitals(health, 1000) == Vitals(HealthState.DOWN, DownReason.DIGEST, 0.0)
    assert health.state(B, PERIOD_S, 1000, POLICY) is HealthState.UNKNOWN
    assert not beat(health, A, 1500, digest=OLD)
    assert vitals(health, 1500).reason is DownReason.DIGEST
    assert beat(health, A, 2000, digest=NEW)
    assert vitals(health, 2000) == Vitals(HealthState.HEALTHY, None, 1.0)


def test_an_agent_without_a_card_is_unknown_and_kept_nowhere() -> None:
    health = of(A)
    beat(health, A, 0)
    health.outcome(A, ("d", 1), failed=False, latency_ms=1.0, now_ms=0)
    health.follow({}, 0)

    assert not beat(health, A, 0)
    health.probed(A, ProbeResult.GARBAGE, 1.0, 0)
    health.outcome(A, ("d", 2), failed=True, latency_ms=1.0, now_ms=0)
    assert len(health.latencies) == 0
    assert health.vitals(A, CARD, 0, POLICY) is NEVER_HEARD

    health.follow({A: OLD}, 0)
    assert state(health, 0) is HealthState.UNKNOWN


def test_a_restart_owes_every_stored_agent_its_whole_grace() -> None:
    health = Health()
    health.follow({A: OLD, B: NEW}, 1_000_000)
    health.restore(A, OLD, last_beat_age_ms=86_400_000, now_ms=1_000_000)
    health.restore(B, OLD, last_beat_age_ms=1000, now_ms=1_000_000)

    assert state(health, 1_000_000) is HealthState.HEALTHY
    assert state(health, 1_044_999) is HealthState.SUSPECT
    assert state(health, 1_045_000) is HealthState.DOWN
    assert state(health, 1_000_000, B) is HealthState.DOWN
    assert health.view(A, CARD, 1_000_000, POLICY).beat_age_ms == 86_400_000


def test_what_is_stored_does_not_undo_a_heartbeat() -> None:
    health = of()
    beat(health, A, 40_000)
    health.restore(A, NEW, 0, 0)
    assert state(health, 60_000) is HealthState.HEALTHY


def test_a_stall_of_the_router_takes_nobody_down() -> None:
    health = of()
    beat(health, A, 0)
    assert state(health, 60_000) is HealthState.DOWN

    health.stalled(50_000)

    assert state(health, 60_000) is HealthState.HEALTHY
    assert state(health, 72_500) is HealthState.SUSPECT
    assert state(health, 95_000) is HealthState.DOWN


def test_between_ticks_that_do_not_come_nobody_gets_older() -> None:
    health = of()
    beat(health, A, 0)
    for now_ms in range(0, 11_000, 1000):
        health.ticked(now_ms)

    # the loop stands still from 10 s to 130 s; a decision is made before the ticker comes to its turn
    assert vitals(health, 130_000).state is HealthState.HEALTHY
    health.ticked(130_000)
    assert vitals(health, 130_000).state is HealthState.HEALTHY
    assert health.view(A, CARD, 130_000, POLICY).n_missed == 0

    # 12 s were owed by then
    for now_ms in range(131_000, 200_000, 1000):
        health.ticked(now_ms)
    assert [state(health, now_ms) for now_ms in (140_499, 140_500, 163_000)] == ["healthy", "suspect", "down"]


def test_ticks_in_time_change_nothing() -> None:
    health = of()
    health.ticked(0)
    beat(health, A, 0)
    for now_ms in range(1000, 45_000, 1000):
        health.ticked(now_ms)
    assert (state(health, 44_999), state(health, 45_000)) == (HealthState.SUSPECT, HealthState.DOWN)


WARMING = CARD.model_copy(update={"warmup_s": 100.0})


def test_an_agent_warms_up_from_its_first_heartbeat() -> None:
    health = of()
    assert vitals(health, 500, WARMING).warmup == 1.0
    beat(health, A, 1000)
    assert vitals(health, 1000, WARMING).warmup == 0.05

    for now_ms in (11_000, 21_000, 31_000, 41_000, 51_000):
        beat(health, A, now_ms)
    assert vitals(health, 51_000, WARMING).warmup == 0.5
    assert vitals(health, 61_000, WARMING).warmup == pytest.approx(0.6)


def test_an_agent_that_was_down_warms_up_anew_and_one_that_was_suspect_does_not() -> None:
    health = of()
    beat(health, A, 0)
    beat(health, A, 44_000)
    assert vitals(health, 44_000, WARMING).warmup == 0.44
    beat(health, A, 89_000)
    assert vitals(health, 89_000, WARMING).warmup == 0.05


def test_the_agents_of_a_start_are_warm_and_a_card_that_comes_later_is_not() -> None:
    health = of(B)
    health.restore(B, OLD, 1000, 0)
    health.follow({A: OLD, B: OLD}, 10_000)

    assert health.vitals(B, WARMING, 10_000, POLICY).warmup == 1.0
    assert [vitals(health, now_ms, WARMING).warmup for now_ms in (10_000, 60_000, 110_000)] == [0.05, 0.5, 1.0]


def test_a_stored_agent_whose_card_comes_later_is_warm_too() -> None:
    health = of(B)
    health.follow({A: OLD, B: OLD}, 10_000)
    health.restore(A, OLD, 20_000, 10_000)
    assert vitals(health, 10_000, WARMING).warmup == 1.0


def test_probes_weigh_in_the_score_without_a_heartbeat() -> None:
    health = of()
    vitals(health, 0)
    health.probed(A, ProbeResult.WRONG_ECHO, 5.0, 0)
    assert vitals(health, 0).score == 0.0
    health.probed(A, ProbeResult.OK, 5.0, 1)
    assert vitals(health, 1).score == 0.5
    health.probed(A, ProbeResult.OK, 5.0, 2)
    health.probed(A, ProbeResult.OK, 5.0, 3)
    assert vitals(health, 3).score == 1.0
    health.probed(A, ProbeResult.UNREACHABLE, 5.0, 4)
    health.unprobed(A)
    assert vitals(health, 4) == NEVER_HEARD


def test_a_probe_that_was_not_allowed_says_nothing_of_the_agent() -> None:
    health = of()
    health.probed(A, ProbeResult.REFUSED_HOST, 0.0, 0)
    assert vitals(health, 0) == NEVER_HEARD
    assert health.view(A, CARD, 0, POLICY).layers == Layers()


def test_reported_figures_count_for_the_window() -> None:
    health = of()
    beat(health, A, 0, error_rate=0.5, load=0.7)
    assert vitals(health, 0).score == pytest.approx((0.4 * 1.0 + 0.3 * 0.5) / 0.7)
    policy = HealthPolicy(window_ms=1000)
    assert health.vitals(A, CARD, 999, policy).score == pytest.approx((0.4 * 1.0 + 0.3 * 0.5) / 0.7)
    assert health.vitals(A, CARD, 1000, policy).score == 1.0


def test_the_load_an_agent_reports_gets_old() -> None:
    health = of()
    beat(health, A, 0, load=0.7)
    found = health.reported(A, 29_999, 30_000)
    assert found is not None
    assert found.load == 0.7
    assert health.reported(A, 30_000, 30_000) is None
    assert health.reported(B, 0, 30_000) is None


def test_outcomes_show_in_the_score_within_a_second_and_go_with_the_window() -> None:
    health = of()
    vitals(health, 0)
    for n in range(20):
        health.outcome(A, ("d", n), failed=n < 10, latency_ms=100.0, now_ms=n)
    assert vitals(health, 1000).score == 0.5
    for n in range(10):
        assert health.take_back(A, ("d", n), 1000)
        health.outcome(A, ("d", n), failed=False, latency_ms=100.0, now_ms=1000)
    assert vitals(health, 2000).score == 1.0
    assert not health.take_back(A, ("d", 77), 2000)


def test_bad_outcomes_are_forgotten_although_nothing_else_happens() -> None:
    health = of()
    for n in range(20):
        health.outcome(A, ("d", n), failed=True, latency_ms=None, now_ms=0)
    assert vitals(health, 0).score == 0.0
    assert vitals(health, 304_999) == vitals(health, 305_000) == NEVER_HEARD


def test_the_timeout_follows_the_p95_once_there_are_enough_outcomes() -> None:
    health = of()
    for n in range(19):
        health.outcome(A, ("d", n), failed=False, latency_ms=100.0, now_ms=0)
    assert health.timeout_ms(A, CARD, 0, POLICY) == 1000
    health.outcome(A, ("d", 19), failed=False, latency_ms=900.0, now_ms=0)
    assert health.timeout_ms(A, CARD, 0, POLICY) == 700
    for n in (20, 21):
        health.outcome(A, ("d", n), failed=False, latency_ms=900.0, now_ms=0)
    assert health.timeout_ms(A, CARD, 0, POLICY) == 2300


def test_the_view_tells_all_parts() -> None:
    health = of()
    health.probed(A, ProbeResult.SLOW, 2000.0, 10_000)
    beat(health, A, 0, error_rate=0.1, queue_depth=3)
    health.outcome(A, ("d", 1), failed=False, latency_ms=40.0, now_ms=0)

    view = health.view(A, CARD, 31_000, POLICY)

    business = 0.9 / (1 + 3 / 32)
    assert view.layers[:2] == (0.5, 0.5)
    assert view.layers.business == pytest.approx(business)
    assert view.vitals.state is HealthState.SUSPECT
    assert view.vitals.score == pytest.approx(0.7 * 0.5 + 0.3 * business)
    assert (view.digest, view.beat_age_ms, view.n_missed) == (OLD, 31_000, 2)
    assert view.reported is not None
    assert view.reported.queue_depth == 3
    assert view.probes == ((ProbeResult.SLOW, 2000.0, 21_000),)
    assert (view.measured.n_outcomes, view.timeout_ms) == (1, 1000)


def test_the_view_of_an_agent_without_a_card_is_empty() -> None:
    view = Health().view(A, CARD, 0, POLICY)
    assert (view.vitals, view.layers, view.digest, view.probes) == (NEVER_HEARD, Layers(), None, ())


def test_a_score_is_kept_until_something_may_have_changed_it() -> None:
    health = of()
    beat(health, A, 0)
    kept = vitals(health, 0)
    assert vitals(health, 22_499) is kept
    assert vitals(health, 22_499, CARD.model_copy(update={"heartbeat_s": 1.0})).state is HealthState.DOWN
    other = HealthPolicy(suspect_after=1.0)
    assert health.vitals(A, CARD, 22_499, other).state is HealthState.SUSPECT


class Beats(RuleBasedStateMachine):
    """States by the definition: heartbeats, stalls, restarts of cards, and time, of two agents."""

    def __init__(self) -> None:
        super().__init__()
        self.health = of()
        self.now_ms = 0
        self.stalled_ms = 0
        self.owed_from: dict[tuple[str, str, str], int] = {}
        self.wanted = {A: OLD, B: OLD}
        self.presented: dict[tuple[str, str, str], str] = {}

    @rule(ms=st.integers(0, 20_000))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule(ms=st.integers(0, 60_000))
    def stall(self, ms: int) -> None:
        self.now_ms += ms
        self.stalled_ms += ms
        self.health.stalled(ms)

    @rule(agent=st.sampled_from([A, B]), digest=st.sampled_from([OLD, NEW]))
    def beat(self, agent: tuple[str, str, str], digest: str) -> None:
        assert beat(self.health, agent, self.now_ms, digest) == (digest == self.wanted[agent])
        if digest == self.wanted[agent]:
            self.presented[agent] = digest
            self.owed_from[agent] = self.now_ms - self.stalled_ms

    @precondition(lambda self: self.presented)
    @rule(agent=st.sampled_from([A, B]), digest=st.sampled_from([OLD, NEW]))
    def replace(self, agent: tuple[str, str, str], digest: str) -> None:
        self.wanted[agent] = digest
        self.health.follow(self.wanted, self.now_ms)

    @invariant()
    def states_are_those_of_the_definition(self) -> None:
        for agent in (A, B):
            found = self.health.vitals(agent, CARD, self.now_ms, POLICY)
            assert (found.state, found.reason) == self.expected(agent)

    def expected(self, agent: tuple[str, str, str]) -> tuple[HealthState, DownReason | None]:
        if agent not in self.presented:
            return HealthState.UNKNOWN, None
        if self.presented[agent] != self.wanted[agent]:
            return HealthState.DOWN, DownReason.DIGEST
        silence_ms = self.now_ms - self.stalled_ms - self.owed_from[agent]
        if silence_ms >= 45_000:
            return HealthState.DOWN, DownReason.SILENT
        return (HealthState.SUSPECT if silence_ms >= 22_500 else HealthState.HEALTHY), None


TestBeats = Beats.TestCase
TestBeats.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
