from __future__ import annotations

import doctest
from math import ceil
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.live import latencies as module
from router.live.latencies import NOTHING, Latencies

AGENT = ("default", "a", "1.0.0")
OTHER = ("default", "b", "1.0.0")
WINDOW_MS = 300_000.0


def add(latencies: Latencies, n: int, *, latency_ms: float | None = 100.0, at_ms: float = 0.0, **fields: bool) -> None:
    latencies.add(AGENT, ("d", n), failed=fields.get("failed", False), latency_ms=latency_ms, now_ms=at_ms)


def test_the_example_holds() -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried) == (0, 3)


def test_an_agent_without_outcomes_has_no_figures() -> None:
    assert Latencies().figures(AGENT, 0, WINDOW_MS) == NOTHING


def test_failed_calls_count_for_the_error_rate_and_not_for_latencies() -> None:
    latencies = Latencies()
    add(latencies, 1, latency_ms=100.0)
    add(latencies, 2, latency_ms=30_000.0, failed=True)
    add(latencies, 3, latency_ms=None)

    figures = latencies.figures(AGENT, 0, WINDOW_MS)

    assert (figures.n_outcomes, figures.n_latencies) == (3, 1)
    assert figures.error_rate == pytest.approx(1 / 3)
    assert (figures.mean_ms, figures.p50_ms, figures.p95_ms) == (100.0, 100.0, 100.0)


def test_an_outcome_leaves_at_the_end_of_the_window() -> None:
    latencies = Latencies()
    add(latencies, 1, at_ms=1000.0)

    assert latencies.figures(AGENT, 300_999.0, WINDOW_MS).n_outcomes == 1
    assert latencies.figures(AGENT, 301_000.0, WINDOW_MS) == NOTHING


def test_what_is_taken_back_never_was() -> None:
    latencies = Latencies()
    add(latencies, 1, latency_ms=100.0)
    add(latencies, 2, latency_ms=500.0, failed=True)
    add(latencies, 3, latency_ms=900.0)

    assert latencies.take_back(AGENT, ("d", 3))
    assert latencies.take_back(AGENT, ("d", 2))

    assert latencies.figures(AGENT, 0, WINDOW_MS) == (1, 0.0, 1, 100.0, 100.0, 100.0)


def test_an_outcome_is_taken_back_once_and_from_its_agent_only() -> None:
    latencies = Latencies()
    add(latencies, 1)

    assert not latencies.take_back(OTHER, ("d", 1))
    assert latencies.take_back(AGENT, ("d", 1))
    assert not latencies.take_back(AGENT, ("d", 1))


def test_beyond_the_bound_the_oldest_fall_out() -> None:
    latencies = Latencies(max_outcomes=100)
    for n in range(1, 1001):
        add(latencies, n, latency_ms=float(n), failed=n <= 900)

    assert not latencies.take_back(AGENT, ("d", 900))
    assert latencies.figures(AGENT, 0, WINDOW_MS) == (100, 0.0, 100, 950.5, 950.0, 995.0)


def test_beyond_the_bound_of_agents_the_first_is_forgotten() -> None:
    latencies = Latencies(max_agents=2)
    for name in ("a", "b", "c"):
        latencies.add(("default", name, "1.0.0"), ("d", 1), failed=False, latency_ms=1.0, now_ms=0)

    assert len(latencies) == 2
    assert latencies.figures(AGENT, 0, WINDOW_MS) == NOTHING
    assert latencies.figures(OTHER, 0, WINDOW_MS).n_outcomes == 1


def test_only_those_kept_are_left() -> None:
    latencies = Latencies()
    add(latencies, 1)
    latencies.add(OTHER, ("d", 1), failed=False, latency_ms=1.0, now_ms=0)

    latencies.keep({OTHER})

    assert latencies.figures(AGENT, 0, WINDOW_MS) == NOTHING
    assert latencies.figures(OTHER, 0, WINDOW_MS).n_outcomes == 1


def test_figures_without_a_change_are_the_same_object() -> None:
    latencies = Latencies()
    add(latencies, 1)
    assert latencies.figures(AGENT, 0, WINDOW_MS) is latencies.figures(AGENT, 10, WINDOW_MS)


def test_quantiles_are_behind_by_one_outcome_in_twenty_at_most() -> None:
    latencies = Latencies()
    for n in range(1000):
        add(latencies, n, latency_ms=100.0)
    assert latencies.figures(AGENT, 0, WINDOW_MS).p50_ms == 100.0
    for n in range(1000, 1052):
        add(latencies, n, latency_ms=1.0)
        latencies.figures(AGENT, 0, WINDOW_MS)
    for n in range(950):
        latencies.take_back(AGENT, ("d", n))

    assert latencies.figures(AGENT, 0, WINDOW_MS).p50_ms == 1.0


@pytest.mark.parametrize("fields", [{"max_outcomes": 0}, {"max_agents": 0}])
def test_a_bound_below_one_is_refused(fields: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="the least is 1"):
        Latencies(**fields)


class Seen(NamedTuple):
    n: int
    at_ms: float
    failed: bool
    latency_ms: float | None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "take back"]),
        st.integers(0, 40),
        st.booleans(),
        st.one_of(st.none(), st.floats(0, 1e6)),
        st.integers(0, 30),
    ),
    max_size=120,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_the_window_is_that_of_a_plain_list(steps: list[tuple[str, int, bool, float | None, int]]) -> None:
    latencies, seen, now_ms = Latencies(), list[Seen](), 0.0
    for number, (verb, which, failed, latency_ms, wait_ms) in enumerate(steps):
        now_ms += wait_ms
        seen = [each for each in seen if each.at_ms > now_ms - 500]
        latencies.figures(AGENT, now_ms, 500)
        if verb == "add":
            seen.append(Seen(number, now_ms, failed, latency_ms))
            latencies.add(AGENT, ("d", number), failed=failed, latency_ms=latency_ms, now_ms=now_ms)
        else:
            found = [each for each in seen if each.n == which]
            assert latencies.take_back(AGENT, ("d", which)) == bool(found)
            seen = [each for each in seen if each.n != which]
        figures = latencies.figures(AGENT, now_ms, 500)
        timed = sorted(each.latency_ms for each in seen if not each.failed and each.latency_ms is not None)
        assert (figures.n_outcomes, figures.n_latencies) == (len(seen), len(timed))
        assert figures.error_rate == (sum(each.failed for each in seen) / len(seen) if seen else None)
        assert figures.mean_ms == (pytest.approx(sum(timed) / len(timed), abs=1e-6) if timed else None)
        if len(timed) <= 20:  # any change of so few brings the quantiles up to date
            assert figures.p50_ms == (timed[ceil(0.5 * len(timed)) - 1] if timed else None)
            assert figures.p95_ms == (timed[ceil(0.95 * len(timed)) - 1] if timed else None)
