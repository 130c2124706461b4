"""Success: what success heads say of a request, blended into what is known of its contenders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from feedback.success_slates import Foretold, Slates
from router.advice import Advice
from router.learned import Learned
from router.redaction import Redaction
from router.selection import Selection, choose_among
from router.snapshot import Entry

_Betas = tuple[tuple[float, ...], tuple[float, ...]]
_AS_KEPT = Redaction("redacted", b"")


class Asked(NamedTuple):
    """A request that heads can be asked about.

    Attributes:
        heads: those that go with the classifiers that read it.
        text: as it was written.
        vector: its embedding.
        is_masked: whether the heads know requests as retention masks them.
    """

    heads: Slates
    text: str
    vector: bytes
    is_masked: bool = False


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
    return advice._replace(learned=foretold(learned, entries, asked))


def foretold(learned: Learned, entries: Sequence[Entry], asked: Asked) -> Learned:
    """What is known without heads, with what the heads say blended in: mean' = w * predicted + (1 - w) * mean.

    w = n / (n + 1000), n the outcomes of the head. The sum of alpha and beta stays, and with it how far draws spread.
    """
    text = _AS_KEPT.text(asked.text) if asked.is_masked else asked.text
    said = asked.heads.foretell(tuple([entry.agent for entry in entries]), text, asked.vector)
    if not said:
        return learned
    alpha, beta = _shifted(learned, [(0.0, 0.0) if each is None else each for each in said])
    return learned._replace(alpha=alpha, beta=beta, foretold=said)


def without_heads(learned: Learned) -> Learned:
    """What is known without what the heads said.

    >>> known = Learned("exploit", (6.0, 3.0), (4.0, 7.0), 0.0, 0.5, 1)
    >>> blended = known._replace(alpha=(7.0, 3.0), beta=(3.0, 7.0), foretold=(Foretold(0.8, 0.5), None))
    >>> [round(mean, 6) for mean in without_heads(blended).means]
    [0.6, 0.3]
    """
    if not learned.foretold:
        return learned
    # as blending, with the weight that undoes it: m = (m' - w p) / (1 - w)
    undone = [
        (0.0, 0.0) if each is None else (each.predicted, each.trust / (each.trust - 1)) for each in learned.foretold
    ]
    alpha, beta = _shifted(learned, undone)
    return learned._replace(alpha=alpha, beta=beta, foretold=())


def foretold_of(sealed: Mapping[str, Any]) -> tuple[Foretold | None, ...]:
    """What heads had said, as it was sealed with what was learned."""
    return tuple(
        [None if each is None else Foretold(float(each[0]), float(each[1])) for each in sealed.get("heads", ())]
    )


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
    if changed.foretold == learned.foretold:
        return selection
    contenders = selection.contenders
    if changed.mode != "observe":
        contenders = [each._replace(quality=mean) for each, mean in zip(contenders, changed.means, strict=True)]
    return choose_among(entries, contenders, selection.blend, seed, learned=changed)


def _shifted(learned: Learned, said: Sequence[tuple[float, float]]) -> _Betas:
    """Alpha and beta with the means moved towards what is said, by (value, weight) of each."""
    alphas, betas = [], []
    for alpha, beta, (value, weight) in zip(learned.alpha, learned.beta, said, strict=True):
        moved = (1 - weight) * alpha + weight * value * (alpha + beta) if weight else alpha
        alphas.append(moved)
        betas.append(alpha + beta - moved if weight else beta)
    return tuple(alphas), tuple(betas)
