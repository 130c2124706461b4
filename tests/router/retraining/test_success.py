from __future__ import annotations

import numpy as np
import pytest

from feedback.success_heads import HALF_TRUST, SuccessHeads
from intent.dummy_embedder import DummyEmbedder
from models.ports import Embedded
from router.retraining.success import LEAST_TEXTS, examined
from tests.router.retraining.outcomes import EASY, HARD, STRONG, WEAK, by_intent, by_wording, exam_of, fitted, part, row


def foreseen(heads: SuccessHeads, template: str, agent: str) -> float:
    """In the mean of requests that nobody has seen."""
    embedder = DummyEmbedder()
    texts = [template.format(number) for number in range(90_000, 90_020)]
    found = [heads.predict(text, embedder.embed(text).vector).probabilities for text in texts]
    return float(np.mean(found, axis=0)[heads.agents.index(agent)])


@pytest.mark.parametrize("seed", [1, 2])
def test_heads_are_kept_where_the_wording_says_what_the_intent_does_not(seed: int) -> None:
    exam, heads = fitted(by_wording(1500, seed))
    assert exam.is_kept
    assert exam.log_loss is not None
    assert exam.log_loss.before is not None
    assert exam.log_loss.after is not None
    assert exam.log_loss.after < exam.log_loss.before - 0.09  # 0.12 where this was written
    assert exam.gain == pytest.approx(exam.log_loss.before - exam.log_loss.after)
    assert exam.standard_error is not None
    assert 0 < exam.standard_error < 0.02
    assert exam.why.startswith(f"their log loss is {exam.gain:.4f} lower than the table's")
    assert 400 < exam.n_held_out < 600
    assert heads is not None
    assert heads.agents == (STRONG, WEAK)
    # each half of the held-out texts is foreseen by the half-trust that the other half chose
    assert exam.ece is not None
    assert exam.ece.after is not None
    assert exam.ece.after <= 0.05
    assert exam.half_trust is not None
    assert exam.half_trust < HALF_TRUST
    assert heads.half_trust == exam.half_trust
    assert heads.n_outcomes.tolist() == [1500, 1500]  # those that serve are fitted on all
    assert foreseen(heads, EASY, WEAK) - foreseen(heads, HARD, WEAK) > 0.35
    assert abs(foreseen(heads, EASY, STRONG) - foreseen(heads, HARD, STRONG)) < 0.1


@pytest.mark.parametrize("seed", range(5))
def test_heads_are_not_kept_where_the_intent_says_all(seed: int) -> None:
    exam, heads = fitted(by_intent(600, seed))
    assert not exam.is_kept
    assert heads is None
    assert exam.gain is not None
    assert exam.standard_error is not None
    assert exam.gain <= exam.standard_error
    assert exam.ece is not None
    assert exam.half_trust == HALF_TRUST
    assert "than the table's by intent and agent; a standard error is" in exam.why


def test_the_exam_is_sat_on_texts_that_nothing_was_fitted_on() -> None:
    # every text comes thrice, with the same end each time: who has seen it once knows it
    draw, rows = np.random.default_rng(0), []
    for number in range(300):
        reward = float(draw.random() < 0.5)
        rows += [row(WEAK, f"word{number} {mark}", "ask", reward, f"c{number % 20}") for mark in ("", "!", " ?")]
    exam = exam_of(rows)
    assert not exam.is_kept
    assert exam.log_loss is not None
    assert exam.log_loss.before == pytest.approx(0.69, abs=0.02)
    assert 70 < exam.n_held_out < 130  # of 300 texts, marks apart


def test_too_few_outcomes_or_texts_are_named() -> None:
    exam, heads = fitted(by_wording(400))
    assert heads is None
    assert exam.why == (
        "an agent needs 500 outcomes that count, on 50 texts; default/strong/1.0.0 has 400 on 400;"
        " default/weak/1.0.0 has 400 on 400"
    )
    assert exam.n_outcomes == {STRONG: 400, WEAK: 400}
    assert exam.log_loss is None
    assert exam.half_trust is None
    same = [row(WEAK, f"text {number % (LEAST_TEXTS - 1)}", "ask", 1.0, f"c{number % 20}") for number in range(900)]
    assert exam_of(same).why.endswith("default/weak/1.0.0 has 900 on 49")
    assert exam_of([]).why.endswith("the log holds none on a text that was kept")


def test_an_agent_with_too_few_outcomes_gets_no_head_beside_one_that_has_enough() -> None:
    rows = by_wording(900)
    few = [each for each in rows if each.agent == WEAK] + [each for each in rows if each.agent == STRONG][:300]
    exam, heads = fitted(few)
    assert exam.n_outcomes == {STRONG: 300, WEAK: 900}
    assert heads is not None
    assert heads.agents == (WEAK,)


def test_a_thousand_false_outcomes_of_one_caller_do_not_own_a_head() -> None:
    honest = by_wording(1000)
    easy = [each.text for each in honest if each.text.startswith("please")]
    lies = [row(STRONG, easy[number % len(easy)], "ask", 0.0, "mallory") for number in range(1000)]
    exam, heads = fitted([*lies, *honest], n_callers=21)
    assert exam.n_outcomes == {STRONG: 1111, WEAK: 1000}  # a ninth of what the others told
    assert heads is not None
    before, uncapped = fitted(honest).heads, fitted([*lies, *honest], n_callers=1).heads
    assert before is not None
    assert uncapped is not None
    assert foreseen(before, EASY, STRONG) - foreseen(heads, EASY, STRONG) < 0.15
    assert foreseen(before, EASY, STRONG) - foreseen(uncapped, EASY, STRONG) > 0.3  # what the cap is for


def test_an_agent_of_which_one_caller_alone_has_told_gets_no_head() -> None:
    lies = [row("default/mine/1.0.0", EASY.format(n), "ask", 1.0, "mallory") for n in range(1000)]
    found = part([*lies, *by_wording(300)], n_callers=21)
    assert found.n_outcomes["default/mine/1.0.0"] == 0
    assert not found.rows
    assert (
        "default/mine/1.0.0 has 1000 on 1000, of which 0 count: one caller told most of them"
        in part(lies, n_callers=21).missing
    )


def test_rare_choices_weigh_more_for_one_caller_as_for_all() -> None:
    rows = [row(WEAK, f"text {n}", "ask", 1.0, f"c{n % 20}") for n in range(900)]
    rows += [row(WEAK, f"text {n}", "ask", 0.0, "mallory", inverse=20.0) for n in range(100)]
    found = part(rows, n_callers=21)
    weights = np.array(found.counts) * [each.inverse for each in found.rows]
    assert weights[-100:].sum() == pytest.approx(weights.sum() / 10)


def test_texts_that_the_encoder_hardly_knows_are_left_out() -> None:
    found, embedder = part(by_wording(600)), DummyEmbedder()
    vectors = {text: embedder.embed(text) for text in found.texts}
    foreign = {text: Embedded(each.vector, 0.9) if "7%" in text else each for text, each in vectors.items()}
    told = examined(found, {"no_text": 3}, foreign, encoder_id="dummy-64", seed=0)
    assert told.heads is None
    assert told.exam.why == "the encoder knows too little of the requests' words"
    assert told.exam.n_left_out == {"no_text": 3, "unknown_words": sum("7%" in each.text for each in found.rows)}
