from __future__ import annotations

from dataclasses import replace

import pytest

from intent.prior import PRIOR, stage_by_both
from tests.intent.fitted import BOTH, heads_of

HEADS = replace(heads_of(BOTH), languages=frozenset({"en", "zh"}))
MANY = frozenset({"en", "zh", "de"})


@pytest.mark.parametrize("text", ["where is my parcel now", "我的包裹在哪里", "ok", "dov'è il mio pacco"])
def test_what_examples_are_in_and_what_cannot_be_told_is_judged_by_the_heads_own_stage(text: str) -> None:
    assert stage_by_both(HEADS, text, MANY) is HEADS.full_stage


def test_a_language_that_only_the_encoder_knows_is_judged_by_the_stage_across_languages() -> None:
    assert stage_by_both(HEADS, "wo ist mein Paket", MANY) is PRIOR.cross_stage


@pytest.mark.parametrize("languages", [None, frozenset({"de"})])
def test_it_takes_an_encoder_that_was_made_for_several(languages: frozenset[str] | None) -> None:
    assert stage_by_both(HEADS, "wo ist mein Paket", languages) is HEADS.full_stage


def test_heads_whose_languages_are_not_known_judge_all() -> None:
    assert stage_by_both(replace(HEADS, languages=frozenset()), "wo ist mein Paket", MANY) is HEADS.full_stage


def test_across_languages_a_reading_is_surer_at_the_same_likeness() -> None:
    near, far = [3.0, 0.5, 0.5, 0.0, 3.0], [-3.0, 0.1, 0.1, 0.0, 0.5]
    assert PRIOR.cross_stage.confidence(near) > PRIOR.full_stage.confidence(near)
    assert PRIOR.cross_stage.confidence(far) < 0.2
