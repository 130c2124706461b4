"""The pages on feedback and live state name every field, word and state that there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args, get_type_hints

import pytest
from pydantic import BaseModel

from feedback.attribution import FULL_SLICE, Party
from models.candidate import NOT_NOW, Stage
from models.decision import Reason
from models.heartbeat import Heartbeat
from models.outcome import Effect, Outcome, OutcomeError, OutcomeStatus, Receipt
from models.policy import NamespacePolicy
from router.endpoints.feedback import MAX_OUTCOMES
from router.endpoints.live import AgentHealth, BreakerEntry, LayerScores, Measured, ProbeView
from router.live.breaker_state import BreakerReason, BreakerState
from router.live.effects import MOST_BLAMED
from router.live.health_score import LEAST_WARMUP, PROBE_SCORES, ProbeResult
from router.live.outliers import EjectionReason
from router.live.probe import MAX_BODY_BYTES
from router.live.vitals import DownReason, HealthState
from router.standing import HEADROOM, LEAST_LOAD
from tests.docs.pages import code, named, page, rows, sections

FEEDBACK = sections(page("feedback.md"))
LIVE = sections(page("live.md"))
HTTP = sections(page("http.md"))


def fields(model: type[BaseModel]) -> list[str]:
    """Names as they are on the wire."""
    return [field.alias or name for name, field in model.model_fields.items()]


@pytest.mark.parametrize(
    ("model", "section"),
    [
        (Outcome, FEEDBACK["Outcome"]),
        (OutcomeError, FEEDBACK["OutcomeError"]),
        (Heartbeat, LIVE["Heartbeats"]),
    ],
)
def test_what_is_posted_is_told_field_by_field(model: type[BaseModel], section: str) -> None:
    assert named(section)[: len(fields(model))] == fields(model)


def test_a_receipt_is_told_with_what_it_says() -> None:
    assert named(FEEDBACK["Receipt"])[:5] == fields(Receipt)
    assert set(named(FEEDBACK["Receipt"])) >= set(Effect)


def test_statuses_are_told_in_their_order() -> None:
    assert named(FEEDBACK["Statuses"]) == list(OutcomeStatus)


def test_every_party_is_charged_for_something() -> None:
    charged = {row[1].split("`")[1] for row in rows(FEEDBACK["Attribution"]) if len(row) == 3}

    assert charged == set(Party)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (BreakerState, named(LIVE["Breakers"])),
        (BreakerReason, code(LIVE["Breakers"])),
        (EjectionReason, named(LIVE["Ejection"])),
        (HealthState, named(LIVE["Heartbeats"])),
        (DownReason, code(LIVE["Heartbeats"])),
        (ProbeResult, named(LIVE["Probes"])),
        (get_args(get_type_hints(NamespacePolicy)["unavailable"]), named(LIVE["When nobody can"])),
    ],
)
def test_every_state_and_reason_is_told(words: Iterable[str], told: Iterable[str]) -> None:
    assert set(words) <= set(told)


def test_every_stage_of_the_instant_is_told() -> None:
    assert set(named(LIVE["Live state"])) == NOT_NOW - {Stage.DEADLINE}


def test_every_reason_of_the_instant_is_told() -> None:
    told = set(named(LIVE["When nobody can"]))

    assert {Reason.AT_CAPACITY, Reason.QUOTA, Reason.BREAKER_OPEN, Reason.DEGRADED, Reason.DEADLINE} <= told


@pytest.mark.parametrize("model", [AgentHealth, LayerScores, Measured, ProbeView])
def test_the_health_of_an_agent_is_told_field_by_field(model: type[BaseModel]) -> None:
    assert set(fields(model)) <= code(HTTP["GET /agents/{agent_id}/health"])


def test_a_breaker_is_told_field_by_field() -> None:
    assert set(fields(BreakerEntry)) <= code(HTTP["GET /breakers"])


def test_the_scores_of_probes_are_the_real_ones() -> None:
    told = {row[0].strip("`"): row[2] for row in rows(LIVE["Probes"]) if len(row) == 3}

    assert {result: float(told[result]) for result in PROBE_SCORES} == PROBE_SCORES


def test_numbers_that_no_policy_has_are_the_real_ones() -> None:
    assert f"load, {LEAST_LOAD:g})" in LIVE["Share among near-equals"]
    assert f"from {LEAST_WARMUP:g} of itself" in LIVE["Warm-up"]
    assert f"(1 − load) / {HEADROOM:g})" in LIVE["Places"]
    assert f"under {FULL_SLICE:g} of the step's" in FEEDBACK["Attribution"]
    assert f"at most {MAX_BODY_BYTES // 1024} kB" in LIVE["Probes"]
    assert f"up to {MAX_OUTCOMES}," in HTTP["POST /feedback"]
    assert MOST_BLAMED == 3
    assert "three requests in a row" in " ".join(FEEDBACK["Poison"].split())


@pytest.mark.parametrize(
    ("part", "section", "words"),
    [
        ("health", "Heartbeats", "{suspect_after:g} periods|{down_after:g} periods|count {suspect_score:g}"),
        ("health", "Health score", "({heartbeat:g}, {probe:g}, {business:g})|{min_outcomes} of them"),
        ("breaker", "Breakers", "over {failure_share:g} of the calls|of {min_calls} or more|1 ± {jitter:g}"),
        ("dependency", "Dependencies", "over {failure_share:g} of {min_calls} calls|{min_agents} agents"),
        ("dependency", "Dependencies", "{retry_burst} at once|{retries_per_s:g} a second"),
        ("ejection", "Ejection", "{consecutive_failures} failures|{success_gap:g} below|{latency_factor:g} times"),
        ("ejection", "Ejection", "{min_calls} calls or more|{panic_share:g} of them"),
    ],
)
def test_numbers_of_the_policy_are_the_shipped_ones(part: str, section: str, words: str) -> None:
    shipped = getattr(NamespacePolicy(), part).model_dump()
    text = " ".join(LIVE[section].split())

    for wanted in words.format(**shipped).split("|"):
        assert wanted in text
