"""Evaluation of a policy on the log: what it would have brought, which decisions flip, and whether that is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import ValidationError

from feedback.choices import Choices, Floats
from feedback.offpolicy import Estimate, Log, Method, difference_of, mean_estimate, mean_of, method_for, value_of
from feedback.policy_gate import Refusal, thin
from models.card import AgentCard
from models.policy import Policy
from router.feedback_log import Pages, logged
from router.policy_cases import Arrays, PolicyCases
from router.stores.feedback_log import LogQuery
from router.target_policy import TargetPolicy

Kind = Literal["router", "callers"]

MARGIN = 0.01
"""A policy that is shown to be worse by no more than this, in success, is not worse."""

_MOST_OPTIONS = 5_000_000
_MIN_OUTCOMES, _MIN_EFFECTIVE, _MIN_SUPPORT = 100, 50.0, 0.95
_MOST_UNKNOWN = 0.05


class Verdict(NamedTuple):
    """What is known of a policy.

    Attributes:
        name: "same", "better", "not_worse", "worse", "undecided" or "refused".
        exit_code: 0 for the first three, 1 where it is worse, 3 where that is not known.
        refusals: which evidence is missing.
    """

    name: str
    exit_code: int
    refusals: tuple[Refusal, ...] = ()


async def evaluate_policy(
    pages: Pages,
    policy: Policy,
    cards: Sequence[AgentCard],
    query: LogQuery,
    *,
    deciding: Mapping[str, Policy] | None = None,
    kind: Kind | None = None,
    limit: int = 200_000,
    margin: float = MARGIN,
    told: Callable[[int], object] = lambda n: None,
) -> dict[str, Any]:
    """What a policy would have made of the log, as one JSON object.

    Args:
        pages: the log.
        policy: the one that is evaluated.
        cards: as they are registered now.
        query: which decisions.
        deciding: policies that made the decisions, by digest, as far as they are known.
        kind: whose choices: the router's, or those that callers kept beside it; None takes the more of the two.
        limit: at most so many decisions.
        margin: what "not worse" may hide, in success.
        told: called with how many decisions were read so far.
    """
    unread: Counter[str] = Counter()
    target = TargetPolicy(policy, cards, deciding)
    cases: dict[Kind, PolicyCases] = {
        "router": PolicyCases(of_callers=False),
        "callers": PolicyCases(of_callers=True),
    }
    n_read = 0
    async for one in logged(pages, query, policy.learning.reward, unread):
        mine = cases["router" if one.entry.caller_choice is None else "callers"]
        mine.add(one, target.chances(one))
        n_read += 1
        told(n_read)
        if n_read >= limit or sum(each.n_options for each in cases.values()) >= _MOST_OPTIONS:
            break
    if kind is None:
        kind = "callers" if len(cases["callers"]) > len(cases["router"]) else "router"
    used = cases[kind]
    others = {name: len(each) for name, each in cases.items() if name != kind}
    report = _report(used, target, margin)
    return {
        "choices_of": kind,
        "n_read": n_read,
        "n_skipped": {**unread, **{f"of_{name}": n for name, n in others.items() if n}},
        **report,
    }


def known_policies(texts: Mapping[str, bytes]) -> dict[str, Policy]:
    """Policies out of the archive, by digest; those of another release that cannot be read are left out."""
    found = {}
    for digest, text in texts.items():
        try:
            found[digest] = Policy.model_validate_json(text)
        except ValidationError:
            continue
    return found


def _report(cases: PolicyCases, target: TargetPolicy, margin: float) -> dict[str, Any]:
    arrays = cases.arrays()
    judged = np.isfinite(arrays.reward)
    n_outcomes = int(judged.sum())
    log = Log.of(arrays.choices, arrays.reward) if n_outcomes else None
    verdict = _verdict(cases, arrays, log, target.unseen(cases.offered), margin)
    shown = verdict.name != "refused"
    support = arrays.choices.where(judged).support()
    figures = _figures(arrays) if len(cases) else {}
    return {
        "n_decisions": len(cases),
        "n_outcomes": n_outcomes,
        "n_unknown": cases.n_unknown,
        "n_nobody": cases.n_nobody,
        "effective_size": 0.0 if log is None else log.effective_size,
        "support": support._asdict(),
        "logged": {name: each["logged"] for name, each in figures.items()},
        "new": {name: each["new"] if shown else None for name, each in figures.items()},
        "difference": {name: each["difference"] if shown else None for name, each in figures.items()},
        "estimators": {name: each["estimators"] if shown else None for name, each in figures.items()},
        "flips": {
            "n": cases.n_flipped,
            "share": cases.n_flipped / len(cases) if len(cases) else 0.0,
            "examples": cases.examples,
        },
        "margin": margin,
        "verdict": verdict.name,
        "exit_code": verdict.exit_code,
        "refusals": [each._asdict() for each in verdict.refusals],
        "notes": _notes(cases, target.policy, n_outcomes),
    }


def _figures(arrays: Arrays) -> dict[str, dict[str, Any]]:
    """Of each quantity its estimate under both policies and their paired difference; None where it cannot be made."""
    found = {
        name: _estimated(arrays.choices, values)
        for name, values in (
            ("success", arrays.reward),
            ("cost_usd", arrays.cost_usd),
            ("latency_ms", arrays.latency_ms),
        )
    }
    # expected cost is known of every option: nothing is estimated but the mix of requests
    known = np.isfinite(arrays.logged_cost)
    was, new = arrays.logged_cost[known], arrays.target_cost[known]
    if len(was):
        found["cost_share"] = {
            "logged": _json(mean_estimate(was), len(was)),
            "new": _json(mean_estimate(new), len(was)),
            "difference": _json(mean_estimate(new - was), len(was)),
            "estimators": None,
        }
    return found


def _estimated(choices: Choices, values: Floats) -> dict[str, Any]:
    n = int(np.isfinite(values).sum())
    empty: dict[str, Any] = {"logged": None, "new": None, "difference": None, "estimators": None}
    if not n:
        return empty
    log, method = Log.of(choices, values), method_for(n)
    empty["logged"] = _json(mean_of(log), n)
    if log.effective_size < _MIN_EFFECTIVE:
        # few outcomes tell it, or none of what would be chosen
        return empty
    return {
        "logged": _json(mean_of(log), n),
        "new": {**_json(value_of(log, method), n), "method": method.value},
        "difference": {**_json(difference_of(log, method), n), "method": method.value},
        "estimators": {
            each.value: {"new": _json(value_of(log, each), n), "difference": _json(difference_of(log, each), n)}
            for each in Method
        },
    }


def _json(estimate: Estimate, n: int) -> dict[str, Any]:
    return {**estimate._asdict(), "n": n}


def _verdict(
    cases: PolicyCases, arrays: Arrays, log: Log | None, never_offered: Sequence[str], margin: float
) -> Verdict:
    refusals = _unknown(cases, never_offered)
    choices = arrays.choices
    if len(cases) and not refusals and np.allclose(choices.target, choices.logged, rtol=0, atol=1e-9):
        return Verdict("same", 0)
    if log is None:
        text = "no outcome can be judged: post what came of decisions to /feedback"
        return Verdict("refused", 3, (*refusals, Refusal("too_few_outcomes", text)))
    support = choices.where(np.isfinite(arrays.reward)).support()
    refusals += thin(len(log), log.effective_size, support, _MIN_OUTCOMES, _MIN_EFFECTIVE, _MIN_SUPPORT)
    if refusals:
        return Verdict("refused", 3, tuple(refusals))
    difference = difference_of(log, method_for(len(log)))
    if np.ptp(log.value) == 0:
        # where every outcome was the same, what was never seen may still be 3 in n (Hanley and Lippman-Hand 1983)
        unseen = 3 / log.effective_size
        difference = difference._replace(low95=difference.low95 - unseen, high95=difference.high95 + unseen)
    if difference.low95 > -margin:
        return Verdict("better" if difference.low95 > 0 else "not_worse", 0)
    if difference.high95 < 0:
        return Verdict("worse", 1)
    text = f"the difference in success lies between {difference.low95:+.3f} and {difference.high95:+.3f} (95 %): "
    text += "the policy is shown to be neither worse nor not worse; "
    needed = _needed(difference, len(log), margin)
    text += "no number of outcomes is likely to settle it" if needed is None else f"about {needed} outcomes may show it"
    return Verdict("undecided", 3, (Refusal("wide_interval", text),))


def _needed(difference: Estimate, n: int, margin: float) -> int | None:
    """Outcomes with which such an interval would lie on one side; None where it lies too near the border."""
    half = (difference.high95 - difference.low95) / 2
    away = max(difference.value + margin, -difference.value)
    return None if away <= margin / 10 else int(np.ceil(n * (half / away) ** 2 / 100) * 100)


def _unknown(cases: PolicyCases, never_offered: Sequence[str]) -> list[Refusal]:
    found = []
    n_asked = len(cases) + cases.n_unknown
    if not n_asked:
        text = "the log holds no decision that could be evaluated: name another --namespace or --since, or let the "
        found.append(Refusal("no_decisions", text + "service of this release decide first"))
    elif cases.n_unknown > _MOST_UNKNOWN * n_asked:
        text = f"of {cases.n_unknown} of {n_asked} decisions the declared quality is not known, as cards are gone: "
        found.append(Refusal("unknown_quality", text + "register them again, or use another learning.mode"))
    if never_offered:
        text = f"the policy admits agents that were never an option in the log: {', '.join(never_offered[:10])}; "
        found.append(Refusal("never_offered", text + "admit them first, with learning.mode: explore"))
    return found


def _notes(cases: PolicyCases, policy: Policy, n_outcomes: int) -> list[str]:
    notes = [
        "readings, who was eligible, live figures and posteriors are taken as recorded; of the policy count agents and "
        "permissions of intents, agents' enabled and weight, preference, weights, cost_weights, latency_weight, "
        "share_within, risk and learning"
    ]
    if policy.learning.exponents and policy.learning.mode != "observe":
        notes.append(
            "exponents that were learned are taken as recorded where the policy's weights are those of before "
            "(learning.exponents is true); with false, the policy's own are evaluated"
        )
    if cases.of_callers:
        notes.append(
            "the choices are the callers' own: their propensities are estimated from how often they chose each agent "
            "on an intent; whatever else they chose by is not known, and where outcomes depend on it the estimate does"
        )
    if len(cases) and n_outcomes < 0.5 * len(cases):
        notes.append(
            f"{n_outcomes} of {len(cases)} decisions have an outcome that can be judged; the estimate holds if the "
            "others went alike"
        )
    if cases.n_nobody:
        notes.append(f"for {cases.n_nobody} decisions the policy would choose nobody, which counts as no success")
    return notes
