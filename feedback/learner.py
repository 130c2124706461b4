"""Learner: all that is learned from outcomes, of all namespaces, in one process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from feedback.caller_cap import Cap, cap_of
from feedback.decline import Decline
from feedback.drift import limit_on
from feedback.evidence import MAX_CALLER_CELLS, split
from feedback.exponents import Exponents, Vector
from feedback.fleets import Fleets
from feedback.lessons import Learnt, Lesson, pack, unpack
from feedback.memory import Memory, Parts, Rows
from feedback.plans import Posterior
from models.card import AgentKey
from models.events import EVIDENCE_UNIT, LearnerRow, WeightRow
from models.learning_policy import LearningPolicy


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
        self._decline = Decline(self._memory, self._fleets)

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
        self,
        agents: Sequence[AgentKey],
        intents: Sequence[tuple[str, float]],
        policy: LearningPolicy,
        caller: str = "",
    ) -> Posterior:
        """Beta distributions of quality, in the order of the agents (`Fleet.posterior`).

        Args:
            agents: of any namespaces.
            intents: (intent, confidence), the one routed by first.
            policy: priors, what a new version inherits, and the cap on callers.
            caller: in whose name is asked: all that it has told counts; "" is nobody.
        """
        asked = tuple(agents)
        if not asked:
            return Posterior((), ())
        first = asked[0][0]
        if len({agent[0] for agent in asked}) == 1:
            return self._fleets.of(first, policy).posterior(asked, intents, policy, caller)
        found: dict[AgentKey, tuple[float, float]] = {}
        for namespace in {agent[0] for agent in asked}:
            own = tuple([agent for agent in asked if agent[0] == namespace])
            of_own = self._fleets.of(namespace, policy).posterior(own, intents, policy, caller)
            found.update(zip(own, zip(*of_own, strict=True), strict=True))
        return Posterior(tuple([found[agent][0] for agent in asked]), tuple([found[agent][1] for agent in asked]))

    def learn_one(self, lesson: Lesson, policy: LearningPolicy) -> Learnt:
        """Takes an outcome; while frozen it changes nothing."""
        if self.is_frozen:
            return Learnt([])
        memory, agent, caller, cap = self._memory, lesson.agent, lesson.caller, cap_of(policy)
        rows: Rows = []
        decayed = self._decline.decay(agent[0], policy, rows, agent)
        self._fleets.meet(agent)
        expected = self._fleets.of(agent[0], policy).expected(agent, lesson.intents, policy, caller)
        limit = self._limit_on(lesson, policy, cap)
        contribution, n_counted = self._grow(lesson, cap, rows)
        if lesson.features is not None and policy.exponents:
            exponents = memory.exponents.setdefault(agent[0], Exponents())
            weight = min(max(n_counted / EVIDENCE_UNIT, 0.0), 1.0)
            contribution["exponents"] = exponents.learn_one(lesson.features, lesson.reward, lesson.base, weight)
            rows.append(memory.namespace_row(agent[0], lesson.at_ms))
        state = memory.state(agent)
        if lesson.cost_usd is not None and not lesson.is_amended:
            state.costs.learn_one(lesson.cost_usd, caller, memory.evidence.of_caller(agent, caller, cap))
        is_alarm = False
        if policy.drift.enabled and expected is not None and not lesson.is_amended:
            was_demoted = state.drift.is_demoted
            is_alarm = state.drift.learn_one(lesson.reward, expected, caller, limit, policy.drift)
            if is_alarm:
                self._decline.demote(agent, policy, rows)
            elif was_demoted and not state.drift.is_demoted:
                memory.note_demoted(agent)
        rows += self._followed(memory.evidence.fold(cap))
        return Learnt(self._changed(rows, {agent, *decayed}, lesson.at_ms), contribution, is_alarm)

    def unlearn_one(self, contribution: Mapping[str, Any], policy: LearningPolicy, at_ms: int) -> Learnt:
        """Undoes what `learn_one` added to sums, exactly where no alarm or decay came between, else down to 0.

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
            self._decline.routed(namespace)

    def due(self, policy: LearningPolicy, at_ms: int) -> Learnt:
        """Applies what is still to decay; to be called now and then, and before the process ends."""
        rows: Rows = []
        decayed = [
            agent
            for namespace in list(self._memory.demoted)
            for agent in self._decline.decay(namespace, policy, rows, None)
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

    def n_counted(self, agent: AgentKey, intent: str, policy: LearningPolicy) -> float:
        """So many of these outcomes count for everybody, whoever told them."""
        return self._memory.evidence.counted(agent, intent, cap_of(policy)).sums[0] / EVIDENCE_UNIT

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
        self._decline.clear()

    def merge(self, rows: Iterable[WeightRow | LearnerRow], policy: LearningPolicy, at_ms: int) -> Learnt:
        """Adds what another process has learned from other outcomes, as its `rows` say."""
        changed = self._memory.merge(rows, cap_of(policy), at_ms)
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
        self._decline.clear()
        return Learnt(self._changed(changed, (), at_ms))

    def forget_caller(self, caller: str, policy: LearningPolicy, at_ms: int) -> Learnt:
        """The name of a caller is forgotten, what it told counts as far as it does for others: the version stays."""
        rows = self._followed(self._memory.evidence.fold_caller(caller, cap_of(policy)))
        touched = [agent for agent, state in self._memory.states.items() if state.forget(caller)]
        return Learnt([*rows, *[self._memory.agent_row(agent, at_ms) for agent in sorted(touched)]])

    def _limit_on(self, lesson: Lesson, policy: LearningPolicy, cap: Cap) -> float:
        """The most of an agent's CUSUM that may be the caller's; who contradicts the others has no part in it."""
        evidence, agent, caller = self._memory.evidence, lesson.agent, lesson.caller
        if evidence.is_contradicted(agent, lesson.intents[0][0], caller, cap):
            self._memory.state(agent).drift.withdraw(caller)
            return 0.0
        return limit_on(evidence.share(agent, caller, cap), policy.caller_share, policy.drift.threshold)

    def _grow(self, lesson: Lesson, cap: Cap, rows: Rows) -> tuple[dict[str, Any], int]:
        """Adds evidence; what was added, and by how much that grew which counts for everybody."""
        evidence, agent = self._memory.evidence, lesson.agent
        parts, n_counted = split(lesson.intents, lesson.reward), 0
        for part in parts:
            n_counted -= evidence.counted(agent, part[0], cap).sums[0]
            rows.append(evidence.grow(agent, part, lesson.caller))
            n_counted += evidence.counted(agent, part[0], cap).sums[0]
            self._fleets.put(agent, part[0])
        contribution = {
            "agent": list(agent),
            "caller": lesson.caller,
            "parts": [list(part) for part in parts],
            "version": self.version + 1,
        }
        return contribution, n_counted

    def _followed(self, folded: list[WeightRow]) -> list[WeightRow]:
        """The same rows; what counts of their cells may be another figure since they were folded."""
        for agent, intent in {(row[:3], row.intent) for row in folded}:
            self._fleets.put(agent, intent)
        return folded

    def _changed(self, rows: Rows, agents: Iterable[AgentKey], at_ms: int) -> Rows:
        memory = self._memory
        memory.version += 1
        return [*rows, *[memory.agent_row(agent, at_ms) for agent in sorted(agents)], memory.own_row(at_ms)]
