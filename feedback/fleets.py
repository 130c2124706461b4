"""Fleets: the agents of all namespaces as they are declared, with what the memory knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from feedback.caller_cap import Cap, cap_of
from feedback.memory import Memory
from feedback.posterior import Fleet
from models.card import AgentKey
from models.learning_policy import LearningPolicy


class _Rules(NamedTuple):
    """What a fleet was made by.

    Attributes:
        leader: of whom all that it told counts: another one makes a difference to all agents.
    """

    inherit: float
    intent_prior: float
    cap: Cap
    leader: str | None


class Fleets:
    """A fleet by namespace, made when it is asked for; what is learned later is put into it.

    Args:
        memory: what is known.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._declared: dict[str, dict[AgentKey, dict[str, float]]] = {}
        self._made: dict[str, tuple[_Rules, Fleet]] = {}

    def declare(self, declared: Mapping[AgentKey, Mapping[str, float]]) -> None:
        """These are the agents, and the quality that each declares per intent, 0..1."""
        by_namespace: dict[str, dict[AgentKey, dict[str, float]]] = {}
        for agent, intents in declared.items():
            by_namespace.setdefault(agent[0], {})[agent] = dict(intents)
            self.meet(agent)
        for namespace in self._declared.keys() | by_namespace.keys():
            if self._declared.get(namespace) != by_namespace.get(namespace):
                self._made.pop(namespace, None)
        self._declared = by_namespace

    def meet(self, agent: AgentKey) -> None:
        """Takes note of an agent: a new version inherits."""
        if self._memory.lineage.learn_one(agent):
            self._made.pop(agent[0], None)

    def of(self, namespace: str, policy: LearningPolicy) -> Fleet:
        """The fleet of a namespace."""
        leader = self._memory.evidence.leader(namespace)
        rules = _Rules(policy.inherit, policy.intent_prior, cap_of(policy), leader)
        known = self._made.get(namespace)
        if known is not None and known[0] == rules:
            return known[1]
        fleet = Fleet(self._declared.get(namespace, {}), rules.intent_prior)
        for agent, intent in fleet.cells():
            fleet.put(agent, intent, self._memory.counted(agent, intent, rules.inherit, rules.cap))
        self._made[namespace] = (rules, fleet)
        return fleet

    def put(self, agent: AgentKey, intent: str) -> None:
        """What is read of an agent's intent follows its evidence, and so does what its later versions inherit."""
        known = self._made.get(agent[0])
        if known is None:
            return
        rules, fleet = known
        if rules.leader != self._memory.evidence.leader(agent[0]):
            # one who leads again before anything is read would leave what was put meanwhile as it is without a leader
            del self._made[agent[0]]
            return
        for version in self._memory.lineage.since(agent):
            fleet.put(version, intent, self._memory.counted(version, intent, rules.inherit, rules.cap))

    def put_all(self, agent: AgentKey) -> None:
        """The same of all intents of an agent."""
        for intent in self._memory.intents_of(agent):
            self.put(agent, intent)

    def clear(self) -> None:
        """The memory is another one: fleets are made anew."""
        self._made.clear()
