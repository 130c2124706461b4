"""Whether a candidate has proved itself in the shadow: the gate's evidence, out of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from feedback.promote import Check, Limits
from models.card import AgentKey
from models.learning_policy import RewardPolicy
from models.promotion import PromotionStore
from router.promotion_watch import judged

if TYPE_CHECKING:
    from feedback.choices import Choices
    from feedback.departures import Departures
    from feedback.policy_gate import Gate, Refusal

_PAGE = 1000
_MAX_SHADOWS = 100_000

_EXPLORE = "log with learning.mode: explore and a learning.floor of 0.1, so that what it does otherwise is tried"
_FIXES = {
    "too_few_outcomes": "let the service run with it in the shadow, and post outcomes to /feedback",
    "small_effective_size": "let the service run with it in the shadow for longer",
    "untried_choices": "retrain with fewer changes at a time: what was never tried cannot be judged from a log",
    "not_better": "wait for more outcomes, or retrain",
    "few_departures_tried": _EXPLORE,
    "estimators_disagree": "wait for more outcomes",
}
_OF_DEPARTURES = frozenset({"untried_changes", "few_changes_tried"})
"""Told by the check of the departures."""


class Judged(NamedTuple):
    """A decision that the candidate has read too.

    Attributes:
        body: as `shadow_body` wrote it.
        reward: None where it has none.
    """

    decision_id: str
    body: Mapping[str, Any]
    reward: float | None


class Proof(NamedTuple):
    """What the gate says.

    Attributes:
        skips_canary: it is better beyond the 99 % bound too, and what it does otherwise has been tried.
        figures: as JSON.
    """

    checks: tuple[Check, ...]
    skips_canary: bool
    figures: dict[str, Any]


async def proof(store: PromotionStore, promotion_id: int, policy: RewardPolicy, limits: Limits) -> Proof:
    """What speaks for a candidate in the shadow, against what was decided meanwhile."""
    found: list[Judged] = []
    after = ""
    while len(found) < _MAX_SHADOWS:
        page = await store.shadows(promotion_id, after, _PAGE)
        if not page:
            break
        after = page[-1][0].decision_id
        found += [
            Judged(row.decision_id, orjson.loads(row.body), None if told is None else judged(told, policy))
            for row, told in page
        ]
    return await asyncio.to_thread(weigh, found, limits)


def weigh(found: Sequence[Judged], limits: Limits) -> Proof:
    """The gate over decisions that the candidate has read.

    Where the candidate reads another intent, its agents may never have been tried: that counts as failed
    (`untried_fail`), so a candidate is better only by what exploration has tried. That may be a part of what it does
    otherwise, as the canary sees to the rest; the canary is left out only where nearly all of it was tried.
    """
    import numpy as np

    from feedback.departures import untried_fail
    from feedback.policy_gate import gate

    named = [each for each in found if each.body["chosen"] >= 0]
    choices = _choices(named)
    rewards = np.array([np.nan if each.reward is None else each.reward for each in named], dtype=np.float64)
    judged = np.isfinite(rewards)
    pessimistic, departures = untried_fail(choices, judged)
    result = gate(
        pessimistic,
        rewards,
        min_outcomes=limits.gate_outcomes,
        min_effective=limits.gate_ess,
        min_support=limits.gate_support,
        min_changes=limits.gate_changes,
    )
    support = choices.where(judged).support()
    refusals = [each for each in result.refusals if each.code not in _OF_DEPARTURES]
    if judged.any() and support.choices < limits.gate_support:
        refusals.append(_untried(support.choices, limits.gate_support))
    checks = _checks(result, refusals, has_untried=departures.untried > 0)
    if judged.any():
        checks += (_of_departures(departures, limits.gate_changes),)
    skips = result.skips_canary and support.changes >= limits.gate_support and all(check.is_met for check in checks)
    n_other = sum(not each.body["is_same"] for each in found)
    figures = {**result.evidence(), "n_shadows": len(found), "n_decided_otherwise": n_other}
    told = {"passed": all(check.is_met for check in checks), "skips_canary": skips, "support": support._asdict()}
    return Proof(checks, skips, {**figures, **told, "departures": departures._asdict()})


def _choices(named: Sequence[Judged]) -> Choices:
    from feedback.choices import Choices, Row

    agents: dict[AgentKey, int] = {}
    intents: dict[str, int] = {}
    rows = []
    for each in named:
        options = each.body["options"]
        keys: list[AgentKey] = [(option[0], option[1], option[2]) for option in options]
        rows.append(
            Row(
                each.decision_id,
                intents.setdefault(each.body["logged_intent"], len(intents)),
                [agents.setdefault(key, len(agents)) for key in keys],
                [option[3] for option in options],
                [option[4] for option in options],
                each.body["chosen"],
            )
        )
    return Choices.of(rows)


def _untried(share: float, least: float) -> Refusal:
    from feedback.policy_gate import Refusal

    return Refusal("untried_choices", f"{share:.1%} of the candidate's choices were tried, {least:.0%} are needed")


def _checks(result: Gate, refusals: Sequence[Refusal], *, has_untried: bool) -> tuple[Check, ...]:
    fixes = _FIXES | {"not_better": f"{_EXPLORE}; or retrain"} if has_untried else _FIXES
    if refusals:
        return tuple(
            Check(each.code, False, each.text, fixes.get(each.code, "wait for more outcomes")) for each in refusals
        )
    if result.sndr is None:
        return (Check("gate", False, "there is nothing to estimate the difference from", "wait for more outcomes"),)
    told = f"better by {result.sndr.value:+.4f} ({result.sndr.low95:+.4f} to {result.sndr.high95:+.4f}, 95 %)"
    return (Check("gate", True, f"{told}, on {result.n_outcomes} outcomes"),)


def _of_departures(found: Departures, least: float) -> Check:
    told = f"{found.share:.1%} of its choices are others than those logged"
    if found.share <= 0:
        return Check("departures", True, told)
    told += f", {found.untried:.1%} were never tried and count as failed; the tried ones are worth "
    told += f"{found.effective_size:.1f} outcomes"
    if found.effective_size >= least:
        return Check("departures", True, told)
    return Check("few_departures_tried", False, f"{told}, {least:g} are needed", _FIXES["few_departures_tried"])
