"""PolicyCases: recorded decisions of one kind under the policy that made them and one that is evaluated, in arrays."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from feedback.choices import Choices, ChoicesBuilder, Floats, Row
from models.card import AgentKey
from router.logged_decision import Logged, key_of
from router.target_policy import Chances

MAX_EXAMPLES = 10
_MAX_CHARS = 120


@dataclass(frozen=True, slots=True)
class Arrays:
    """n decisions as arrays.

    Attributes:
        reward: float64 (n), 0..1; NaN where there is no outcome, or the agent is not to be judged by it.
        latency_ms: float64 (n), as the outcome told it; NaN where it did not. So is `cost_usd`.
        logged_cost: float64 (n), expected cost of the logged policy's choices by that of the dearest option, 0..1.
        target_cost: the same of the target's choices.
    """

    choices: Choices
    reward: Floats
    latency_ms: Floats
    cost_usd: Floats
    logged_cost: Floats
    target_cost: Floats


class PolicyCases:
    """Gathers recorded decisions.

    Args:
        of_callers: whether the choices are the callers' own; else they are the router's.

    Attributes:
        n_unknown: decisions that the target cannot be asked about.
        n_nobody: those for which it would choose nobody.
        n_flipped: those that, with the recorded seed, it would give to another agent, or to nobody.
        examples: of those, the first few.
        offered: (namespace, intent, agent id) of all that were ever an option.
    """

    def __init__(self, *, of_callers: bool) -> None:
        self.of_callers = of_callers
        self.n_unknown = self.n_nobody = self.n_flipped = 0
        self.examples: list[dict[str, Any]] = []
        self.offered: set[tuple[str, str, str]] = set()
        self._numbers: dict[tuple[str, ...], int] = {}
        self._builder = ChoicesBuilder()
        self._reward, self._latency_ms, self._cost_usd, self._cost = (array("d") for _ in range(4))

    def __len__(self) -> int:
        return len(self._reward)

    @property
    def n_options(self) -> int:
        """Options of all decisions."""
        return self._builder.n_options

    def add(self, logged: Logged, chances: Chances | None) -> None:
        """Take a decision and what the target makes of it; None where it cannot be asked."""
        entry = logged.entry
        self.offered.update((entry.namespace, entry.intent, each.agent_id) for each in logged.contenders)
        if chances is None:
            self.n_unknown += 1
            return
        agents, chosen = self._options(logged)
        beyond = [0.0] * (len(agents) - len(logged.contenders))
        # how callers choose is estimated once all of their choices are known
        propensities = [1.0] * len(agents) if self.of_callers else logged.propensities
        shares = (*chances.shares, *beyond)
        self._builder.add(
            Row(
                decision_id=entry.decision_id,
                intent=self._number(("intent", entry.namespace, entry.intent)),
                agents=[self._number(agent) for agent in agents],
                logged=propensities,
                target=shares,
                chosen=chosen,
            )
        )
        self._note_outcome(logged)
        dearest = max(each.cost for each in logged.contenders)
        self._cost.extend(each.cost / dearest if dearest > 0 else 0.0 for each in logged.contenders)
        self._cost.extend(nan for _ in beyond)
        self.n_nobody += chances.choice is None
        if chances.choice != chosen:
            self._note_flip(logged, chances, agents[chosen], shares[chosen])

    def arrays(self) -> Arrays:
        """All that was gathered."""
        choices = self._builder.build()
        if self.of_callers:
            choices = replace(choices, logged=frequencies(choices))
        cost = np.array(self._cost, dtype=np.float64)
        return Arrays(
            choices=choices,
            reward=np.array(self._reward, dtype=np.float64),
            latency_ms=np.array(self._latency_ms, dtype=np.float64),
            cost_usd=np.array(self._cost_usd, dtype=np.float64),
            logged_cost=choices.total(choices.logged * cost),
            # what is no contender's has no cost that compares, and no share either
            target_cost=choices.total(choices.target * np.nan_to_num(cost)),
        )

    def _options(self, logged: Logged) -> tuple[list[AgentKey], int]:
        """The options, and the place of the one that was called."""
        agents = [key_of(each) for each in logged.contenders]
        choice = logged.entry.caller_choice
        if not self.of_callers or choice is None:
            return agents, logged.chosen
        called = next((place for place, agent in enumerate(agents) if agent[:2] == choice[:2]), None)
        if called is not None:
            return agents, called
        # the router would not have had it, but the callers did
        return [*agents, choice], len(agents)

    def _note_outcome(self, logged: Logged) -> None:
        first = next((each for each in logged.entry.outcomes if each.attempt == 1), None)
        reward = None if first is None else first.reward
        outcome = None if first is None or reward is None else first.outcome
        self._reward.append(nan if reward is None else reward)
        for values, told in (
            (self._latency_ms, None if outcome is None else outcome.latency_ms),
            (self._cost_usd, None if outcome is None else outcome.cost_usd),
        ):
            values.append(nan if told is None else told)

    def _note_flip(self, logged: Logged, chances: Chances, called: AgentKey, share: float) -> None:
        self.n_flipped += 1
        if len(self.examples) == MAX_EXAMPLES:
            return
        entry = logged.entry
        new = None if chances.choice is None else logged.contenders[chances.choice]
        self.examples.append(
            {
                "decision_id": entry.decision_id,
                "at_ms": entry.at_ms,
                "intent": entry.intent,
                "utterance": None if entry.utterance is None else entry.utterance[:_MAX_CHARS],
                "was": called[1],
                "would_be": None if new is None else new.agent_id,
                "new_propensity_of_was": share,
                "reward": entry.reward,
            }
        )

    def _number(self, name: Sequence[str]) -> int:
        return self._numbers.setdefault(tuple(name), len(self._numbers))


def frequencies(choices: Choices) -> Floats:
    """Propensities of choices of which none are recorded: how often each agent was chosen on the intent.

    float64 (m): among the options of a decision, in proportion to the choices of the whole log.
    """
    intent = choices.intent[choices.decision]
    cells, cell = np.unique(np.stack([intent, choices.agent]), axis=1, return_inverse=True)
    counts = np.bincount(cell.ravel()[choices.chosen], minlength=cells.shape[1]).astype(np.float64)
    of_option = counts[cell.ravel()]
    return np.asarray(of_option / choices.total(of_option)[choices.decision], dtype=np.float64)
