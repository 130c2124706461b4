"""Advice: what a learner says of the contenders of one decision, and whether it may try them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from feedback.learner import Learner
from models.card import Risk
from models.learning_policy import LearningMode, LearningPolicy
from models.policy import Policy
from models.request import Preference
from router.learned import Learned
from router.scorer import Blend
from router.snapshot import Entry


class Advice(NamedTuple):
    """What is known of the contenders of a case.

    Attributes:
        learned: posteriors, in the order of the contenders; None where there are none.
        costs_usd: observed cost of each contender's calls; empty where none is known.
        blend: of the formula, with learned exponents where they hold.
    """

    learned: Learned | None
    costs_usd: tuple[float | None, ...]
    blend: Blend


class Exploration(NamedTuple):
    """How far a decision explores.

    Attributes:
        mode: of learning, as it holds for this decision.
        floor: share that is spread evenly over all contenders.
    """

    mode: LearningMode
    floor: float


def explored_by(policy: Policy, preference: Preference, risk: Risk, floor: Callable[[float], float]) -> Exploration:
    """How far a decision may explore: by the mode, the risk of its intent, and what its caller wants.

    Args:
        policy: the whole one.
        preference: `best` explores nothing.
        risk: of the intent.
        floor: makes the floor that holds of the policy's.
    """
    rules = policy.learning
    if rules.mode == "observe":
        return Exploration("observe", 0.0)
    allowed = getattr(policy.risk, risk)
    if preference != "best" and (allowed == "always" or (allowed == "explore" and rules.mode == "explore")):
        return Exploration(rules.mode, floor(rules.floor))
    return Exploration("exploit", 0.0)


def advice_of(
    learner: Learner,
    entries: Sequence[Entry],
    intents: Sequence[tuple[str, float]],
    rules: LearningPolicy,
    explored: Exploration,
    blend: Blend,
    teller: str,
) -> Advice:
    """What is known of the entries, at least one; `blend` is that of the policy, `teller` in whose name is asked."""
    agents = [entry.agent for entry in entries]
    alpha, beta = learner.posterior(agents, intents, rules, teller)
    learned = Learned(explored.mode, alpha, beta, explored.floor, rules.temperature, learner.version)
    costs_usd = tuple([learner.cost_of(agent) for agent in agents])
    is_any_known = any(cost_usd is not None for cost_usd in costs_usd)
    with_learned = with_exponents(learner, agents[0][0], blend, rules)
    return Advice(learned, costs_usd if is_any_known else (), with_learned)


def with_exponents(learner: Learner, namespace: str, blend: Blend, rules: LearningPolicy) -> Blend:
    """The blend with the exponents that were learned in a namespace, where they are to be used."""
    if rules.mode == "observe" or not rules.exponents:
        return blend
    similarity, quality, health, load = learner.exponents(namespace, blend[:4])
    return blend._replace(similarity=similarity, quality=quality, health=health, load=load)
