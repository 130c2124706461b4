from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedback.beyond import Beyond
from feedback.cell import Counted, Told
from feedback.posterior import Fleet
from models.card import AgentKey
from models.events import EVIDENCE_UNIT
from models.learning_policy import LearningPolicy

U = EVIDENCE_UNIT
INTENTS = [0, 1, 0, 1, 2]
AGENTS = [0, 0, 1, 1, 1]
A: AgentKey = ("default", "a", "1.0.0")
B: AgentKey = ("default", "b", "1.0.0")
DECLARED = {A: {"x": 0.7, "y": 0.5}, B: {"x": 0.6, "y": 0.6, "z": 0.4}}
POLICY = LearningPolicy()

CHANGE = st.tuples(st.integers(0, 4), st.dictionaries(st.sampled_from(["ann", "bob"]), st.integers(1, 9), max_size=2))


@given(st.lists(CHANGE, max_size=12), st.booleans())
def test_what_is_laid_out_early_is_what_is_laid_out_late(changes: list[Any], few: bool) -> None:
    early, late = Beyond(INTENTS, AGENTS), Beyond(INTENTS, AGENTS, max_places=1 if few else 1000)
    for cell, of_callers in changes:
        told = tuple(Told(caller, n * U, n * U // 2) for caller, n in sorted(of_callers.items()))
        assert early.put(cell, told) == late.put(cell, told)
        early.of("ann"), early.of("bob")

    for caller in ("ann", "bob", "cid"):
        first, second = early.of(caller), late.of(caller)
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
            assert first.n.sum() == first.intent_n.sum() == first.agent_n.sum() > 0


def fleet(**told: dict[tuple[AgentKey, str], tuple[int, int]]) -> Fleet:
    made = Fleet(DECLARED, POLICY.intent_prior)
    for agent, intents in DECLARED.items():
        for intent in intents:
            n, s = told["everybody"].get((agent, intent), (0, 0))
            own_n, own_s = told["own"].get((agent, intent), (0, 0))
            beyond = (Told("ann", own_n * U, own_s * U),) if own_n else ()
            made.put(agent, intent, Counted((n * U, s * U), beyond))
    return made


def test_a_caller_sees_what_everybody_would_if_all_that_it_told_counted() -> None:
    shared, own = {(A, "x"): (9, 3), (B, "z"): (4, 4)}, {(A, "x"): (5, 5), (B, "y"): (30, 20)}
    both = {(A, "x"): (14, 8), (B, "z"): (4, 4), (B, "y"): (30, 20)}
    made, whole, without = (
        fleet(everybody=shared, own=own),
        fleet(everybody=both, own={}),
        fleet(everybody=shared, own={}),
    )

    for intents in ((("x", 1.0),), (("y", 1.0),), (("x", 0.6), ("z", 0.3))):
        for mine, theirs in zip(
            made.posterior((A, B), intents, POLICY, "ann"), whole.posterior((A, B), intents, POLICY), strict=True
        ):
            assert mine == pytest.approx(theirs, rel=1e-12)
        assert made.posterior((A, B), intents, POLICY, "bob") == without.posterior((A, B), intents, POLICY)
        assert made.posterior((A, B), intents, POLICY) == without.posterior((A, B), intents, POLICY)
        assert made.expected(A, intents, POLICY, "ann") == pytest.approx(whole.expected(A, intents, POLICY), rel=1e-12)
        assert made.expected(A, intents, POLICY, "bob") == without.expected(A, intents, POLICY)


def test_answers_in_turn_to_two_callers_are_each_its_own() -> None:
    made = fleet(everybody={}, own={(A, "x"): (50, 50)})
    first, second = (made.posterior((A, B), (("x", 1.0),), POLICY, caller) for caller in ("ann", "bob"))

    assert first != second
    assert made.posterior((A, B), (("x", 1.0),), POLICY, "ann") == first
    made.put(A, "x", Counted((0, 0)))
    assert made.posterior((A, B), (("x", 1.0),), POLICY, "ann") == second
