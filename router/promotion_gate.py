"""Whether a candidate has proved itself in the shadow: the gate's evidence, out of the store."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from feedback.promote import Check, Limits
from models.card import AgentKey
from models.events import ShadowRow
from models.learning_policy import RewardPolicy
from models.promotion import PromotionStore, ReadOutcome
from models.reading import Certainty
from router.promotion_watch import judged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from feedback.choices import Choices, Floats, Ints
    from feedback.departures import Departures
    from feedback.policy_gate import Gate

_PAGE = 1000
_MAX_SHADOWS = 100_000

_ACCEPT = "accept the corrections that are right (`agency-router reviews`)"
_EXPLORE = "log with learning.mode: explore and a learning.floor of 0.1, so that what it does otherwise is tried"
_FIXES = {
    "too_few_outcomes": "let the service run with it in the shadow, and post outcomes to /feedback",
    "small_effective_size": "let the service run with it in the shadow for longer",
    "untried_choices": "retrain with fewer changes at a time: what was never tried cannot be judged from a log",
    "not_better": "wait for more outcomes, or retrain",
    "no_departures": "end it with `agency-router rollback` and retrain once there are more corrections or examples, "
    "or let it run in the shadow until requests come on which the two differ",
    "few_departures_tried": f"{_ACCEPT}, of more than one caller; or {_EXPLORE}",
    "estimators_disagree": "wait for more outcomes",
}
_LEAST_TRIED = 0.5
"""Beside confirmed departures, tried ones count from this part of the minimum on: what fewer say is chance.

In 50 simulations each, candidates worse by 0.001 to 0.007, 5 % of whose choices were tried 6 to 24 times beside 30
to 60 that were confirmed, passed in up to 14 % without this, and in up to 6 % with it.
"""

_OF_DEPARTURES = frozenset({"untried_changes", "few_changes_tried"})
"""Told by the check of the departures."""


class Judged(NamedTuple):
    """A decision that the candidate has read too.

    Attributes:
        body: as `shadow_body` wrote it.
        reward: None where it has none.
        corrected: the intent that was meant, by an accepted correction; None where there is none.
        waiting: the same by a correction that waits.
        caller: who corrects; "" where nobody is named.
    """

    decision_id: str
    body: Mapping[str, Any]
    reward: float | None
    corrected: str | None = None
    waiting: str | None = None
    caller: str = ""

    def would_be_right(self, meant: str | None) -> bool:
        """Whether the candidate leads to somebody by the intent that was meant, where the logged reading was wrong."""
        body = self.body
        if meant is None or self.reward is None or body["certainty"] != Certainty.SURE:
            return False
        return body["intent"] == meant != body["logged_intent"] and any(option[4] > 0 for option in body["options"])


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
    found: list[tuple[int, Judged]] = []
    after = ""
    while len(found) < _MAX_SHADOWS:
        page = await store.shadows(promotion_id, after, _PAGE)
        if not page:
            break
        after = page[-1][0].decision_id
        found += [(row.happened_at, _judged(row, told, policy)) for row, told in page]
    # times at which more was tried count for more, and ids tell no time
    found.sort(key=lambda each: (each[0], each[1].decision_id))
    return await asyncio.to_thread(weigh, [each for _, each in found], limits)


def _judged(row: ShadowRow, told: ReadOutcome | None, policy: RewardPolicy) -> Judged:
    body = orjson.loads(row.body)
    if told is None:
        return Judged(row.decision_id, body, None)
    return Judged(row.decision_id, body, judged(told, policy), told.corrected, told.waiting, told.caller)


def weigh(found: Sequence[Judged], limits: Limits) -> Proof:
    """The gate over decisions that the candidate has read, in the order of time.

    Where the candidate reads another intent, its agents may never have been tried: that counts as failed
    (`untried_fail`), unless an accepted correction says that this intent was meant (`feedback.confirmed`). So a
    candidate is better only by what exploration has tried or a person has confirmed. That may be a part of what it does
    otherwise, as the canary sees to the rest; the canary is left out only where nearly all of it was tried.
    """
    import numpy as np

    from feedback.confirmed import gains
    from feedback.departures import supported, untried_fail
    from feedback.policy_gate import gate

    named = [each for each in found if each.body["chosen"] >= 0]
    choices, meant, declared = _choices(named)
    rewards = np.array([np.nan if each.reward is None else each.reward for each in named], dtype=np.float64)
    is_judged = np.isfinite(rewards)
    confirmed, n_capped = _confirmed(named)
    least_trials = limits.gate_changes * _LEAST_TRIED if confirmed.any() else 0.0
    pessimistic, departures = untried_fail(choices, is_judged, confirmed=confirmed, least_trials=least_trials)
    n_waiting = sum(each.would_be_right(each.waiting) for each in named if each.corrected is None)
    departures = departures._replace(n_capped=n_capped, n_waiting=n_waiting)
    result = gate(
        pessimistic.where(~confirmed),
        rewards[~confirmed],
        min_outcomes=limits.gate_outcomes,
        min_effective=limits.gate_ess,
        min_support=limits.gate_support,
        min_changes=limits.gate_changes,
        known=gains(choices, confirmed, meant, declared, rewards),
    )
    support = supported(choices.where(is_judged), confirmed[is_judged])
    checks = _checks(result, departures, support.choices, limits)
    n_other = sum(not each.body["is_same"] for each in found)
    passed = all(check.is_met for check in checks)
    is_tried = departures.confirmed <= (1 - limits.gate_support) * departures.share
    skips = passed and result.skips_canary and is_tried and support.changes >= limits.gate_support
    figures = {**result.evidence(), "n_shadows": len(found), "n_decided_otherwise": n_other}
    told = {"passed": passed, "skips_canary": skips, "support": support._asdict()}
    return Proof(checks, skips, {**figures, **told, "departures": departures._asdict()})


def _choices(named: Sequence[Judged]) -> tuple[Choices, Ints, Floats]:
    """The choices; of each the number of the intent that the candidate reads; of each option the declared quality."""
    import numpy as np

    from feedback.choices import Choices, Row

    agents: dict[AgentKey, int] = {}
    intents: dict[str | None, int] = {}
    rows, declared = [], array("d")
    for each in named:
        options = each.body["options"]
        keys: list[AgentKey] = [(option[0], option[1], option[2]) for option in options]
        declared.extend(each.body["declared"])
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
    meant = [intents.setdefault(each.body["intent"], len(intents)) for each in named]
    return Choices.of(rows), np.array(meant, dtype=np.int64), np.array(declared, dtype=np.float64)


def _confirmed(named: Sequence[Judged]) -> tuple[NDArray[np.bool_], int]:
    """Which departures accepted corrections confirm, bool (n), and how many more of callers who have enough."""
    from feedback.confirmed import counted

    callers = [each.caller if each.would_be_right(each.corrected) else None for each in named]
    found = counted(callers)
    return found, sum(caller is not None for caller in callers) - int(found.sum())


def _checks(result: Gate, departures: Departures, share: float, limits: Limits) -> tuple[Check, ...]:
    """All that is asked for.

    Args:
        result: of the gate.
        departures: of the candidate.
        share: of its choices that are supported, 0..1.
        limits: how much evidence is needed.
    """
    refusals = [(each.code, each.text) for each in result.refusals if each.code not in _OF_DEPARTURES]
    if result.n_outcomes and share < limits.gate_support:
        told = f"{share:.1%} of the candidate's choices were tried or confirmed, {limits.gate_support:.0%} are needed"
        refusals.append(("untried_choices", told))
    more = f"{_ACCEPT}; {_EXPLORE}; or retrain"
    fixes = _FIXES | {"not_better": more} if departures.untried > 0 else _FIXES
    found = [Check(code, False, text, fixes.get(code, "wait for more outcomes")) for code, text in refusals]
    if not found:
        found.append(_better(result))
    if result.n_outcomes:
        found.append(_of_departures(departures, limits.gate_changes))
    return tuple(found)


def _better(result: Gate) -> Check:
    if result.sndr is None:
        return Check("gate", False, "there is nothing to estimate the difference from", "wait for more outcomes")
    told = f"better by {result.sndr.value:+.4f} ({result.sndr.low95:+.4f} to {result.sndr.high95:+.4f}, 95 %)"
    return Check("gate", True, f"{told}, on {result.n_outcomes} outcomes")


def _of_departures(found: Departures, least: float) -> Check:
    from feedback.confirmed import MAX_OF_CALLER

    told = f"{found.share:.1%} of its choices are others than those logged"
    if found.share <= 0:
        return Check("departures", True, told)
    told += f": {found.tried:.1%} tried, {found.confirmed:.1%} confirmed by {found.n_confirmed} accepted corrections, "
    told += f"{found.untried:.1%} neither, which count as failed"
    if found.n_capped:
        told += f"; {found.n_capped} more are confirmed by callers of whom {MAX_OF_CALLER} count already"
    if found.n_waiting:
        told += f"; {found.n_waiting} corrections that would confirm more wait"
    told += f"; tried and confirmed ones are worth {found.n_supported:.1f} outcomes"
    if found.n_supported >= least:
        return Check("departures", True, told)
    return Check("few_departures_tried", False, f"{told}, {least:g} are needed", _FIXES["few_departures_tried"])
