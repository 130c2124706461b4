"""Explore: choosing so that outcomes tell more than is known; the formula over draws of quality, and the floor.

The formula is that of `router.scorer`, whose terms other than quality are taken from there as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from struct import pack
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.bandit import draw_fast, propensities
from router.draw import draw_of
from router.learned import Learned
from router.scorer import FLOOR, Blend, Choice, Contender, Scored, choose, clamped, order, score

N_DRAWS = 256
"""Draws of each contender's quality: propensities are known to about 1/256."""

_KEPT_DRAWS = 128


class Explored(NamedTuple):
    """A ranking by one draw of quality, and the choice.

    Attributes:
        ranked: best first, as in `router.scorer.order`.
    """

    ranked: list[Scored]
    choice: Choice


def thompson(contenders: Sequence[Contender], blend: Blend, learned: Learned, seed: int) -> Explored:
    """Thompson sampling with a floor: pi = (1 - eps) * P(argmax of the utility) + eps / K (Thompson 1933).

    P is the share of `N_DRAWS` draws in which a contender has the highest utility. One of the draws, by the seed,
    decides, so that the choice has exactly this propensity given the draws; with probability eps it is any of them.

    Args:
        contenders: at least two; their quality is the mean of the posterior.
        blend: of the formula.
        learned: posteriors, in the order of the contenders.
        seed: of the decision: draws 1 to 3 are used here.
    """
    qualities = draws_of(learned.alpha, learned.beta, learned.temperature)
    usual = score(contenders, blend)
    utilities, costs = _utilities(usual, qualities, blend)
    pi = propensities(utilities, learned.floor).tolist()
    row = int(draw_of(seed, 1) * N_DRAWS)
    at_draw = utilities[row]
    best = int(at_draw.argmax())
    place = int(draw_of(seed, 3) * len(contenders)) if draw_of(seed, 2) < learned.floor else best
    drawn = [
        Scored(Contender(*each.contender[:4], quality, *each.contender[5:]), utility + cost, *each[2:4], utility)
        for each, quality, utility, cost in zip(
            usual, qualities[row].tolist(), at_draw.tolist(), costs.tolist(), strict=True
        )
    ]
    propensity_of = {id(scored): propensity for scored, propensity in zip(drawn, pi, strict=True)}
    ranked = order(drawn)
    by_rank = tuple([propensity_of[id(scored)] for scored in ranked])
    index = ranked.index(drawn[place])
    known = max(range(len(usual)), key=[each.utility for each in usual].__getitem__)
    return Explored(ranked, Choice(index, by_rank[index], by_rank, n_shared=1, is_explored=place != known))


@lru_cache(maxsize=_KEPT_DRAWS)
def draws_of(alpha: tuple[float, ...], beta: tuple[float, ...], temperature: float) -> NDArray[np.float64]:
    """Draws of each contender's quality, float64, shape (N_DRAWS, n_contenders), not to be written to.

    They follow from the posteriors alone: until an outcome changes these, decisions share the draws, and differ in
    which of them decides.
    """
    told = pack(f"<{2 * len(alpha) + 1}d", *alpha, *beta, temperature)
    drawn = draw_fast(
        alpha, beta, temperature, N_DRAWS, int.from_bytes(blake2b(told, digest_size=8).digest(), "little")
    )
    drawn.flags.writeable = False
    return drawn


def with_floor(ranked: Sequence[Scored], blend: Blend, floor: float, seed: int) -> Choice:
    """The usual choice, but with probability `floor` any of the ranked, all alike.

    >>> a, b = (Contender(name, "default", "1.0.0", 1.0, q, 1.0, 1.0, cost=1) for name, q in (("a", 0.9), ("b", 0.5)))
    >>> choice = with_floor(order(score([a, b], Blend())), Blend(), 0.02, seed=0)
    >>> choice.index, choice.propensities
    (0, (0.99, 0.01))
    """
    choice = choose(ranked, blend, draw_of(seed))
    even = floor / len(ranked)
    shares = (*choice.propensities, *[0.0] * (len(ranked) - len(choice.propensities)))
    pi = tuple([(1 - floor) * share + even for share in shares])
    index = int(draw_of(seed, 3) * len(ranked)) if draw_of(seed, 2) < floor else choice.index
    return Choice(index, pi[index], pi, n_shared=choice.n_near, is_explored=index >= choice.n_near)


def _utilities(
    scored: Sequence[Scored], qualities: NDArray[np.float64], blend: Blend
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(utility of each contender at each drawn quality, what is taken off its merit).

    float64, shapes (n_draws, n_contenders) as `qualities`, and (n_contenders,).
    """
    exponent = blend.quality
    # merit without its quality: what the drawn one is put in place of
    others = np.array([each.merit / clamped(each.contender.quality) ** exponent for each in scored])
    costs = np.array([each.merit - each.utility for each in scored])
    drawn = np.clip(qualities, FLOOR, 1.0)
    if exponent != 1.0:
        drawn **= exponent
    drawn *= others
    drawn -= costs
    return drawn, costs
