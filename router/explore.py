"""Explore: choosing so that outcomes tell more than is known; the formula over draws of quality, and the floor.

The formula is that of `router.scorer`, whose terms other than quality are taken from there as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.bandit import draw, propensities
from router.learned import Learned
from router.scorer import FLOOR, Blend, Choice, Contender, Scored, choose, clamped, draw_of, order, score

N_DRAWS = 256
"""Draws of each contender's quality: propensities are known to about 1/256."""


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
        seed: of the decision: draws 1 to 3 are used here, and a generator of its own for the posteriors.
    """
    qualities = draw(learned.alpha, learned.beta, learned.temperature, N_DRAWS, seed)
    usual = score(contenders, blend)
    utilities = _utilities(usual, qualities, blend)
    pi = propensities(utilities, learned.floor)
    row = int(draw_of(seed, 1) * N_DRAWS)
    best = int(utilities[row].argmax())
    place = int(draw_of(seed, 3) * len(contenders)) if draw_of(seed, 2) < learned.floor else best
    drawn = [
        contender._replace(quality=float(quality))
        for contender, quality in zip(contenders, qualities[row], strict=True)
    ]
    ranked = order(score(drawn, blend))
    chosen = drawn[place]
    index = next(number for number, scored in enumerate(ranked) if scored.contender is chosen)
    places = {id(contender): number for number, contender in enumerate(drawn)}
    by_rank = tuple([float(pi[places[id(scored.contender)]]) for scored in ranked])
    known = max(usual, key=lambda scored: scored.utility)
    is_explored = contenders[place] is not known.contender
    return Explored(ranked, Choice(index, by_rank[index], by_rank, n_shared=1, is_explored=is_explored))


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


def _utilities(scored: Sequence[Scored], qualities: NDArray[np.float64], blend: Blend) -> NDArray[np.float64]:
    """Utility of each contender at each drawn quality, float64, shape as `qualities`: (n_draws, n_contenders)."""
    exponent = blend.quality
    # merit without its quality: what the drawn one is put in place of
    others = np.array([each.merit / clamped(each.contender.quality) ** exponent for each in scored])
    costs = np.array([each.merit - each.utility for each in scored])
    drawn = np.clip(qualities, FLOOR, 1.0)
    if exponent != 1.0:
        drawn = drawn**exponent
    return drawn * others - costs
