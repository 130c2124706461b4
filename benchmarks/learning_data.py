"""The public tables of outcomes that bench_learning reads from `--data`, with their vectors."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feedback.success_features import features_of, vectors_of
from intent.normalize import normalize
from intent.vector_cache import VectorCache

FOLDER = "llm_routing"
CHARS_PER_TOKEN = 4
"""As models.json says: a fair stand-in."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeTable:
    """What every agent made of every prompt.

    Attributes:
        prompts: as they are.
        groups: of each prompt, its subject or task.
        agents: in the order of the columns.
        rewards: float64, shape (n, n_agents), 0..1.
        costs: float64, shape (n, n_agents), dollars a call.
        features: float32, shape (n, n_features): text features.
        vectors: float32, shape (n, dim): embeddings.
    """

    prompts: list[str]
    groups: list[str]
    agents: tuple[str, ...]
    rewards: Floats
    costs: Floats
    features: NDArray[np.float32]
    vectors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.prompts)


@dataclass(frozen=True, slots=True)
class LearningData:
    """Where the tables are, and what embeds them."""

    folder: Path
    vectors: VectorCache

    def routellm(self, name: str) -> OutcomeTable:
        """`mmlu` or `gsm8k`: train and test parts, without the rows that RouteLLM leaves out as contaminated.

        The agents are `weak` and `strong`; costs are by list price and the prompt's length alone.
        """
        rows = [row for part in ("train", "test") for row in self._rows(f"routellm_{name}_{part}")]
        rows = [row for row in rows if not row.get("contaminated")]
        rewards = np.array([[row["weak_correct"], row["strong_correct"]] for row in rows], dtype=np.float64)
        prices = {each["role"]: each for each in self._models(f"routellm_{name}")}
        return self._table(rows, "subject", ("weak", "strong"), rewards, [prices["weak"], prices["strong"]])

    def nine(self, part: str) -> OutcomeTable:
        """LLMRouter's nine models: `train`, `test`, or `all` for one after the other."""
        parts = ("train", "test") if part == "all" else (part,)
        rows = [row for each in parts for row in self._rows(f"llmrouter9_{each}")]
        models = self._models("llmrouter9")
        agents = tuple(each["model"] for each in models)
        rewards = np.array([[row["scores"][agent] for agent in agents] for row in rows], dtype=np.float64)
        return self._table(rows, "task", agents, rewards, models)

    def _table(
        self,
        rows: Sequence[dict[str, Any]],
        group: str,
        agents: tuple[str, ...],
        rewards: Floats,
        models: Sequence[dict[str, Any]],
    ) -> OutcomeTable:
        prompts = [row["prompt"] for row in rows]
        texts = [normalize(prompt) for prompt in prompts]
        known = self.vectors.of(texts)
        tokens = np.array([len(prompt) / CHARS_PER_TOKEN for prompt in prompts])
        prices = np.array([each["usd_in_per_m"] for each in models])
        return OutcomeTable(
            prompts,
            [row[group] for row in rows],
            agents,
            rewards,
            tokens[:, None] * prices / 1e6,
            features_of(prompts),
            vectors_of([known[text].vector for text in texts], self.vectors.embedder.dim),
        )

    def _rows(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / FOLDER / f"{name}.jsonl.gz"
        if not path.exists():
            raise FileNotFoundError(f"there is no {path}: is --data the folder with {FOLDER}/ in it?")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def _models(self, table: str) -> list[dict[str, Any]]:
        models = json.loads((self.folder / FOLDER / "models.json").read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = models["tables"][table]
        return found
