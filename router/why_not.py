"""WhyNot: the smallest change with which a losing candidate would have had the highest utility."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil, exp, log
from operator import attrgetter
from typing import Any, NamedTuple

from models.candidate import Change, FeatureName, WhyNot
from router.scorer import Blend, Choice, Contender, Scored, clamped, score

_MERIT_FEATURES: tuple[FeatureName, ...] = ("similarity", "quality", "health", "load")
_cost_share: Callable[[Scored], float] = attrgetter("cost_share")
_latency_share: Callable[[Scored], float] = attrgetter("latency_share")

_ROUNDING = 1e-12
"""Utilities that differ by less than this part of their terms are level."""

_NUDGES = (1e-9, 1e-7, 1e-5, 1e-3, 1e-1)
"""Parts of itself by which a change is made larger, so that it wins and does not only draw level."""

_PRECISION = 1e-10
_STEPS = 64


class _Move(NamedTuple):
    """A feature as it is, and where the candidate draws level; both 0..1, larger is better."""

    feature: FeatureName
    start: float
    level: float


def why_not(ranked: Sequence[Scored], index: int, choice: Choice, blend: Blend) -> WhyNot:
    """What the candidate at `index` of the ranking lacked.

    One feature where one suffices: the one that has to move least. A merit feature f with exponent w draws level with
    the best at f * ((best + burdens) / merit)^(1/w); cost and latency as `_burden_level` says. Else a joint change:
    every feature that weighs moves by the same, smallest fraction of the way to its best. At the whole way the utility
    is 1, so that exists unless the best is perfect too; then the change that draws level with it is given.

    Args:
        ranked: as `order` gives them, all that took part.
        index: of a candidate that was not chosen.
        choice: what was chosen.
        blend: the blend that `ranked` was scored with.

    Raises:
        ValueError: `index` was chosen.

    >>> from router.scorer import choose, order
    >>> a = Contender("a", "default", "1.0.0", 0.9, 0.95, 1.0, 1.0, cost=5)
    >>> b = Contender("b", "default", "1.0.0", 0.9, 0.80, 1.0, 1.0, cost=1)
    >>> ranked = order(score([a, b], Blend()))
    >>> why_not(ranked, 1, choose(ranked, Blend(), draw=0.0), Blend()).text
    'quality 0.8 -> 0.862 would have been enough'
    """
    if index == choice.index:
        raise ValueError(f"candidate {index} of {len(ranked)} is the chosen one")
    loser, best = ranked[index], ranked[0]
    if _is_level(loser, best, blend):
        return WhyNot(changes=[], text=_text_of_level(ranked, index, choice))
    rivals = _rivals(ranked, index, blend)
    changes = _single(loser, rivals, blend) or _joint(loser, rivals, blend)
    if changes:
        text = f"{_text_of(changes)} would have been enough"
    else:
        changes = _to_perfection(loser, blend)
        text = f"{_text_of(changes)} would have drawn level with {best.contender.agent_id}, which is perfect"
    if index < choice.n_near:
        text += f"; it took part in the draw, with propensity {choice.propensities[index]:.3g}"
    return WhyNot(changes=changes, text=text)


def apply(scored: Scored, changes: Iterable[Change]) -> Contender:
    """The contender as `changes` would have it; raw cost and latency follow from the shares that were scored.

    >>> dear = Contender("dear", "default", "1.0.0", 0.9, 0.9, 1.0, 1.0, cost=5)
    >>> apply(score([dear], Blend())[0], [Change(feature="cost", from_=0.0, to=0.4)]).cost
    3.0
    """
    values: dict[str, Any] = {}
    for change in changes:
        if change.feature == "cost":
            values["cost"] = scored.contender.cost * (1.0 - change.to) / scored.cost_share
        elif change.feature == "latency":
            values["latency_ms"] = scored.contender.latency_ms * (1.0 - change.to) / scored.latency_share
        else:
            values[change.feature] = change.to
    return scored.contender._replace(**values)


def _is_level(loser: Scored, best: Scored, blend: Blend) -> bool:
    terms = best.merit + loser.merit + blend.cost_weight + blend.latency_weight
    return best.utility - loser.utility <= _ROUNDING * terms


def _rivals(ranked: Sequence[Scored], index: int, blend: Blend) -> list[Scored]:
    """Those of the others that a change of the one at `index` has to be measured against.

    Only where it alone is the dearest (or slowest) does its change move cost_ref, and with it all the others; else the
    best counts, and whoever holds the references where they are.
    """
    loser = ranked[index]
    others = [*ranked[:index], *ranked[index + 1 :]]
    dearest, slowest = max(others, key=_cost_share), max(others, key=_latency_share)
    alone_dearest = blend.cost_weight > 0 and loser.cost_share > dearest.cost_share
    alone_slowest = blend.latency_weight > 0 and loser.latency_share > slowest.latency_share
    return others if alone_dearest or alone_slowest else [ranked[0], dearest, slowest]


def _single(loser: Scored, rivals: Sequence[Scored], blend: Blend) -> list[Change]:
    """The least change of one feature that makes `loser` the best; empty if none does."""
    moves = [*_merit_moves(loser, rivals, blend), *_burden_moves(loser, rivals, blend)]
    for move in sorted(moves, key=lambda move: move.level - move.start):
        if changes := _enough(loser, rivals, blend, [move]):
            return changes
    return []


def _merit_moves(loser: Scored, rivals: Sequence[Scored], blend: Blend) -> list[_Move]:
    best = max([rival.utility for rival in rivals])
    burdens = blend.cost_weight * loser.cost_share + blend.latency_weight * loser.latency_share
    lift = log((best + burdens) / loser.merit)
    moves = []
    for feature, start, weight in _merit_features(loser, blend):
        # by logarithms, as a power of 1/w overflows for a small w
        log_level = log(start) + lift / weight
        if log_level < 0:
            moves.append(_Move(feature, start, exp(log_level)))
    return moves


def _burden_moves(loser: Scored, rivals: Sequence[Scored], blend: Blend) -> list[_Move]:
    moves = []
    for feature, share_of, weight in _burdens(loser, blend):
        level = _burden_level(loser, rivals, weight, share_of)
        if level is not None:
            moves.append(_Move(feature, 1.0 - share_of(loser), 1.0 - level))
    return moves


def _burden_level(
    loser: Scored, rivals: Sequence[Scored], weight: float, share_of: Callable[[Scored], float]
) -> float | None:
    """The share of the present reference at which `loser` draws level; None if not even 0 makes it the best.

    With a the utility before this burden, s the present share, k the weight, and r the largest share among the rivals:
    while the loser's share x is above r it is the reference itself, so its own burden stays k and a rival's grows to
    k * s / x; it passes that rival below x = k * s / (a_rival - a + k). Below r the reference rests, and it passes the
    best of them below x = r * (a - best) / k.
    """
    own = loser.utility + weight * share_of(loser)
    others = [(rival.utility + weight * share_of(rival), share_of(rival)) for rival in rivals]
    largest = max([share for _, share in others])
    if largest < share_of(loser):
        level = min([weight * share / ahead for base, share in others if (ahead := base - own + weight) > 0])
        if level > largest:
            return level
        if largest == 0:
            # whatever little it costs, it is the dearest; at nothing the burden is gone at once
            return 0.0 if own > max([base for base, _ in others]) else None
    best = max([base - weight * share / largest for base, share in others])
    return largest * (own - best) / weight if own > best else None


def _joint(loser: Scored, rivals: Sequence[Scored], blend: Blend) -> list[Change]:
    """Every feature that weighs moves by the least fraction of its way that makes `loser` the best; empty if none."""
    ways = _to_perfection(loser, blend)
    margin = _margin_along(loser, rivals, blend)
    if margin(1.0) <= 0:
        return []
    fraction = _crossing(margin)
    moves = [_Move(way.feature, way.from_, way.from_ + fraction * (way.to - way.from_)) for way in ways]
    return _enough(loser, rivals, blend, moves)


def _crossing(rising: Callable[[float], float]) -> float:
    """Where in (0, 1] a function that is negative at 0 and positive at 1 becomes positive.

    By false position with Illinois' halving (Dowell and Jarratt 1971): a third of the steps of bisection.

    >>> round(_crossing(lambda x: x**3 - 0.125), 9)
    0.5
    """
    low, high = 0.0, 1.0
    at_low, at_high = rising(low), rising(high)
    before = 0.0
    for _ in range(_STEPS):
        if high - low <= _PRECISION:
            break
        middle = high - at_high * (high - low) / (at_high - at_low)
        at_middle = rising(middle)
        # an end that stays twice running counts half, or it would stay for good
        stays = at_middle * before > 0
        if at_middle > 0:
            high, at_high, at_low = middle, at_middle, at_low / 2 if stays else at_low
        elif at_middle < 0:
            low, at_low, at_high = middle, at_middle, at_high / 2 if stays else at_high
        else:
            return middle
        before = at_middle
    return high


def _margin_along(loser: Scored, rivals: Sequence[Scored], blend: Blend) -> Callable[[float], float]:
    """By how much `loser` leads when all that weighs has gone a fraction of its way; what `score` says, in shares."""
    ways = [(1.0 - start, weight) for _, start, weight in _merit_features(loser, blend)]
    cost_weight, latency_weight = blend.cost_weight, blend.latency_weight
    dearest = max([rival.cost_share for rival in rivals])
    slowest = max([rival.latency_share for rival in rivals])
    standing = max([rival.utility for rival in rivals])

    def margin(fraction: float) -> float:
        left = 1.0 - fraction
        cost, latency = loser.cost_share * left, loser.latency_share * left
        cost_ref, latency_ref = max(cost, dearest) or 1.0, max(latency, slowest) or 1.0
        own = 1.0
        for way, weight in ways:
            own *= (1.0 - way * left) ** weight
        own -= cost_weight * cost / cost_ref + latency_weight * latency / latency_ref
        if cost_ref == latency_ref == 1.0:
            return own - standing
        return own - max(
            [
                rival.merit
                - cost_weight * rival.cost_share / cost_ref
                - latency_weight * rival.latency_share / latency_ref
                for rival in rivals
            ]
        )

    return margin


def _to_perfection(loser: Scored, blend: Blend) -> list[Change]:
    """The whole way of every feature that weighs and is not at its best."""
    starts = [(feature, start) for feature, start, _ in _merit_features(loser, blend)]
    starts += [(feature, 1.0 - share_of(loser)) for feature, share_of, _ in _burdens(loser, blend)]
    return [Change(feature=feature, from_=start, to=1.0) for feature, start in starts if start < 1.0]


def _merit_features(loser: Scored, blend: Blend) -> list[tuple[FeatureName, float, float]]:
    """(name, value, exponent) of the features of its merit that weigh."""
    return [
        (feature, clamped(getattr(loser.contender, feature)), weight)
        for feature in _MERIT_FEATURES
        if (weight := getattr(blend, feature)) > 0
    ]


def _burdens(loser: Scored, blend: Blend) -> list[tuple[FeatureName, Callable[[Scored], float], float]]:
    """(name, share, weight) of what it is charged with."""
    burdens: list[tuple[FeatureName, Callable[[Scored], float], float]] = [
        ("cost", _cost_share, blend.cost_weight),
        ("latency", _latency_share, blend.latency_weight),
    ]
    return [burden for burden in burdens if burden[2] > 0 and burden[1](loser) > 0]


def _enough(loser: Scored, rivals: Sequence[Scored], blend: Blend, moves: Sequence[_Move]) -> list[Change]:
    """The moves, each larger by the same least nudge with which `loser` wins by `score` itself; empty if none does."""
    for nudge in _NUDGES:
        stretched = [(move, min(1.0, move.start + (move.level - move.start) * (1.0 + nudge))) for move in moves]
        changes = [
            Change(feature=move.feature, from_=move.start, to=end) for move, end in stretched if end > move.start
        ]
        changed, *others = score([apply(loser, changes), *[rival.contender for rival in rivals]], blend)
        if changed.utility > max([other.utility for other in others]):
            return changes
    return []


def _text_of(changes: Sequence[Change]) -> str:
    moved = ", ".join([f"{change.feature} {_text_of_numbers(change.from_, change.to)}" for change in changes])
    return moved if len(changes) == 1 else f"{moved} together"


def _text_of_numbers(start: float, end: float) -> str:
    """Three decimals, more for a small change; the end is rounded up, so that it is enough as read."""
    for digits in range(3, 16):
        shown = min(1.0, ceil(end * 10**digits) / 10**digits)
        if shown - end <= 0.1 * (end - start):
            break
    return " -> ".join([f"{number:.{digits}f}".rstrip("0").rstrip(".") for number in (start, shown)])


def _text_of_level(ranked: Sequence[Scored], index: int, choice: Choice) -> str:
    chosen = ranked[choice.index].contender.agent_id
    if choice.is_explored:
        return f"had the highest utility; {chosen} was chosen to learn of it"
    if index < choice.n_near > 1:
        draw = f"the draw among {choice.n_near} near-equals, where this one had propensity"
        return f"had the highest utility; {chosen} won {draw} {choice.propensities[index]:.3g}"
    if index > choice.index:
        return f"as high a utility as {chosen}, which comes first among equals (lower cost, then name)"
    return f"had the highest utility; {chosen} was preferred for another reason"
