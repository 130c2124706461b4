"""The confidences that hold before there are enough examples to fit better ones.

Fitted by `benchmarks/fit_prior.py` on small sets drawn from the training parts of CLINC150, BANKING77 and HWU64 (4
to 60 intents, 2 to 12 examples each, other intents and out-of-scope texts as what is out of scope), never on a test
file.
"""

from __future__ import annotations

from dataclasses import dataclass

from intent.confidence import Confidence, RiskTable
from intent.heads import Heads, Stage
from intent.language import language_of

_NONE = RiskTable.empty()


@dataclass(frozen=True, slots=True)
class Prior:
    """Stages that need no held-out readings.

    Attributes:
        foreign_stage: judges by words alone texts whose language the encoder does not know; fitted on the training
            parts of xSID zh, Home Assistant zh-CN and CrossWOZ, drawn in the same way.
        cross_stage: judges by both texts in a language that no examples are in; fitted by `benchmarks/fit_languages.py`
            with the multilingual encoder, on xSID valid and the training part of Home Assistant.
    """

    lexical_stage: Stage
    foreign_stage: Stage
    full_stage: Stage
    cross_stage: Stage
    early: float


PRIOR = Prior(
    lexical_stage=Stage(
        in_scope=Confidence((4.079, 0.0, 4.714), -1.035),
        is_right=Confidence((1.361, 1.238, 1.421), -0.912),
        risk=_NONE,
    ),
    foreign_stage=Stage(
        in_scope=Confidence((1.407, 0.26, 5.6), -1.349),
        is_right=Confidence((1.044, 0.766, 0.0), -0.131),
        risk=_NONE,
    ),
    full_stage=Stage(
        in_scope=Confidence((0.061, 6.283, 0.0, 1.192, 0.623), -3.465),
        is_right=Confidence((0.0, 0.0, 0.0, 0.269, 1.369), -0.159),
        risk=_NONE,
    ),
    cross_stage=Stage(
        in_scope=Confidence((0.391, 5.252, 0.449, 0.0, 0.372), -2.758),
        is_right=Confidence((0.0, 0.0, 2.325, 0.243, 1.385), -1.233),
        risk=_NONE,
    ),
    early=0.97,
)


def stage_by_both(heads: Heads, text: str, languages: frozenset[str] | None) -> Stage:
    """What judges a text that is read by words and vector.

    Its similarities are lower to examples in other languages than to those in its own, and no words are shared.

    Args:
        heads: what reads it.
        text: normalized.
        languages: what the encoder was made for; one for a single language knows none that the examples lack.
    """
    if languages is None or len(languages) < 2 or not heads.languages:
        return heads.full_stage
    return PRIOR.cross_stage if language_of(text) in languages - heads.languages else heads.full_stage
