from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.learning_fixture import POLICY, fixture, stream_of
from benchmarks.learning_offpolicy import judged, log_of, targets_of
from benchmarks.learning_stream import declared_of, learner_of, play, taken


@pytest.fixture(scope="module")
def logged() -> Any:
    table = fixture()
    stream = stream_of(table, 600, 1)
    policy = POLICY.model_copy(update={"floor": 0.3})
    learner = learner_of(stream, declared_of(table.success.mean(axis=0), 1))
    played = play(stream, learner, policy, 1, n_draws=256)
    places = np.array([table.intents.index(intents[0][0]) for intents in stream.intents])
    return table, stream, played, places


def test_propensities_add_up_and_none_is_below_its_share_of_the_floor(logged: Any) -> None:
    _, _, played, _ = logged
    assert played.propensities.sum(axis=1) == pytest.approx(1)
    assert played.propensities.min() >= 0.3 / 9 - 1e-12


def test_choices_come_as_often_as_their_propensities_say(logged: Any) -> None:
    _, _, played, _ = logged
    expected = played.propensities.sum(axis=0)
    counts = np.bincount(played.choices, minlength=9)
    assert np.abs(counts - expected).max() < 4 * np.sqrt(expected.max())


def test_the_log_holds_what_the_target_would_have_chosen(logged: Any) -> None:
    table, stream, played, places = logged
    target = table.utilities.argmax(axis=1)
    log = log_of(stream, played, places, target, 500)
    assert len(log) == 500
    same = played.choices[:500] == target[places[:500]]
    assert (log.target == same).all()
    assert log.value.tolist() == taken(stream.rewards, played.choices)[:500].tolist()


def test_an_estimate_is_judged_by_the_known_truth(logged: Any) -> None:
    table, stream, played, places = logged
    target = table.utilities.argmax(axis=1)
    found = judged(log_of(stream, played, places, target, 600), table, places, played, target)
    assert abs(found.error) < 0.25
    assert found.is_given


def test_targets_follow_the_preferences() -> None:
    table = fixture()
    best, auto, cheapest, other = targets_of(table, 1)
    assert (best == table.success.argmax(axis=1)).all()
    costs = [table.costs[each].mean() for each in (best, auto, cheapest)]
    assert costs == sorted(costs, reverse=True)
    assert taken(table.utilities, other).mean() > table.utilities.mean() + 0.1
