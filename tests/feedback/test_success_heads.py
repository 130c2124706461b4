from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from feedback.fit_success import Evidence, fit_success
from feedback.success_features import Features, features_of, vectors_of
from feedback.success_heads import HALF_TRUST, SuccessHeads, trust
from feedback.text_features import NAMES, text_features
from models.errors import ModelError

_DIM = 8
_EASY = "Where is my parcel?"
_HARD = "Prove, if x + 2 = 7 and y is not 3, that f(x) = 2^y solves 3x - 2y = 1, where x is an integer of 12 digits."


def _world(n: int = 900, seed: int = 1) -> tuple[Any, Any, Any, Any]:
    """Requests of two subjects, easy and hard; the weak agent fails on hard ones of the second."""
    draw = np.random.default_rng(seed)
    subject, is_hard = draw.integers(2, size=n), draw.integers(2, size=n)
    vectors = draw.normal(0, 0.15, size=(n, _DIM)).astype(np.float32)
    vectors[np.arange(n), subject] += 1
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    features = features_of([_EASY, _HARD])[is_hard]
    weak = np.where(is_hard & subject, 0.2, 0.9)
    rewards = (draw.random((n, 2)) < np.stack([weak, np.full(n, 0.9)], axis=1)).astype(float)
    return features, vectors, rewards, is_hard & subject


def _evidence(rewards: Any, rows: Any = None) -> dict[str, Evidence]:
    rows = np.arange(len(rewards)) if rows is None else rows
    return {name: Evidence(rows, rewards[rows, place]) for place, name in ((1, "strong"), (0, "weak"))}


def _heads(**more: Any) -> SuccessHeads:
    features, vectors, rewards, _ = _world()
    return fit_success(features, vectors, _evidence(rewards), encoder_id="dummy", seed=3, **more)


def test_the_gap_is_wide_where_the_weak_agent_fails_and_narrow_elsewhere() -> None:
    heads = _heads(strengths=(0.1,))
    features, vectors, _, is_trap = _world(n=400, seed=2)
    found = heads.predict_all(features, vectors).probabilities
    gap = found[:, heads.agents.index("strong")] - found[:, heads.agents.index("weak")]
    assert gap[is_trap == 1].mean() > 0.4
    assert abs(gap[is_trap == 0].mean()) < 0.15


def test_predictions_are_calibrated_on_other_requests() -> None:
    heads = _heads(strengths=(0.1,))
    features, vectors, rewards, is_trap = _world(n=4000, seed=4)
    weak = heads.predict_all(features, vectors).probabilities[:, heads.agents.index("weak")]
    for part in (is_trap == 1, is_trap == 0):
        assert abs(weak[part].mean() - rewards[part, 0].mean()) < 0.1


def test_heads_come_back_from_bytes_and_predict_the_same() -> None:
    heads = _heads()
    again = SuccessHeads.from_bytes(heads.to_bytes())
    vector = np.eye(_DIM, dtype="<f4")[1].tobytes()
    assert again.predict(_HARD, vector) == heads.predict(_HARD, vector)
    assert (again.agents, again.encoder_id, again.least) == (("strong", "weak"), "dummy", heads.least)
    assert again.n_outcomes.tolist() == [900, 900]


def test_the_same_evidence_and_seed_give_the_same_bytes() -> None:
    assert _heads().to_bytes() == _heads().to_bytes()


def test_outcomes_that_count_in_part_count_so_in_all() -> None:
    features, vectors, rewards, _ = _world(n=1200)
    rows = np.arange(600)
    honest = Evidence(rows, rewards[rows, 1])
    lies = Evidence(np.arange(1200), np.append(rewards[rows, 1], np.zeros(600)), counts=np.repeat([1.0, 0.1], 600))
    heads = fit_success(features, vectors, {"a": honest, "b": lies}, encoder_id="dummy", seed=3)
    assert heads.n_outcomes.tolist() == [600, 660]
    honest_mean, capped_mean = heads.predict_all(features, vectors).probabilities[:600].mean(axis=0)
    assert honest_mean - 0.1 < capped_mean < honest_mean
    few = lies._replace(counts=np.full(1200, 0.4))
    with pytest.raises(ValueError, match="no agent has 500 outcomes, the most has 480"):
        fit_success(features, vectors, {"b": few}, encoder_id="dummy", seed=3)


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY" * 10])
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(ModelError, match="no success heads"):
        SuccessHeads.from_bytes(content)


def test_a_pickled_object_among_the_arrays_is_refused() -> None:
    with np.load(io.BytesIO(_heads().to_bytes())) as found:
        arrays = dict(found)
    file = io.BytesIO()
    np.savez(file, **{**arrays, "agents": np.array([{"a": 1}, None], dtype=object)})
    with pytest.raises(ModelError, match="pickle"):
        SuccessHeads.from_bytes(file.getvalue())


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("version", np.array(1), "heads are of version 1, expected 2; fit them again with `retrain`"),
        ("half_trust", np.array(0), "half_trust is 0, expected 1 or more"),
        ("half_trust", np.array(np.nan), "no success heads"),
        ("full", np.zeros((2, 3), dtype=np.float32), "have the shapes"),
        ("scales", np.zeros(len(NAMES), dtype=np.float32), "not all over 0"),
        ("means", np.full(len(NAMES), np.nan, dtype=np.float32), "not all finite"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name: str, value: Any, told: str) -> None:
    with np.load(io.BytesIO(_heads().to_bytes())) as found:
        arrays = dict(found)
    file = io.BytesIO()
    np.savez(file, **{**arrays, name: value})
    with pytest.raises(ModelError, match=told):
        SuccessHeads.from_bytes(file.getvalue())


def test_out_of_the_domain_of_experience_the_wording_alone_decides() -> None:
    heads = _heads(strengths=(0.1,))
    far = -np.eye(_DIM, dtype="<f4")
    hard, easy = heads.predict(_HARD, far[0].tobytes()), heads.predict(_EASY, far[0].tobytes())
    assert not hard.is_known
    assert hard.nearness < heads.least
    # where it lies does not matter there, how hard it is does
    assert hard.probabilities == heads.predict(_HARD, far[1].tobytes()).probabilities
    strong, weak = heads.agents.index("strong"), heads.agents.index("weak")
    gaps = [each.probabilities[strong] - each.probabilities[weak] for each in (hard, easy)]
    assert gaps[0] > gaps[1] + 0.1
    assert heads.predict(_HARD, (-far[0]).tobytes()).is_known


def test_a_head_counts_for_half_from_a_thousand_outcomes_on() -> None:
    heads = replace(_heads(), n_outcomes=np.array([1000, 3000]))
    assert heads.trusts == (0.5, 0.75)
    assert trust(0) == 0


def test_a_head_counts_for_more_where_the_exam_chose_so() -> None:
    heads = replace(_heads(), n_outcomes=np.array([1000, 300]), half_trust=100)
    assert heads.trusts == pytest.approx((1000 / 1100, 0.75))
    again = SuccessHeads.from_bytes(heads.to_bytes())
    assert (again.half_trust, again.trusts) == (100, heads.trusts)
    assert _heads().half_trust == HALF_TRUST == 1000


def test_agents_with_too_few_outcomes_get_no_head() -> None:
    features, vectors, rewards, _ = _world()
    evidence = {**_evidence(rewards), "newcomer": Evidence(np.arange(499), rewards[:499, 0])}
    assert fit_success(features, vectors, evidence, encoder_id="", seed=1).agents == ("strong", "weak")
    with pytest.raises(ValueError, match="no agent has 1000 outcomes, the most has 900"):
        fit_success(features, vectors, evidence, encoder_id="", seed=1, least_outcomes=1000)


def test_partial_rewards_count_in_their_parts() -> None:
    features, vectors, _, _ = _world()
    halves = {"one": Evidence(np.arange(900), np.full(900, 0.3))}
    heads = fit_success(features, vectors, halves, encoder_id="", seed=1)
    assert heads.predict_all(features, vectors).probabilities == pytest.approx(0.3, abs=0.01)


def test_weights_undo_a_choice_that_was_not_even() -> None:
    features, vectors, rewards, is_trap = _world(n=4000)
    # traps reached the log four times less often than other requests
    kept = np.flatnonzero((is_trap == 0) | (np.random.default_rng(7).random(4000) < 0.25))
    weights = np.where(is_trap[kept] == 1, 4.0, 1.0)
    predicted = {}
    for name, each in (("even", None), ("weighted", weights)):
        heads = fit_success(
            features,
            vectors,
            {"weak": Evidence(kept, rewards[kept, 0], each)},
            encoder_id="",
            seed=1,
            strengths=(1e-4,),
        )
        predicted[name] = heads.predict_all(features, vectors).probabilities.mean()
    assert abs(predicted["weighted"] - rewards[:, 0].mean()) < 0.02
    assert predicted["even"] - rewards[:, 0].mean() > 0.05


def test_an_agent_that_never_fails_is_near_certain_and_not_quite() -> None:
    features, vectors, _, _ = _world(n=600)
    heads = fit_success(features, vectors, {"sure": Evidence(np.arange(600), np.ones(600))}, encoder_id="", seed=1)
    assert heads.predict_all(features, vectors).probabilities == pytest.approx(601 / 602)


def test_rewards_beyond_one_are_refused() -> None:
    features, vectors, _, _ = _world(n=600)
    with pytest.raises(ValueError, match="rewards of odd are not all"):
        fit_success(features, vectors, {"odd": Evidence(np.arange(600), np.full(600, 1.5))}, encoder_id="", seed=1)


def test_a_vector_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="8 bytes, expected 32"):
        vectors_of([b"12345678"], _DIM)


def test_text_features_tell_a_hard_request_from_an_easy_one() -> None:
    easy, hard = (dict(zip(NAMES, text_features(each), strict=True)) for each in (_EASY, _HARD))
    for name in ("characters", "numbers", "math_signs", "formulas", "conditions", "brackets", "negations"):
        assert hard[name] > easy[name], name
    assert easy["questions"] > hard["questions"] == 0


def test_text_features_of_nothing_are_finite() -> None:
    assert np.isfinite(text_features("")).all()
    assert len(text_features("")) == len(NAMES)


def test_options_are_counted_by_line() -> None:
    found = dict(zip(NAMES, text_features("Which one?\nA. red\n(B) green\nC) blue\nAnswer:"), strict=True))
    assert found["options"] == pytest.approx(np.log1p(3))


def test_rows_are_standardized_and_bounded() -> None:
    features, vectors, _, _ = _world()
    seen = Features.fitted(features, vectors)
    rows = seen.rows(features, vectors)
    assert rows.shape == (900, seen.n_columns)
    assert np.abs(rows[:, _DIM:].mean(axis=0)).max() < 0.01
    odd = seen.rows(features_of(["9" * 8000]), vectors[:1])
    assert np.abs(odd[:, _DIM:]).max() <= 5
