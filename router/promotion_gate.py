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
    from feedback.policy_gate import Gate, Refusal

_PAGE = 1000
_MAX_SHADOWS = 100_000

_FIXES = {
    "too_few_outcomes": "let the service run with it in the shadow, and post outcomes to /feedback",
    "small_effective_size": "let the service run with it in the shadow for longer",
    "untried_choices": "retrain with fewer changes at a time: what was never tried cannot be judged from a log",
    "not_better": "wait for more outcomes, or retrain",
    "estimators_disagree": "wait for more outcomes",
}
_OF_DEPARTURES = frozenset({"untried_changes", "few_changes_tried"})


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

    Equal choices are the support: where the candidate reads another intent, its agents were mostly never tried. So the
    departures themselves need no support here, as they do for a policy; but they may be no more than what the support
    leaves, and the canary sees to them. It is left out only where exploration has tried the departures too.
    """
    import numpy as np

    from feedback.choices import Choices, Row
    from feedback.policy_gate import gate

    named = [each for each in found if each.body["chosen"] >= 0]
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
    rewards = np.array([np.nan if each.reward is None else each.reward for each in named], dtype=np.float64)
    result = gate(
        Choices.of(rows),
        rewards,
        min_outcomes=limits.gate_outcomes,
        min_effective=limits.gate_ess,
        min_support=limits.gate_support,
    )
    refusals = [refusal for refusal in result.refusals if refusal.code not in _OF_DEPARTURES]
    n_other = sum(not each.body["is_same"] for each in found)
    figures = {**result.evidence(), "n_shadows": len(found), "n_decided_otherwise": n_other}
    return Proof(_checks(result, refusals), result.skips_canary, figures)


def _checks(result: Gate, refusals: Sequence[Refusal]) -> tuple[Check, ...]:
    if refusals:
        return tuple(
            Check(each.code, False, each.text, _FIXES.get(each.code, "wait for more outcomes")) for each in refusals
        )
    if result.sndr is None:
        return (Check("gate", False, "there is nothing to estimate the difference from", "wait for more outcomes"),)
    told = f"better by {result.sndr.value:+.4f} ({result.sndr.low95:+.4f} to {result.sndr.high95:+.4f}, 95 %)"
    return (Check("gate", True, f"{told}, on {result.n_outcomes} outcomes"),)
