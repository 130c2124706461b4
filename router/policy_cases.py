"""PolicyCases: recorded decisions of one kind under the policy that made them and one that is evaluated, in arrays."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from feedback.choices import Choices, ChoicesBuilder, Floats, Row
from models.card import AgentKey
from router.logged_decision import Logged
from router.target_policy import Chances

MAX_EXAMPLES = 10
_MAX_CHARS = 120


@dataclass(frozen=True, slots=True)
class Arrays:
    """n decisions as arrays.

    Attributes:
        reward: float64 (n), 0..1; NaN where there is no outcome, or the agent is not to be judged by it.
        latency_ms: float64 (n), as the outcome told it; NaN where it did not. So is `cost_usd`.
        logged_cost: float64 (n), expected cost of the logged policy's choices by that of the dearest contender, 0..1;
            of callers that of the one they chose, NaN where it was no contender.
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
        self._rows: list[Row] = []
        self._called: dict[int, Counter[int]] = {}
        self._n_options = 0
        self._reward, self._latency_ms, self._cost_usd = (array("d") for _ in range(3))
        self._logged_cost, self._target_cost = array("d"), array("d")

    def __len__(self) -> int:
        return len(self._reward)

    @property
    def n_options(self) -> int:
        """Options of all decisions."""
        return self._n_options

    def add(self, logged: Logged, chances: Chances | None) -> None:
        """Take a decision and what the target makes of it; None where it cannot be asked."""
        entry = logged.entry
        self.offered.update((entry.namespace, entry.intent, each.agent_id) for each in logged.contenders)
        if chances is None:
            self.n_unknown += 1
            return
        agents, chosen = self._options(logged)
        beyond = [0.0] * (len(agents) - len(logged.contenders))
        shares = (*chances.shares, *beyond)
        row = Row(
            decision_id=entry.decision_id,
            intent=self._number(("intent", entry.namespace, entry.intent)),
            # callers know no versions
            agents=[self._number(agent[:2] if self.of_callers else agent) for agent in agents],
            logged=[1.0] * len(agents) if self.of_callers else logged.propensities,
            target=shares,
            chosen=chosen,
        )
        dearest = max(each.cost for each in logged.contenders)
        costs = [each.cost / dearest if dearest > 0 else 0.0 for each in logged.contenders]
        if self.of_callers:
            self._called.setdefault(row.intent, Counter())[row.agents[chosen]] += 1
            self._rows.append(row)
            self._logged_cost.append(costs[chosen] if chosen < len(costs) else nan)
        else:
            self._builder.add(row)
            self._logged_cost.append(sum(share * cost for share, cost in zip(row.logged, costs, strict=True)))
        self._target_cost.append(sum(share * cost for share, cost in zip(chances.shares, costs, strict=True)))
        self._n_options += len(agents)
        self._note_outcome(logged)
        self.n_nobody += chances.choice is None
        if chances.choice != chosen:
            self._note_flip(logged, chances, agents[chosen], shares[chosen])

    def arrays(self) -> Arrays:
        """All that was gathered."""
        builder = self._builder
        if self.of_callers:
            builder = ChoicesBuilder()
            for row in self._rows:
                builder.add(self._estimated(row))
        reward, latency_ms, cost_usd, logged_cost, target_cost = (
            np.array(each, dtype=np.float64)
            for each in (self._reward, self._latency_ms, self._cost_usd, self._logged_cost, self._target_cost)
        )
        return Arrays(builder.build(), reward, latency_ms, cost_usd, logged_cost, target_cost)

    def _estimated(self, row: Row) -> Row:
        """A row of a caller's choice, with propensities: how often callers chose each agent on the intent.

        What they choose from does not depend on who was eligible here: all that were ever chosen are options.
        """
        called = self._called[row.intent]
        others = [agent for agent in called if agent not in row.agents]
        agents = (*row.agents, *others)
        n = called.total()
        return row._replace(
            agents=agents, logged=[called[agent] / n for agent in agents], target=(*row.target, *[0.0] * len(others))
        )

    def _options(self, logged: Logged) -> tuple[list[AgentKey], int]:
        """The options, and the place of the one that was called."""
        agents = [each.key for each in logged.contenders]
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
