from __future__ import annotations

import numpy as np
import pytest

from feedback.success_heads import HALF_TRUST
from router.retraining.success_held_out import HALF_TRUSTS, LEAST_CHOOSERS, HeldOut


def held_out(n: int, spread: float, noise: float, seed: int = 0, n_outcomes: int = 1000) -> HeldOut:
    """Rows of which the table knows the mean alone; heads know each row's chance, `noise` off."""
    draw = np.random.default_rng(seed)
    chances = 0.5 + spread * draw.choice([-1, 1], size=n)
    return HeldOut(
        table=np.full(n, 0.5),
        heads=np.clip(chances + draw.normal(0, noise, size=n), 0.02, 0.98),
        n_outcomes=np.full(n, n_outcomes),
        rewards=(draw.random(n) < chances).astype(float),
        weights=np.ones(n),
        texts=np.arange(n),
        is_second=draw.random(n) < 0.5,
    )


def test_heads_that_know_it_all_are_trusted_from_few_outcomes_on() -> None:
    assert HALF_TRUSTS == (1000, 300, 100, 30)
    assert held_out(600, spread=0.45, noise=0.0).half_trust() == 30


def test_heads_that_are_half_right_are_trusted_by_half() -> None:
    assert {held_out(600, spread=0.15, noise=0.2, seed=seed).half_trust() for seed in range(5)} == {HALF_TRUST}


def test_the_written_one_stands_where_nothing_tells_them_apart() -> None:
    held = held_out(600, spread=0.0, noise=0.0)
    assert held.half_trust() == HALF_TRUST
    assert held._replace(heads=held.table).half_trust() == HALF_TRUST  # all alike: a tie


def test_what_is_better_by_chance_is_not_chosen() -> None:
    # heads that guess about a table that is right: the less they are trusted, the better
    chosen = [held_out(200, spread=0.0, noise=0.1, seed=seed).half_trust() for seed in range(100)]
    assert chosen.count(HALF_TRUST) >= 95


def test_few_texts_choose_nothing_however_many_rows_they_have() -> None:
    held = held_out(600, spread=0.45, noise=0.0)
    few = held._replace(texts=np.arange(600) % (LEAST_CHOOSERS - 1))
    assert few.half_trust() == HALF_TRUST
    assert held._replace(texts=np.arange(600) % LEAST_CHOOSERS).half_trust() == 30


def test_rows_of_one_text_are_no_witnesses_of_each_other() -> None:
    # of two texts with many rows heads foresee one well and one badly; all others as well as the table
    row = np.arange(400)
    held = HeldOut(
        table=np.full(400, 0.5),
        heads=np.where(row < 160, 0.9, 0.5),
        n_outcomes=np.full(400, 1000),
        rewards=np.where(row < 160, row < 135, row % 2).astype(float),
        weights=np.ones(400),
        texts=row,
        is_second=np.zeros(400, dtype=np.bool_),
    )
    assert held.half_trust() < HALF_TRUST
    assert held._replace(texts=np.where(row < 135, 0, np.where(row < 160, 1, row))).half_trust() == HALF_TRUST


def test_what_a_half_is_foreseen_by_was_chosen_by_the_other() -> None:
    first, second = held_out(400, 0.45, 0.0), held_out(400, 0.0, 0.2, seed=1)
    mixed = HeldOut(*(np.concatenate(pair) for pair in zip(first, second, strict=True)))
    mixed = mixed._replace(is_second=np.arange(800) >= 400, texts=np.arange(800))
    assert (first.half_trust(), second.half_trust()) == (30, HALF_TRUST)
    foreseen = mixed.foreseen()
    assert foreseen[400:] == pytest.approx(second.blended(30))
    assert foreseen[:400] == pytest.approx(first.blended(HALF_TRUST))
    figures = mixed.figures()
    assert figures["log_loss"].after == pytest.approx(figures["log_loss"].before - figures["gain"])
    assert figures["n_held_out"] == 800


def test_a_half_without_texts_is_nobodys_trouble() -> None:
    held = held_out(100, spread=0.45, noise=0.0)._replace(is_second=np.zeros(100, dtype=np.bool_))
    assert held.foreseen() == pytest.approx(held.blended(HALF_TRUST))
    assert held.figures()["is_kept"]


def test_weights_say_what_counts() -> None:
    good, bad = held_out(300, spread=0.45, noise=0.0), held_out(300, spread=0.0, noise=0.2, seed=1)
    both = HeldOut(*(np.concatenate(pair) for pair in zip(good, bad, strict=True)))._replace(texts=np.arange(600))
    assert both._replace(weights=np.repeat([1.0, 1e-6], 300)).half_trust() == 30
    assert both._replace(weights=np.repeat([1e-6, 1.0], 300)).half_trust() == HALF_TRUST
