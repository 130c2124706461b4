import numpy as np
import pytest

from benchmarks.learning_fixture import fixture, run, stream_of
from benchmarks.learning_stream import declared_of, for_good_from, learner_of, play, taken, trailing
from models.learning_policy import LearningPolicy


def test_the_fixture_is_the_one_that_is_documented() -> None:
    table = fixture()
    assert (len(table.intents), len(table.agents)) == (14, 9)
    assert table.utilities.mean() == pytest.approx(0.372, abs=5e-4)
    assert table.utilities.mean(axis=0).max() == pytest.approx(0.532, abs=5e-4)
    assert table.utilities.max(axis=1).mean() == pytest.approx(0.613, abs=5e-4)


def test_an_agent_that_halves_does_so_in_the_named_steps_only() -> None:
    plain, halved = stream_of(fixture(), 30, 1), stream_of(fixture(), 30, 1, slice(10, 20))
    ratio = halved.expected[:, 1] / plain.expected[:, 1]
    assert ratio.tolist() == [1.0] * 10 + [0.5] * 10 + [1.0] * 10
    assert (np.delete(halved.expected, 1, axis=1) == np.delete(plain.expected, 1, axis=1)).all()


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    runs = [run(fixture(), 200, seed) for seed in (1, 1, 2)]
    assert runs[0].played.choices.tolist() == runs[1].played.choices.tolist()
    assert runs[0].played.choices.tolist() != runs[2].played.choices.tolist()


def test_the_learner_leaves_the_best_fixed_agent_behind() -> None:
    later = [run(fixture(), 2500, seed) for seed in range(3)]
    lead = np.mean([(each.mine - each.fixed)[-1000:].mean() for each in later])
    assert lead > 0.02


def test_exploit_takes_the_highest_mean_less_cost_and_draws_nothing() -> None:
    stream = stream_of(fixture(), 1, 1)
    declared = np.full(9, 0.5)
    declared[3] = 0.55
    policy = LearningPolicy(mode="exploit")
    # 0.55 at the full cost is worth less than 0.5 at the least cost
    assert play(stream, learner_of(stream, declared), policy, 1).choices.tolist() == [5]
    assert play(stream, learner_of(stream, declared), policy, 1, weight=0.0).choices.tolist() == [3]


def test_merit_is_confidence_times_posterior_mean() -> None:
    stream = stream_of(fixture(), 1, 1)
    played = play(stream, learner_of(stream, np.full(9, 0.6)), LearningPolicy(mode="exploit"), 1)
    assert played.merits[0] == pytest.approx(0.6)


def test_declarations_err_by_a_tenth_and_stay_shares() -> None:
    found = np.array([declared_of(np.array([0.5, 0.99]), seed) for seed in range(400)])
    assert found[:, 0].mean() == pytest.approx(0.5, abs=0.02)
    assert found[:, 0].std() == pytest.approx(0.1, abs=0.02)
    assert found.max() <= 1


def test_for_good_is_after_the_last_window_below() -> None:
    lead = np.array([-1.0, 1, 1, -3, 1, 1, 1, 1])
    assert for_good_from(lead, 2) == 5
    assert for_good_from(np.ones(5), 2) == 0
    assert for_good_from(-np.ones(5), 2) == 5
    assert trailing(lead, 8).tolist() == [0.25]


def test_taken_picks_one_column_a_row() -> None:
    assert taken(np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])).tolist() == [0, 3, 4]
