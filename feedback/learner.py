"""Learner: all that is learned from outcomes, of all namespaces, in one process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from feedback.drift import limit_on
from feedback.evidence import MAX_CALLER_CELLS, split
from feedback.exponents import Exponents, Vector
from feedback.fleets import Fleets
from feedback.lessons import Learnt, Lesson, pack, unpack
from feedback.memory import Memory, Parts, Rows
from feedback.posterior import Posterior
from models.card import AgentKey
from models.events import EVIDENCE_UNIT, LearnerRow, WeightRow
from models.learning_policy import LearningPolicy

DECAY_AFTER = 50
"""Requests after which the evidence on a demoted agent decays even where nothing is learned of it."""


class Learner:
    """Evidence, drift, costs and exponents; every change comes back as rows for the store.

    Not safe for threads. Randomness and time are passed in: the same calls in the same order give the same state, and
    what `load` makes of the rows goes on as what wrote them. Simulated fast: `declare` once, then per step
    `posterior(agents, ((intent, 1.0),), policy)` with the same tuple of agents, one row of `feedback.bandit.draw`,
    `routed` and `learn_one(Lesson(...))`; nothing grows with the number of outcomes.

    Args:
        max_caller_cells: bounds memory (`feedback.evidence.MAX_CALLER_CELLS`).

    >>> agent, policy = ("default", "helper", "1.0.0"), LearningPolicy()
    >>> learner = Learner()
    >>> learner.declare({agent: {"billing": 0.8}})
    >>> alpha, beta = learner.posterior([agent], [("billing", 1.0)], policy)
    >>> round(alpha[0], 9), round(beta[0], 9)
    (8.0, 2.0)
    >>> learnt = learner.learn_one(Lesson(agent, [("billing", 1.0)], 1.0, "ann", None, None, at_ms=0), policy)
    >>> learnt.rows[0][3:]
    ('billing', 'ann', 1000000, 1000000)
    >>> learner.posterior([agent], [("billing", 1.0)], policy).alpha[0] > 9
    True
    """

    def __init__(self, max_caller_cells: int = MAX_CALLER_CELLS) -> None:
        self._memory = Memory(max_caller_cells)
        self._fleets = Fleets(self._memory)
        self._routed: dict[str, int] = {}

    @property
    def version(self) -> int:
        """Of the weights; rises by one with each change."""
        return self._memory.version

    @property
    def is_frozen(self) -> bool:
        """Whether nothing is learned at present."""
        return self._memory.frozen is not None

    @property
    def frozen(self) -> str | None:
        """Why nothing is learned at present; None where it is."""
        return self._memory.frozen

    def declare(self, declared: Mapping[AgentKey, Mapping[str, float]]) -> None:
        """These are the agents, and the quality that each declares per intent, 0..1; others keep their evidence."""
        self._fleets.declare(declared)

    def knows(self, agent: AgentKey) -> bool:
        """Whether an agent has, or had since the start, a card, or there is evidence on it."""
        return agent in self._memory.lineage

    def posterior(
        self, agents: Sequence[AgentKey], intents: Sequence[tuple[str, float]], policy: LearningPolicy
    ) -> Posterior:
        """Beta distributions of quality, in the order of the agents (`Fleet.posterior`).

        Args:
            agents: of any namespaces.
            intents: (intent, confidence), the one routed by first.
            policy: priors, and what a new version inherits.
        """
        asked = tuple(agents)
        if not asked:
            return Posterior((), ())
        first = asked[0][0]
        if len({agent[0] for agent in asked}) == 1:
            return self._fleets.of(first, policy).posterior(asked, intents, policy)
        found: dict[AgentKey, tuple[float, float]] = {}
        for namespace in {agent[0] for agent in asked}:
            own = tuple([agent for agent in asked if agent[0] == namespace])
            of_own = self._fleets.of(namespace, policy).posterior(own, intents, policy)
            found.update(zip(own, zip(*of_own, strict=True), strict=True))
        return Posterior(tuple([found[agent][0] for agent in asked]), tuple([found[agent][1] for agent in asked]))

    def learn_one(self, lesson: Lesson, policy: LearningPolicy) -> Learnt:
        """Takes an outcome; while frozen it changes nothing."""
        if self.is_frozen:
            return Learnt([])
        memory, agent, caller = self._memory, lesson.agent, lesson.caller
        rows: Rows = []
        decayed = self._decay(agent[0], policy, rows, agent)
        self._fleets.meet(agent)
        expected = self._fleets.of(agent[0], policy).expected(agent, lesson.intents, policy)
        limit = limit_on(memory.evidence.share(agent, caller), policy.caller_share, policy.drift.threshold)
        contribution, n_grown = self._grow(lesson, policy, rows)
        if lesson.features is not None and policy.exponents:
            exponents = memory.exponents.setdefault(agent[0], Exponents())
            weight = min(max(n_grown / EVIDENCE_UNIT, 0.0), 1.0)
            contribution["exponents"] = exponents.learn_one(lesson.features, lesson.reward, lesson.base, weight)
            rows.append(memory.namespace_row(agent[0], lesson.at_ms))
        state = memory.state(agent)
        if lesson.cost_usd is not None and not lesson.is_amended:
            state.costs.learn_one(lesson.cost_usd, caller, memory.evidence.of_caller(agent, caller))
        is_alarm = False
        if policy.drift.enabled and expected is not None and not lesson.is_amended:
            was_demoted = state.drift.is_demoted
            is_alarm = state.drift.learn_one(lesson.reward, expected, caller, limit, policy.drift)
            if is_alarm:
                self._demote(agent, policy, rows)
            elif was_demoted and not state.drift.is_demoted:
                memory.note_demoted(agent)
        rows += memory.evidence.fold()
        return Learnt(self._changed(rows, {agent, *decayed}, lesson.at_ms), contribution, is_alarm)

    def unlearn_one(self, contribution: Mapping[str, Any], policy: LearningPolicy, at_ms: int) -> Learnt:
        """Undoes what `learn_one` added to sums, exactly where no alarm, decay or cap came between, else down to 0.

        The detector of drift keeps what it saw, and so does the cost. What went with a rollback is undone already.
        It is undone while frozen too: what was taken back must not count, though nothing new is learned.

        Args:
            contribution: as `learn_one` gave it.
            policy: what a version inherits.
            at_ms: now (epoch).
        """
        if self._memory.is_rolled_back(contribution.get("version")):
            return Learnt([])
        namespace, agent_id, version = contribution["agent"]
        agent: AgentKey = (namespace, agent_id, version)
        rows: Rows = []
        for intent, n, s in contribution["parts"]:
            rows += self._memory.evidence.take_back(agent, (intent, n, s), contribution["caller"])
            self._fleets.put(agent, intent)
        if "exponents" in contribution:
            self._memory.exponents.setdefault(namespace, Exponents()).add(contribution["exponents"], -1)
            rows.append(self._memory.namespace_row(namespace, at_ms))
        return Learnt(self._changed(rows, (), at_ms))

    def routed(self, namespace: str) -> None:
        """A request was routed in a namespace: the evidence on its demoted agents is to decay."""
        if namespace in self._memory.demoted and not self.is_frozen:
            self._routed[namespace] = self._routed.get(namespace, 0) + 1

    def due(self, policy: LearningPolicy, at_ms: int) -> Learnt:
        """Applies what is still to decay; to be called now and then, and before the process ends."""
        rows: Rows = []
        decayed = [
            agent for namespace in list(self._memory.demoted) for agent in self._decay(namespace, policy, rows, None)
        ]
        return Learnt(self._changed(rows, decayed, at_ms) if decayed else [])

    def exponents(self, namespace: str, base: Sequence[float]) -> Vector:
        """The exponents of a namespace, as learned from those of its policy: similarity, quality, health, load."""
        learned = self._memory.exponents.get(namespace)
        return Exponents().value(base) if learned is None else learned.value(base)

    def cost_of(self, agent: AgentKey) -> float | None:
        """What an agent's calls cost in the mean (`feedback.costs`), in US dollars; None where nobody told."""
        state = self._memory.states.get(agent)
        return None if state is None else state.costs.mean_usd

    def is_demoted(self, agent: AgentKey) -> bool:
        """Whether an agent's drift raised an alarm that is not cleared."""
        return agent in self._memory.demoted.get(agent[0], ())

    def evidence_of(self, agent: AgentKey, intent: str) -> tuple[float, float]:
        """Outcomes on an agent's intent and the sum of their rewards, without what it inherited."""
        n, s = self._memory.evidence.of(agent, intent)
        return n / EVIDENCE_UNIT, s / EVIDENCE_UNIT

    def freeze(self, reason: str, at_ms: int) -> Learnt:
        """Learns nothing from now on."""
        self._memory.frozen = reason
        return Learnt([self._memory.own_row(at_ms)])

    def thaw(self, at_ms: int) -> Learnt:
        """Learns again."""
        self._memory.frozen = None
        return Learnt([self._memory.own_row(at_ms)])

    def rows(self, at_ms: int) -> Rows:
        """The whole state as rows, in order of their keys: `load` makes the same learner of them."""
        return [*self._memory.evidence.rows(), *self._memory.states_rows(at_ms)]

    def load(self, weights: Iterable[WeightRow], states: Iterable[LearnerRow]) -> None:
        """Becomes what the rows say; what is declared stays.

        Raises:
            ValueError: the body of a row is none that a learner wrote.
        """
        self._memory.load(weights, states)
        self._fleets.clear()
        self._routed.clear()

    def merge(self, rows: Iterable[WeightRow | LearnerRow], at_ms: int) -> Learnt:
        """Adds what another process has learned from other outcomes, as its `rows` say."""
        changed = self._memory.merge(rows, at_ms)
        self._fleets.clear()
        return Learnt(self._changed(changed, (), at_ms))

    def snapshot_source(self) -> Parts:
        """The whole state, copied fast; `feedback.lessons.pack` makes a snapshot of it, in a thread."""
        return self._memory.source()

    def snapshot(self) -> bytes:
        """The whole state, compressed; the same state gives the same bytes."""
        return pack(*self.snapshot_source())

    def restore(self, snapshot: bytes, at_ms: int) -> Learnt:
        """Goes back to a snapshot; the version goes on rising, and whether learning is frozen stays.

        Raises:
            ValueError: these bytes are no snapshot.
        """
        return self.restore_parsed(unpack(snapshot), at_ms)

    def restore_parsed(self, parts: Parts, at_ms: int) -> Learnt:
        """Goes back to a snapshot of which `feedback.lessons.unpack` was made, in a thread.

        Raises:
            ValueError: the body of a row is none that a learner wrote.
        """
        changed = self._memory.restore(parts, at_ms)
        self._fleets.clear()
        self._routed.clear()
        return Learnt(self._changed(changed, (), at_ms))

    def forget_caller(self, caller: str, at_ms: int) -> Learnt:
        """The name of a caller is forgotten, what it told still counts: the version stays."""
        rows: Rows = [*self._memory.evidence.fold_caller(caller)]
        touched = [agent for agent, state in self._memory.states.items() if state.forget(caller)]
        return Learnt([*rows, *[self._memory.agent_row(agent, at_ms) for agent in sorted(touched)]])

    def _grow(self, lesson: Lesson, policy: LearningPolicy, rows: Rows) -> tuple[dict[str, Any], int]:
        """Adds evidence as far as the cap admits; what was added, and by how much the caller's evidence grew."""
        free = int(policy.caller_free * EVIDENCE_UNIT)
        parts, n_grown = [], 0
        for part in split(lesson.intents, lesson.reward):
            row, counted = self._memory.evidence.grow(lesson.agent, part, lesson.caller, policy.caller_share, free)
            rows.append(row)
            parts.append([part[0], *counted])
            n_grown += row.n
            self._fleets.put(lesson.agent, part[0])
        made_at = self.version + 1
        return {"agent": list(lesson.agent), "caller": lesson.caller, "parts": parts, "version": made_at}, n_grown

    def _demote(self, agent: AgentKey, policy: LearningPolicy, rows: Rows) -> None:
        memory = self._memory
        sums = [memory.effective(agent, intent, policy.inherit) for intent in memory.intents_of(agent)]
        n, s = sum([n for n, _ in sums]) / EVIDENCE_UNIT, sum([s for _, s in sums]) / EVIDENCE_UNIT
        rows += memory.evidence.scale(agent, *memory.state(agent).drift.alarm(n, s, policy.drift))
        memory.state(agent).routed = self._routed.get(agent[0], 0)
        memory.note_demoted(agent)
        self._fleets.put_all(agent)

    def _decay(self, namespace: str, policy: LearningPolicy, rows: Rows, first: AgentKey | None) -> list[AgentKey]:
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

    def _changed(self, rows: Rows, agents: Iterable[AgentKey], at_ms: int) -> Rows:
        memory = self._memory
        memory.version += 1
        return [*rows, *[memory.agent_row(agent, at_ms) for agent in sorted(agents)], memory.own_row(at_ms)]
