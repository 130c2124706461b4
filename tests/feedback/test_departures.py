from __future__ import annotations

import numpy as np
import pytest

from feedback.choices import Choices, Row
from feedback.departures import Departures, supported, untried_fail

ALL = np.ones(4, dtype=np.bool_)


def same(name: str) -> Row:
    return Row(name, 0, (0, 1), (0.9, 0.1), (0.9, 0.1), 0)


def other(name: str, intent: int = 0, chosen: int = 1, logged: tuple[float, float] = (0.5, 0.5)) -> Row:
    return Row(name, intent, (0, 1), logged, (0.0, 1.0), chosen)


def test_what_was_tried_stays_as_it_is() -> None:
    choices = Choices.of([same("a"), other("b"), other("c", chosen=0), same("d")])
    told, departures = untried_fail(choices, ALL)
    assert told.target.tolist() == choices.target.tolist()
    assert departures == Departures(share=0.25, untried=0.0, effective_size=1.0, tried=0.25)


@pytest.mark.parametrize(
    "row",
    [
        other("b", chosen=0, logged=(1.0, 0.0)),  # had no chance
        other("b", chosen=0, logged=(0.995, 0.005)),  # less than exploration gives
        other("b", chosen=1, logged=(0.995, 0.005)),
        other("b", chosen=0),  # had one, and was never chosen
    ],
)
def test_what_was_never_tried_leads_nowhere(row: Row) -> None:
    # on another intent the same agent was tried
    choices = Choices.of([same("a"), row, other("c", intent=1), same("d")])
    told, departures = untried_fail(choices, ALL)
    moved = 1.0 - row.logged[1]
    assert told.target[2:4].tolist() == pytest.approx([0.0, row.logged[1]])
    assert told.target[4:6].tolist() == [0.0, 1.0]
    assert (departures.share, departures.untried) == pytest.approx(((moved + 0.5) / 4, moved / 4))
    assert departures.effective_size == 1.0


def test_a_trial_without_an_outcome_is_none() -> None:
    choices = Choices.of([same("a"), other("b"), same("c"), same("d")])
    told, departures = untried_fail(choices, np.array([True, False, True, True]))
    assert told.target[2:4].tolist() == [0.0, 0.5]
    assert departures == Departures(0.0, 0.0, 0.0)  # among decisions with an outcome


def test_choosing_nobody_is_a_departure_that_needs_no_trial() -> None:
    nobody = Row("b", 0, (0, 1), (0.5, 0.5), (0.0, 0.0), 0)
    told, departures = untried_fail(Choices.of([same("a"), nobody, same("c"), same("d")]), ALL)
    assert told.target[2:4].tolist() == [0.0, 0.0]
    assert departures == Departures(0.25, 0.0, 0.0)


def test_without_outcomes_there_is_nothing_to_tell() -> None:
    choices = Choices.of([])
    assert untried_fail(choices, np.zeros(0, dtype=np.bool_)) == (choices, Departures(0.0, 0.0, 0.0))


def test_what_is_confirmed_stays_as_it_is_and_is_no_trial() -> None:
    rows = [same("a"), other("b", chosen=0, logged=(1.0, 0.0)), other("c"), other("d", chosen=0, logged=(1.0, 0.0))]
    choices = Choices.of(rows)
    told, departures = untried_fail(choices, ALL, confirmed=np.array([False, True, True, False]))
    # the choice that exploration made is confirmed too, and tells nothing of the others
    assert told.target.tolist() == [0.9, 0.1, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    assert departures == Departures(0.75, 0.25, 0.0, tried=0.0, confirmed=0.5, n_confirmed=2)
    assert departures.n_supported == 2.0


def test_tried_and_confirmed_are_counted_together() -> None:
    choices = Choices.of([other("a", chosen=0, logged=(1.0, 0.0)), other("b"), other("c"), same("d")])
    _, departures = untried_fail(choices, ALL, confirmed=np.array([True, False, False, False]))
    assert departures == Departures(0.5, 0.0, 2.0, tried=0.25, confirmed=0.25, n_confirmed=1)
    assert departures.n_supported == 3.0


def test_another_reading_that_leads_to_the_same_agent_is_a_departure_where_it_is_confirmed() -> None:
    choices = Choices.of([same("a"), same("b"), same("c"), same("d")])
    _, departures = untried_fail(choices, ALL, confirmed=np.array([True, False, False, False]))
    assert departures == Departures(0.25, 0.0, 0.0, confirmed=0.25, n_confirmed=1)


def test_confirmed_choices_are_supported_but_not_tried() -> None:
    choices = Choices.of([same("a"), same("b"), same("c"), other("d", chosen=0, logged=(1.0, 0.0))])
    nowhere = np.zeros(4, dtype=np.bool_)
    assert supported(choices, nowhere) == choices.support() == (0.75, 0.0, 0.0)
    assert supported(choices, np.array([False, False, False, True])) == (1.0, 0.0, 0.0)


def test_too_few_trials_count_as_none() -> None:
    choices = Choices.of([other("a", chosen=0, logged=(1.0, 0.0)), other("b"), other("c"), same("d")])
    confirmed = np.array([True, False, False, False])
    told, departures = untried_fail(choices, ALL, confirmed=confirmed, least_trials=2.5)
    assert departures == Departures(0.5, 0.25, 0.0, confirmed=0.25, n_confirmed=1)
    assert told.target[2:6].tolist() == [0.0, 0.5, 0.0, 0.5]
    assert untried_fail(choices, ALL, confirmed=confirmed, least_trials=2.0)[1].effective_size == 2.0
