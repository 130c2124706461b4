"""Success: what success heads say of a request, blended into what is known of its contenders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

from feedback.success_slates import Slates
from router.advice import Advice
from router.learned import Foreseen, Learned, Said
from router.selection import Selection, choose_among
from router.snapshot import Entry

_KEPT, _LOST = 0.85, 0.6
"""Of the level that a head knows: as well as the one it is believed, as badly as the other it is not."""


class Asked(NamedTuple):
    """A request that heads can be asked about.

    Attributes:
        heads: those that go with the classifiers that read it.
        text: as it was written, or as retention masks it.
        vector: its embedding.
    """

    heads: Slates
    text: str
    vector: bytes


def with_heads(advice: Advice, entries: Sequence[Entry], asked: Asked) -> Advice:
    """The advice with posteriors into which the heads are blended; agents without a head keep theirs.

    Args:
        advice: on the entries, by what is known of their intents.
        entries: the contenders.
        asked: what they are to do.

    Raises:
        ValueError: the vector is none.
    """
    learned = advice.learned
    if learned is None:
        return advice
    return Advice(foretold(learned, entries, asked), advice.costs_usd, advice.blend)


def foretold(learned: Learned, entries: Sequence[Entry], asked: Asked) -> Learned:
    """What is known without heads, with what the heads say blended in: mean' = w * predicted + (1 - w) * mean.

    w is the trust in the head, which grows with its outcomes, times `faith`. The sum of alpha and beta stays, and so
    does the spread of draws.
    """
    found = asked.heads.foretell(tuple([entry.agent for entry in entries]), asked.text, asked.vector)
    if not found:
        return learned
    said: list[Said | None] = []
    alphas, betas = [], []
    for alpha, beta, each in zip(learned.alpha, learned.beta, found, strict=True):
        if each is None:
            said.append(None)
            alphas.append(alpha)
            betas.append(beta)
            continue
        weight = each.trust * faith(alpha, beta, each.level)
        blended = (1 - weight) * alpha + weight * each.predicted * (alpha + beta)
        said.append(Said(each.predicted, weight))
        alphas.append(blended)
        betas.append(alpha + beta - blended)
    heads = Foreseen(tuple(said), learned.alpha, learned.beta)
    return Learned(
        learned.mode, tuple(alphas), tuple(betas), learned.floor, learned.temperature, learned.version, heads
    )


def faith(alpha: float, beta: float, level: float) -> float:
    """How far a head is still believed, 0..1: not where its agent does much worse now than when it was fitted.

    From all to nothing as the posterior's mean, and twice its standard deviation, falls from 0.85 to 0.6 of the level
    that the head knows. So an agent that fails loses its traffic, whatever its head learned in better days.

    Args:
        alpha: of the posterior without heads; so is `beta`.
        level: how well the agent did on such requests, 0..1.

    >>> [round(faith(mean * n, (1 - mean) * n, 0.9), 2) for mean, n in ((0.8, 50), (0.4, 10), (0.45, 30), (0.4, 100))]
    [1.0, 0.69, 0.39, 0.0]
    """
    total = alpha + beta
    mean = alpha / total
    if mean >= _KEPT * level:
        return 1.0
    highest = mean + 2 * sqrt(mean * (1 - mean) / (total + 1))
    return min(max((highest / level - _LOST) / (_KEPT - _LOST), 0.0), 1.0)


def without_heads(learned: Learned) -> Learned:
    """What is known without what the heads said.

    >>> known = Learned("exploit", (7.0, 3.0), (3.0, 7.0), 0.0, 0.5, 1)
    >>> blended = known._replace(heads=Foreseen((Said(0.8, 0.5), None), (6.0, 3.0), (4.0, 7.0)))
    >>> without_heads(blended).means, without_heads(known).means
    ([0.6, 0.3], [0.7, 0.3])
    """
    heads = learned.heads
    return learned if heads is None else learned._replace(alpha=heads.alpha, beta=heads.beta, heads=None)


def sealed_heads(heads: Foreseen, places: Sequence[int]) -> dict[str, Any]:
    """What heads said of the contenders at these places, as JSON."""
    said = [heads.said[place] for place in places]
    return {
        "said": [None if each is None else [each.predicted, each.trust] for each in said],
        "alpha": [heads.alpha[place] for place in places],
        "beta": [heads.beta[place] for place in places],
    }


def heads_of(sealed: Mapping[str, Any]) -> Foreseen | None:
    """What heads had said, as it was sealed with what was learned; None where they had said nothing."""
    heads = sealed.get("heads")
    if heads is None:
        return None
    said = tuple([None if each is None else Said(float(each[0]), float(each[1])) for each in heads["said"]])
    alpha, beta = (tuple(map(float, heads[name])) for name in ("alpha", "beta"))
    return Foreseen(said, alpha, beta)


def chosen_with(selection: Selection, entries: Sequence[Entry], asked: Asked | None, seed: int) -> Selection:
    """The selection that other heads would have led to, all else being as it was.

    Args:
        selection: made with some heads, or with none.
        entries: its contenders, in their order.
        asked: the other heads; None takes none.
        seed: of the decision.

    Raises:
        ValueError: the vector is none.
    """
    learned = selection.learned
    if learned is None or selection.wished:
        return selection
    plain = without_heads(learned)
    changed = plain if asked is None else foretold(plain, entries, asked)
    if changed.heads == learned.heads:
        return selection
    contenders = selection.contenders
    if changed.mode != "observe":
        contenders = [each._replace(quality=mean) for each, mean in zip(contenders, changed.means, strict=True)]
    return choose_among(entries, contenders, selection.blend, seed, learned=changed)
