"""Scorer: the one formula of selection, the order it gives, and the draw among near-equals.

Pure functions over floats: no clock, no registry, no randomness of their own. They run for every request, so their
values are named tuples; the contracts of the explanation are built only where someone asks for them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import log
from typing import NamedTuple

from models.candidate import Contributions, Features
from models.card import AgentKey
from models.decision import Reason
from models.policy import NamespacePolicy
from models.request import Preference
from router.versions import parse

FLOOR = 0.01
"""The least a feature counts: a single bad one weakens a contender, it never makes the rest irrelevant."""


class Contender(NamedTuple):
    """A candidate that passed every check, with what the formula needs of it.

    Attributes:
        similarity: how well it fits the request, as are `quality`, `health` and `load` (headroom) a raw feature,
            larger is better; counted within [FLOOR, 1].
        cost: finite and >= 0, in a unit that all contenders of one decision have in common.
        latency_ms: expected, finite and >= 0; 0 while unknown.
        share_weight: weight among near-equals (SPEC R2), finite and >= 0.
    """

    agent_id: str
    namespace: str
    version: str
    similarity: float
    quality: float
    health: float
    load: float
    cost: float
    latency_ms: float = 0.0
    share_weight: float = 1.0

    @property
    def key(self) -> AgentKey:
        """That of its card."""
        return (self.namespace, self.agent_id, self.version)


class Blend(NamedTuple):
    """The parameters of the formula, all >= 0.

    Attributes:
        similarity: exponent of that feature, as are `quality`, `health` and `load`; 0 takes the feature out.
        cost_weight: lambda.
        latency_weight: nu.
        share_within: near-equals have a utility of at least best - share_within * |best|.
    """

    similarity: float = 1.0
    quality: float = 1.0
    health: float = 1.0
    load: float = 1.0
    cost_weight: float = 0.1
    latency_weight: float = 0.0
    share_within: float = 0.02

    @classmethod
    def of(cls, policy: NamespacePolicy, preference: Preference) -> Blend:
        """The blend of a namespace's policy for a preference; without `cost_optimize` every preference is `best`.

        >>> Blend.of(NamespacePolicy(), "cheapest").cost_weight
        0.3
        >>> Blend.of(NamespacePolicy(cost_optimize=False), "cheapest").cost_weight
        0.0
        """
        weights = policy.weights
        return cls(
            similarity=weights.similarity,
            quality=weights.quality,
            health=weights.health,
            load=weights.load,
            cost_weight=getattr(policy.cost_weights, preference if policy.cost_optimize else "best"),
            latency_weight=policy.latency_weight,
            share_within=policy.share_within,
        )


class Scored(NamedTuple):
    """A contender with its place in the formula.

    Attributes:
        merit: estimated probability, 0..1, that the call succeeds.
        cost_share: its cost by the largest among the contenders, 0..1; 0 where nobody costs anything.
        latency_share: the same of the latency.
        utility: what contenders are ranked by.
    """

    contender: Contender
    merit: float
    cost_share: float
    latency_share: float
    utility: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the ranked was drawn.

    Attributes:
        index: its place in the ranking.
        propensity: the probability with which it was drawn.
        propensities: those of the first of the ranking, of the rest it is 0; they add up to 1.
        n_shared: how many near-equals shared; None means all that have a propensity.
        is_explored: whether it was chosen to learn of it, against what is known.
    """

    index: int
    propensity: float
    propensities: tuple[float, ...]
    n_shared: int | None = None
    is_explored: bool = False

    @property
    def n_near(self) -> int:
        """How many near-equals there were, the best one included."""
        return len(self.propensities) if self.n_shared is None else self.n_shared


def clamped(feature: float) -> float:
    """A feature as it counts: within [FLOOR, 1]; one that is not a number counts least.

    >>> [clamped(0.0), clamped(0.7), clamped(1.3)]
    [0.01, 0.7, 1.0]
    """
    if FLOOR < feature < 1.0:
        return feature
    return 1.0 if feature >= 1.0 else FLOOR


def score(contenders: Sequence[Contender], blend: Blend) -> list[Scored]:
    """Merit and utility of every contender, in the order given.

    merit = similarity^w1 * quality^w2 * health^w3 * load^w4
    utility = merit - lambda * cost / cost_ref - nu * latency / latency_ref

    cost_ref and latency_ref are the largest among `contenders`; where that is 0, so is every share. (The project's
    own formula: "Selection" in its documentation.)

    >>> strong = Contender("strong", "default", "1.0.0", 0.9, 0.95, 1.0, 1.0, cost=5)
    >>> cheap = Contender("cheap", "default", "1.0.0", 0.9, 0.90, 1.0, 1.0, cost=1)
    >>> [(round(s.merit, 3), s.cost_share, round(s.utility, 3)) for s in score([strong, cheap], Blend())]
    [(0.855, 1.0, 0.755), (0.81, 0.2, 0.79)]
    """
    cost_ref = max([contender.cost for contender in contenders], default=0.0)
    latency_ref = max([contender.latency_ms for contender in contenders], default=0.0)
    w1, w2, w3, w4 = blend.similarity, blend.quality, blend.health, blend.load
    cost_weight, latency_weight = blend.cost_weight, blend.latency_weight
    scored = []
    for contender in contenders:
        similarity, quality, health, load = contender[3:7]
        # most are within bounds: a call for each would take as long as all the rest
        merit = (
            (similarity if FLOOR < similarity < 1.0 else clamped(similarity)) ** w1
            * (quality if FLOOR < quality < 1.0 else clamped(quality)) ** w2
            * (health if FLOOR < health < 1.0 else clamped(health)) ** w3
            * (load if FLOOR < load < 1.0 else clamped(load)) ** w4
        )
        cost_share = contender.cost / cost_ref if cost_ref > 0 else 0.0
        latency_share = contender.latency_ms / latency_ref if latency_ref > 0 else 0.0
        utility = merit - cost_weight * cost_share - latency_weight * latency_share
        scored.append(Scored(contender, merit, cost_share, latency_share, utility))
    return scored


def order(scored: Iterable[Scored]) -> list[Scored]:
    """Best utility first; equals by lower cost, then agent_id, then namespace, then the newer version.

    So the ranking is the same in whatever order agents were registered.
    """
    return sorted(scored, key=_rank)


def choose(ranked: Sequence[Scored], blend: Blend, draw: float, shares: bool = True) -> Choice:
    """The best takes all; near-equals share in proportion to `share_weight`, equally where all weights are 0.

    Args:
        ranked: at least one, as `order` gives them.
        blend: for `share_within`.
        draw: in [0, 1), from the recorded seed (`draw_of`).
        shares: False gives the first of the ranking everything (exploration has drawn already).

    >>> a = Contender("a", "default", "1.0.0", 0.9, 0.9, 1.0, 1.0, cost=1, share_weight=30)
    >>> b = Contender("b", "default", "1.0.0", 0.9, 0.9, 1.0, 1.0, cost=1, share_weight=10)
    >>> choice = choose(order(score([a, b], Blend())), Blend(), draw=0.8)
    >>> choice.index, choice.propensity, choice.propensities
    (1, 0.25, (0.75, 0.25))
    """
    n_near = _count_near(ranked, blend.share_within) if shares else 1
    if n_near == 1:
        return Choice(0, 1.0, (1.0,))
    weights = [near.contender.share_weight for near in ranked[:n_near]]
    sums = list(accumulate(weights))
    if sums[-1] <= 0:
        weights = [1.0] * n_near
        sums = list(accumulate(weights))
    total = sums[-1]
    # draw * total < total for every draw below 1, rounding included; `hi` holds for totals of a few 1e-324
    index = bisect_right(sums, draw * total, hi=n_near - 1)
    propensities = tuple([weight / total for weight in weights])
    return Choice(index, propensities[index], propensities)


def reason(ranked: Sequence[Scored], choice: Choice, blend: Blend) -> Reason:
    """Why the chosen one: it was alone, near-equals shared, it is cheaper than the one of most merit, or it is best."""
    if len(ranked) == 1:
        return Reason.ONLY_CANDIDATE
    if choice.is_explored:
        return Reason.EXPLORED
    if choice.n_near > 1:
        return Reason.SHARED
    chosen = ranked[choice.index]
    ablest = max(ranked, key=lambda scored: scored.merit)
    cheaper = chosen.merit < ablest.merit and chosen.contender.cost < ablest.contender.cost
    # with a lambda of 0 something else (latency) decided, and the lower cost is a coincidence
    return Reason.PREFERRED_CHEAPER if cheaper and blend.cost_weight > 0 else Reason.SELECTED


def features(scored: Scored) -> Features:
    """The features as they counted; `cost` is 1 - cost_share."""
    contender = scored.contender
    return Features(
        similarity=clamped(contender.similarity),
        quality=clamped(contender.quality),
        health=clamped(contender.health),
        load=clamped(contender.load),
        cost=1.0 - scored.cost_share,
    )


def contributions(scored: Scored, blend: Blend) -> Contributions:
    """What each feature adds: w * log feature to the log of the merit, -lambda and -nu * share to the utility."""
    contender = scored.contender
    return Contributions(
        similarity=blend.similarity * log(clamped(contender.similarity)),
        quality=blend.quality * log(clamped(contender.quality)),
        health=blend.health * log(clamped(contender.health)),
        load=blend.load * log(clamped(contender.load)),
        # from 0, as a plain minus would make -0.0 of nothing
        cost=0.0 - blend.cost_weight * scored.cost_share,
        latency=0.0 - blend.latency_weight * scored.latency_share,
    )


def _count_near(ranked: Sequence[Scored], share_within: float) -> int:
    best = ranked[0].utility
    least = best - share_within * abs(best)
    n_near = 1
    while n_near < len(ranked) and ranked[n_near].utility >= least:
        n_near += 1
    return n_near


def _rank(scored: Scored) -> tuple[float, float, str, str, _NewestFirst]:
    contender = scored.contender
    return (
        -scored.utility,
        contender.cost,
        contender.agent_id,
        contender.namespace,
        _newest_first(contender.version),
    )


class _NewestFirst:
    """Sorts versions by falling precedence (semver.org, 11); those that differ in build only, by their text."""

    __slots__ = ("_precedence",)

    def __init__(self, version: str) -> None:
        self._precedence = (parse(version).precedence_key, version)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NewestFirst) and self._precedence == other._precedence

    def __lt__(self, other: _NewestFirst) -> bool:
        return bool(other._precedence < self._precedence)


_newest_first = lru_cache(maxsize=4096)(_NewestFirst)
