"""Decline: the evidence on an agent that drifted is cut down at the alarm, and decays from then on."""

from __future__ import annotations

from feedback.fleets import Fleets
from feedback.memory import Memory, Rows
from models.card import AgentKey
from models.events import EVIDENCE_UNIT
from models.learning_policy import LearningPolicy

DECAY_AFTER = 50
"""Requests after which the evidence on a demoted agent decays even where nothing is learned of it."""


class Decline:
    """The requests that were routed in each namespace, and what they take from its demoted agents.

    Args:
        memory: what is known; it changes here.
        fleets: follow it.
    """

    def __init__(self, memory: Memory, fleets: Fleets) -> None:
        self._memory = memory
        self._fleets = fleets
        self._routed: dict[str, int] = {}

    def routed(self, namespace: str) -> None:
        """A request was routed in a namespace: the evidence on its demoted agents is to decay."""
        self._routed[namespace] = self._routed.get(namespace, 0) + 1

    def clear(self) -> None:
        """The memory is another one: no decay is pending."""
        self._routed.clear()

    def demote(self, agent: AgentKey, policy: LearningPolicy, rows: Rows) -> None:
        """Cuts the evidence on an agent down to a few outcomes, and to what it does now."""
        memory = self._memory
        sums = [memory.effective(agent, intent, policy.inherit) for intent in memory.intents_of(agent)]
        n, s = sum([n for n, _ in sums]) / EVIDENCE_UNIT, sum([s for _, s in sums]) / EVIDENCE_UNIT
        rows += memory.evidence.scale(agent, *memory.state(agent).drift.alarm(n, s, policy.drift))
        memory.state(agent).routed = self._routed.get(agent[0], 0)
        memory.note_demoted(agent)
        self._fleets.put_all(agent)

    def decay(self, namespace: str, policy: LearningPolicy, rows: Rows, first: AgentKey | None) -> list[AgentKey]:
        """Applies pending decay: to `first` in any case, to others once much is pending; None takes all as first."""
        decayed = []
        n_routed = self._routed.get(namespace, 0)
        for agent in self._memory.demoted.get(namespace, ()):
            state = self._memory.state(agent)
            pending = n_routed - state.routed
            if pending and (first in (None, agent) or pending >= DECAY_AFTER):
                state.routed = n_routed
                if policy.drift.enabled and self._scale(agent, policy.drift.decay**pending, policy.inherit, rows):
                    decayed.append(agent)
        return decayed

    def _scale(self, agent: AgentKey, factor: float, inherit: float, rows: Rows) -> bool:
        """All evidence on an agent shrinks; whether that changed anything, in whole parts."""
        memory, intents = self._memory, self._memory.intents_of(agent)
        before = [memory.effective(agent, intent, inherit) for intent in intents]
        if not any(n for n, _ in before):
            return False
        rows += memory.evidence.scale(agent, factor, factor)
        memory.state(agent).drift.scale(factor, factor)
        self._fleets.put_all(agent)
        return before != [memory.effective(agent, intent, inherit) for intent in intents]
