from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.learning_data import LearningData
from benchmarks.learning_nine import curve_of, least_cost
from benchmarks.learning_routellm import ece_of
from intent.dummy_embedder import DummyEmbedder
from intent.vector_cache import VectorCache

_MODELS = {
    "tables": {
        "routellm_mmlu": [
            {"model": "s", "role": "strong", "usd_in_per_m": 10.0},
            {"model": "w", "role": "weak", "usd_in_per_m": 0.5},
        ],
        "llmrouter9": [{"model": "a", "usd_in_per_m": 1.0}, {"model": "b", "usd_in_per_m": 4.0}],
    }
}


def _write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def data(tmp_path: Path) -> LearningData:
    folder = tmp_path / "llm_routing"
    folder.mkdir()
    (folder / "models.json").write_text(json.dumps(_MODELS), encoding="utf-8")
    plain = {"subject": "law", "strong_correct": True, "weak_correct": False}
    _write(
        folder, "routellm_mmlu_train", [{"prompt": "one", **plain}, {"prompt": "two", **plain, "contaminated": True}]
    )
    _write(folder, "routellm_mmlu_test", [{"prompt": "three", **plain, "weak_correct": True}])
    for part in ("train", "test"):
        rows = [{"prompt": f"{part} prompt", "task": "gsm8k", "scores": {"b": 0.25, "a": 1.0}}]
        _write(folder, f"llmrouter9_{part}", rows)
    return LearningData(tmp_path, VectorCache(DummyEmbedder(), n_threads=1))


def test_contaminated_rows_are_left_out_and_the_weak_agent_comes_first(data: LearningData) -> None:
    table = data.routellm("mmlu")
    assert table.prompts == ["one", "three"]
    assert table.agents == ("weak", "strong")
    assert table.rewards.tolist() == [[0, 1], [1, 1]]
    assert table.features.shape[0] == table.vectors.shape[0] == 2


def test_a_call_costs_a_quarter_of_its_characters_in_tokens(data: LearningData) -> None:
    table = data.nine("train")
    assert table.costs.tolist() == [pytest.approx([len("train prompt") / 4 * price / 1e6 for price in (1, 4)])]
    assert table.rewards.tolist() == [[1.0, 0.25]]


def test_all_is_train_and_then_test(data: LearningData) -> None:
    assert data.nine("all").prompts == ["train prompt", "test prompt"]


def test_a_folder_without_tables_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"routellm_mmlu_train\.jsonl\.gz: is --data the folder with llm_routing"
    ):
        LearningData(tmp_path, VectorCache(DummyEmbedder(), n_threads=1)).routellm("mmlu")


def test_a_larger_weight_of_cost_gives_a_cheaper_choice(data: LearningData) -> None:
    table = data.nine("all")
    curve = curve_of(table, np.array([[0.5, 0.9], [0.5, 0.9]]))
    costs = curve.costs.mean(axis=1)
    assert costs[0] == pytest.approx(table.costs[:, 1].mean())
    assert costs[-1] == pytest.approx(table.costs[:, 0].mean())
    assert (np.diff(costs) <= 0).all()


def test_least_cost_is_straight_between_two_policies() -> None:
    costs, rewards = np.array([2.0, 1.0]), np.array([0.5, 0.2])
    assert least_cost(costs, rewards, 0.35) == pytest.approx(1.5)
    assert least_cost(costs, rewards, 0.5) == 2
    assert least_cost(costs, rewards, 0.6) == float("inf")


def test_calibration_error_counts_partial_rewards_in_their_parts() -> None:
    assert ece_of(np.full((10, 2), 0.4), np.full((10, 2), 0.4)) == pytest.approx(0)
    assert ece_of(np.full((10, 2), 0.4), np.ones((10, 2))) == pytest.approx(0.6)
