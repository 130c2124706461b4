"""The single numbers of heads, as the manifest of a model folder keeps them; arrays are in a file of their own."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from intent.confidence import Confidence
from intent.heads import Heads, Stage
from intent.prior import PRIOR

N_OF_RELEVANCE = 2
"""Features more that a full stage judges by where the heads have relevance."""


class Slopes(BaseModel):
    """A `Confidence`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    weights: tuple[float, ...]
    bias: float

    @classmethod
    def of(cls, confidence: Confidence) -> Self:
        """To be written."""
        return cls(weights=confidence.weights, bias=confidence.bias)

    def confidence(self) -> Confidence:
        """As it was."""
        return Confidence(self.weights, self.bias)


class RelevanceNumbers(BaseModel):
    """Those of a `Relevance`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    confidence: Slopes
    least: float


class Numbers(BaseModel):
    """Those of `Heads`.

    Attributes:
        relevance: None for heads without; folders that were written before there was any name none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    unseen_idf: float
    lexical_weight: float
    early: float
    lexical_in_scope: Slopes
    lexical_is_right: Slopes
    full_in_scope: Slopes
    full_is_right: Slopes
    relevance: RelevanceNumbers | None = None

    @model_validator(mode="after")
    def _has_one_weight_a_feature(self) -> Self:
        n_more = 0 if self.relevance is None else N_OF_RELEVANCE
        wanted = {f"lexical_{part}": n for part, n in _n_features(PRIOR.lexical_stage).items()}
        wanted |= {f"full_{part}": n + n_more for part, n in _n_features(PRIOR.full_stage).items()}
        for name, n in wanted.items():
            found = len(getattr(self, name).weights)
            if found != n:
                raise ValueError(f"{name} has {found} weights, expected {n}")
        if self.relevance is not None and len(self.relevance.confidence.weights) != 1:
            raise ValueError(f"relevance has {len(self.relevance.confidence.weights)} weights, expected 1")
        return self

    @classmethod
    def of(cls, heads: Heads) -> Self:
        """To be written."""
        relevance = heads.relevance
        return cls(
            unseen_idf=heads.lexical.unseen_idf,
            lexical_weight=heads.lexical_weight,
            early=heads.early,
            lexical_in_scope=Slopes.of(heads.lexical_stage.in_scope),
            lexical_is_right=Slopes.of(heads.lexical_stage.is_right),
            full_in_scope=Slopes.of(heads.full_stage.in_scope),
            full_is_right=Slopes.of(heads.full_stage.is_right),
            relevance=None
            if relevance is None
            else RelevanceNumbers(confidence=Slopes.of(relevance.confidence), least=relevance.least),
        )


def _n_features(stage: Stage) -> dict[str, int]:
    return {"in_scope": len(stage.in_scope.weights), "is_right": len(stage.is_right.weights)}
