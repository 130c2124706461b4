"""Tuning: an encoder's weights are moved until texts of one intent lie together. Needs the extra `train`.

A classification by cosine: each intent has a direction, which starts as the mean of its examples, and the cross-entropy
of the scaled cosines moves encoder and directions (Wang et al., 2018, CosFace, equation 2 without margin). A
contrastive term between the examples of a batch does the same without directions (Khosla et al., 2020, equation 2); it
helps where examples are few. Only the encoder is kept: the heads are fitted on its vectors as on any other's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from intent.embedder import cpu_features
from intent.export import Source, check_files, require_extra, use_prompt
from intent.fit_classifiers import Example
from intent.language import languages_of
from intent.vector_cache import Progress, silent
from models.errors import EncoderError

MAX_TOKENS = 128
"""Of a text that tuning sees."""

_SORTED_BATCHES = 16
"""So many batches are drawn together and divided by length, so that little is padded."""

_WARM_UP = 0.1
_MAX_GRADIENT = 1.0
_ENCODE_BATCH = 128
_BF16 = frozenset({"avx512_bf16", "amx_bf16"})


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to tune.

    Attributes:
        n_epochs: how often each example is seen.
        batch: examples a step.
        rate: learning rate of the encoder at its peak; it rises over the first tenth and falls to 0 in a line.
        direction_rate: the same of the intents' directions.
        scale: of the cosines, so that their softmax can be sure.
        smoothing: share of the probability that goes to all intents alike.
        contrast: weight of the contrastive term; 0 leaves it out, and a second pass over each batch with it.
        temperature: of the contrastive term.
    """

    n_epochs: int = 5
    batch: int = 64
    rate: float = 1e-4
    direction_rate: float = 2e-3
    scale: float = 20.0
    smoothing: float = 0.05
    contrast: float = 0.0
    temperature: float = 0.1

    @classmethod
    def of(cls, n_examples: int, n_intents: int) -> Recipe:
        """What validation rows of CLINC150, BANKING77 and HWU64 speak for."""
        return cls() if n_examples >= FEW * n_intents else cls(n_epochs=20, batch=32, contrast=1.0)


FEW = 20
"""With fewer examples an intent, they are seen more often, and contrasted."""


def tune(
    source: Source,
    examples: Sequence[Example],
    out: Path,
    *,
    recipe: Recipe,
    seed: int = 0,
    progress: Progress = silent,
) -> Source:
    """Tune a sentence-transformers model on examples and write it to a folder.

    Args:
        source: the model to start from; it is left as it is.
        examples: normalized texts of at least two intents.
        out: folder for the tuned model, as sentence-transformers writes it.
        recipe: how.
        seed: of the order of the examples and of dropout.
        progress: told of the steps.

    Returns:
        The tuned model, for `export_encoder`.

    Raises:
        EncoderError: the extra `train` is missing, the source's files are not the expected ones, or the loss is not a
            number any more.
    """
    check_files(source)
    labels = sorted({example.intent for example in examples})
    if len(labels) < 2:
        raise ValueError(f"tuning needs at least 2 intents, the examples have {len(labels)}")
    _Tuning(source, examples, labels, recipe, seed).run(progress).save(out)
    return Source(out, f"{source.name}, tuned", languages=_languages(source, examples))


def _languages(source: Source, examples: Sequence[Example]) -> tuple[str, ...] | None:
    """Those of the model and those that it has now seen."""
    if source.languages is None:
        return None
    return tuple(sorted({*source.languages, *languages_of(example.text for example in examples)}))


class _Tuning:
    """One run; torch is at hand only while it lasts."""

    def __init__(
        self, source: Source, examples: Sequence[Example], labels: Sequence[str], recipe: Recipe, seed: int
    ) -> None:
        self.torch = require_extra("torch")
        self.recipe = recipe
        self.random = random.Random(seed)
        self.torch.manual_seed(seed)
        self.model: Any = require_extra("sentence_transformers").SentenceTransformer(str(source.folder), device="cpu")
        prompt = use_prompt(self.model, source.prompt)
        texts = [prompt + example.text for example in examples]
        tokens = self.model.tokenizer(texts, truncation=True, max_length=MAX_TOKENS)
        self.tokens: list[list[int]] = tokens["input_ids"]
        place = {label: number for number, label in enumerate(labels)}
        self.targets = self.torch.tensor([place[example.intent] for example in examples])
        self.in_bf16 = not _BF16.isdisjoint(cpu_features() or ())
        self.directions = self.torch.nn.Parameter(self._centres(len(labels)))

    def save(self, out: Path) -> None:
        """Write the model, its dropout switched off."""
        self.model.eval().save(str(out), create_model_card=False)

    def run(self, progress: Progress) -> _Tuning:
        """All steps."""
        optimizer = self._optimizer()
        n_steps = self.recipe.n_epochs * -(-len(self.tokens) // self.recipe.batch)
        step = 0
        self.model.train()
        for _ in range(self.recipe.n_epochs):
            for rows in self._batches():
                for group in optimizer.param_groups:
                    group["lr"] = group["peak"] * _share_of_peak(step, n_steps)
                loss = self._loss(rows)
                if not bool(self.torch.isfinite(loss)):
                    raise EncoderError(f"tuning came apart at step {step} of {n_steps}: the loss is {float(loss)}")
                loss.backward()
                self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), _MAX_GRADIENT)
                optimizer.step()
                optimizer.zero_grad()
                step += 1
                progress(step, n_steps)
        return self

    def _vectors(self, rows: Sequence[int]) -> Any:
        """Of examples, shape (n, dim), unit length."""
        padded = self.model.tokenizer.pad({"input_ids": [self.tokens[row] for row in rows]}, return_tensors="pt")
        with self.torch.autocast("cpu", dtype=self.torch.bfloat16, enabled=self.in_bf16):
            pooled = self.model(dict(padded))["sentence_embedding"]
        return self.torch.nn.functional.normalize(pooled.float(), dim=1)

    def _centres(self, n_labels: int) -> Any:
        """The mean vector of each intent's examples, shape (n_labels, dim), unit length."""
        by_length = sorted(range(len(self.tokens)), key=lambda row: len(self.tokens[row]))
        sums = None
        self.model.eval()
        with self.torch.no_grad():
            for start in range(0, len(by_length), _ENCODE_BATCH):
                rows = by_length[start : start + _ENCODE_BATCH]
                vectors = self._vectors(rows)
                sums = self.torch.zeros(n_labels, vectors.shape[1]) if sums is None else sums
                sums.index_add_(0, self.targets[rows], vectors)
            return self.torch.nn.functional.normalize(sums, dim=1)

    def _optimizer(self) -> Any:
        recipe = self.recipe
        weights = [each for each in self.model.parameters() if each.ndim > 1]
        biases = [each for each in self.model.parameters() if each.ndim < 2]  # these are not drawn towards 0
        return self.torch.optim.AdamW(
            [
                {"params": weights, "peak": recipe.rate, "weight_decay": 0.01},
                {"params": biases, "peak": recipe.rate, "weight_decay": 0.0},
                {"params": [self.directions], "peak": recipe.direction_rate, "weight_decay": 0.0},
            ]
        )

    def _batches(self) -> Iterator[list[int]]:
        """Rows of one epoch, in random order but of like length within a batch."""
        batch, rows = self.recipe.batch, list(range(len(self.tokens)))
        self.random.shuffle(rows)
        batches: list[list[int]] = []
        for start in range(0, len(rows), batch * _SORTED_BATCHES):
            drawn = sorted(rows[start : start + batch * _SORTED_BATCHES], key=lambda row: len(self.tokens[row]))
            batches += [drawn[first : first + batch] for first in range(0, len(drawn), batch)]
        self.random.shuffle(batches)
        yield from batches

    def _loss(self, rows: list[int]) -> Any:
        targets, vectors = self.targets[rows], self._vectors(rows)
        loss = self._by_direction(vectors, targets)
        if not self.recipe.contrast:
            return loss
        again = self._vectors(rows)  # dropout makes it another view of the same texts
        both, twice = self.torch.cat([vectors, again]), self.torch.cat([targets, targets])
        return loss + self._by_direction(again, targets) + self.recipe.contrast * self._by_contrast(both, twice)

    def _by_direction(self, vectors: Any, targets: Any) -> Any:
        functional = self.torch.nn.functional
        cosines = vectors @ functional.normalize(self.directions, dim=1).T
        return functional.cross_entropy(self.recipe.scale * cosines, targets, label_smoothing=self.recipe.smoothing)

    def _by_contrast(self, vectors: Any, targets: Any) -> Any:
        """Each vector's mean log-probability of those of its own intent among all others."""
        is_self = self.torch.eye(len(vectors), dtype=self.torch.bool)
        likeness = (vectors @ vectors.T / self.recipe.temperature).masked_fill(is_self, -1e9)
        is_own = (targets[:, None] == targets[None]) & ~is_self
        return -((likeness.log_softmax(1) * is_own).sum(1) / is_own.sum(1)).mean()


def _share_of_peak(step: int, n_steps: int) -> float:
    """Of the learning rate: up in a line, and down to 0."""
    n_warm = max(1, round(_WARM_UP * n_steps))
    return float(np.clip(min((step + 1) / n_warm, (n_steps - step) / max(1, n_steps - n_warm)), 0.0, 1.0))
