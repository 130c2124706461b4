"""Contenders and blends for the tests of selection: one by hand, and strategies for any."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from router.scorer import Blend, Contender

SHARE = st.floats(0, 1, allow_subnormal=False)
EXPONENT = st.one_of(st.just(0.0), st.floats(0.1, 3))
MERIT_FEATURES = ("similarity", "quality", "health", "load")


def contender(agent_id: str = "a", **values: Any) -> Contender:
    """A contender that is perfect and costs nothing but for `values`."""
    perfect = {"namespace": "default", "version": "1.0.0", "cost": 0.0, **dict.fromkeys(MERIT_FEATURES, 1.0)}
    return Contender(agent_id, **{**perfect, **values})


@st.composite
def contenders(draw: st.DrawFn, min_size: int = 1, max_size: int = 6) -> list[Contender]:
    """Some contenders; ties in cost and in features are as likely as none."""
    feature = st.one_of(st.sampled_from([0.0, 0.01, 0.5, 0.9, 1.0]), SHARE)
    one = st.builds(
        Contender,
        agent_id=st.sampled_from("abcd"),
        namespace=st.sampled_from(["default", "prod/shop"]),
        version=st.sampled_from(["1.0.0", "1.0.0-rc.1", "1.2.0", "1.10.0"]),
        similarity=feature,
        quality=feature,
        health=feature,
        load=feature,
        cost=st.one_of(st.integers(0, 5).map(float), st.floats(0.001, 5)),
        latency_ms=st.one_of(st.sampled_from([0.0, 300.0]), st.floats(1, 20_000)),
        share_weight=st.one_of(st.just(0.0), st.floats(0.01, 1000)),
    )
    key = lambda one: (one.agent_id, one.namespace, one.version)  # noqa: E731
    return draw(st.lists(one, min_size=min_size, max_size=max_size, unique_by=key))


def blends() -> st.SearchStrategy[Blend]:
    """Any blend, exponents and nu of 0 included."""
    return st.builds(
        Blend,
        similarity=EXPONENT,
        quality=EXPONENT,
        health=EXPONENT,
        load=EXPONENT,
        cost_weight=st.sampled_from([0.0, 0.1, 0.3]),
        latency_weight=st.one_of(st.just(0.0), st.floats(0.01, 0.3)),
        share_within=st.sampled_from([0.0, 0.02, 0.2]),
    )
