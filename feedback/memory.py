"""Memory: the state of a learner, how it is written down, and how it is read, merged and restored."""

from __future__ import annotations

from collections.abc import Iterable

from feedback.caller_cap import Cap
from feedback.cell import Counted, Sums, Told
from feedback.evidence import Evidence
from feedback.exponents import Exponents
from feedback.lessons import AgentState, encoded, parsed
from feedback.lineage import Lineage
from models.card import AgentKey
from models.events import LearnerRow, WeightRow

Rows = list[WeightRow | LearnerRow]

Parts = tuple[list[WeightRow], list[LearnerRow]]
"""Rows of evidence, and those of the rest."""

MAX_ROLLBACKS = 100
"""So many are remembered, the newest."""


class Memory:
    """Evidence by agent, what else is known of agents, and exponents by namespace.

    Attributes:
        rollbacks: (restored_version, at_version) of those that led to what is in force, oldest first: what was learned
            after the one and up to the other is not in it.

    Args:
        max_caller_cells: bounds the evidence's memory.
    """

    def __init__(self, max_caller_cells: int) -> None:
        self.version = 0
        self.frozen: str | None = None
        self.rollbacks: list[tuple[int, int]] = []
        self.evidence = Evidence(max_caller_cells)
        self.lineage = Lineage()
        self.states: dict[AgentKey, AgentState] = {}
        self.exponents: dict[str, Exponents] = {}
        self.demoted: dict[str, list[AgentKey]] = {}
        self._max_caller_cells = max_caller_cells

    def state(self, agent: AgentKey) -> AgentState:
        """What is known of an agent beside evidence."""
        state = self.states.get(agent)
        if state is None:
            state = self.states[agent] = AgentState()
        return state

    def note_demoted(self, agent: AgentKey) -> None:
        """An agent was demoted, or is so no longer."""
        demoted = [other for other in self.demoted.get(agent[0], ()) if other != agent]
        if self.state(agent).drift.is_demoted:
            demoted.append(agent)
        if demoted:
            self.demoted[agent[0]] = sorted(demoted)
        else:
            self.demoted.pop(agent[0], None)

    def effective(self, agent: AgentKey, intent: str, inherit: float) -> Sums:
        """The evidence on an agent's intent with the share of that of its older versions that it inherits."""
        versions = self.lineage.until(agent)
        return self._inherited(versions, [self.evidence.of(version, intent) for version in versions], inherit)

    def counted(self, agent: AgentKey, intent: str, inherit: float, cap: Cap) -> Counted:
        """The same as far as it counts, for everybody and for one caller alone."""
        versions = self.lineage.until(agent)
        found = [self.evidence.counted(version, intent, cap) for version in versions]
        if len(found) == 1:
            return found[0]
        n, s = sums = self._inherited(versions, [each.sums for each in found], inherit)
        beyond = []
        for caller in sorted({told.caller for each in found for told in each.beyond}):
            with_n, with_s = self._inherited(versions, [_with(each, caller) for each in found], inherit)
            beyond.append(Told(caller, with_n - n, with_s - s))
        return Counted(sums, tuple(beyond))

    def _inherited(self, versions: list[AgentKey], sums: list[Sums], inherit: float) -> Sums:
        """Sums of versions, oldest first, of which each inherits a share of what the ones before it have."""
        n = s = 0
        for version, (own_n, own_s) in zip(versions, sums, strict=True):
            if not n:
                n, s = own_n, own_s
                continue
            state = self.states.get(version)
            by_n, by_s = (1.0, 1.0) if state is None else (state.drift.inherited_n, state.drift.inherited_s)
            n, s = int(n * inherit * by_n), int(s * inherit * by_s)
            n, s = own_n + n, own_s + min(s, n)
        return n, s

    def intents_of(self, agent: AgentKey) -> list[str]:
        """The intents on which there is evidence of an agent or of its older versions."""
        return list(dict.fromkeys(i for version in self.lineage.until(agent) for i in self.evidence.intents(version)))

    def agent_row(self, agent: AgentKey, at_ms: int) -> LearnerRow:
        """What is known of an agent beside evidence, as a row."""
        return LearnerRow(*agent, self.state(agent).body(), at_ms)

    def namespace_row(self, namespace: str, at_ms: int) -> LearnerRow:
        """The exponents of a namespace, as a row."""
        exponents = self.exponents.get(namespace) or Exponents()
        return LearnerRow(namespace, "", "", encoded({"exponents": exponents.sums(), "n": exponents.n}), at_ms)

    def own_row(self, at_ms: int) -> LearnerRow:
        """The version, whether learning is frozen, and the rollbacks, as a row."""
        told = f'"version":{self.version},"frozen":{encoded(self.frozen)}'
        if self.rollbacks:
            told = f'{told},"rollbacks":{encoded(self.rollbacks)}'
        return LearnerRow("", "", "", f"{{{told}}}", at_ms)

    def is_rolled_back(self, version: int | None) -> bool:
        """Whether what was learned at a version went with a rollback; None is of a time before versions were noted."""
        return version is not None and any(restored < version <= at for restored, at in self.rollbacks)

    def states_rows(self, at_ms: int) -> list[LearnerRow]:
        """All rows but those of evidence, in order of their keys."""
        return [
            self.own_row(at_ms),
            *[self.namespace_row(namespace, at_ms) for namespace in sorted(self.exponents)],
            *[self.agent_row(agent, at_ms) for agent in sorted(self.states)],
        ]

    def load(self, weights: Iterable[WeightRow], states: Iterable[LearnerRow]) -> None:
        """Becomes what the rows say.

        Raises:
            ValueError: the body of a row is none that a memory wrote.
        """
        read = Memory(self._max_caller_cells)
        for weight in weights:
            read._add(weight)
        for row in states:
            read._set(row)
        self.version, self.frozen, self.rollbacks = read.version, read.frozen, read.rollbacks
        for agent in self.lineage.agents():
            read.lineage.learn_one(agent)
        self.evidence, self.lineage, self.states = read.evidence, read.lineage, read.states
        self.exponents, self.demoted = read.exponents, read.demoted

    def merge(self, rows: Iterable[WeightRow | LearnerRow], cap: Cap, at_ms: int) -> Rows:
        """Adds what another one has learned from other outcomes; what is to be written down."""
        changed: Rows = []
        for row in rows:
            if isinstance(row, WeightRow):
                self._add(row)
                changed.append(row)
            elif row.agent_id:
                agent = (row.namespace, row.agent_id, row.version)
                self.lineage.learn_one(agent)
                self.state(agent).merge(AgentState.of(parsed(row)))
                self.note_demoted(agent)
                changed.append(self.agent_row(agent, at_ms))
            elif row.namespace:
                body = parsed(row)
                self.exponents.setdefault(row.namespace, Exponents()).add(body["exponents"], n=body["n"])
                changed.append(self.namespace_row(row.namespace, at_ms))
            else:
                self.version = max(self.version, parsed(row)["version"])
        return [*changed, *self.evidence.fold(cap)]

    def source(self) -> Parts:
        """All of it, in no order, to be packed in a thread."""
        return self.evidence.copied(), self.states_rows(0)

    def restore(self, parts: Parts, at_ms: int) -> Rows:
        """Becomes what a snapshot says, but for version and freezing; the differences to what was.

        The version that follows is at least the snapshot's. The rollbacks are those that led to the snapshot, and this
        one: what an earlier rollback took back is in force again where the snapshot is older than that.

        Raises:
            ValueError: the body of a row is none that a memory wrote.
        """
        weights, states = parts
        read = Memory(0)
        for row in states:
            read._set(row)
        differences = self.evidence.differences(weights)
        for difference in differences:
            self._add(difference)
        agents, namespaces = {*self.states, *read.states}, {*self.exponents, *read.exponents}
        for agent in read.states:
            self.lineage.learn_one(agent)
        self.states, self.exponents, self.demoted = read.states, read.exponents, read.demoted
        self.rollbacks = read.rollbacks
        if read.version < self.version:
            self.rollbacks = [*read.rollbacks, (read.version, self.version)][-MAX_ROLLBACKS:]
        self.version = max(self.version, read.version - 1)
        changed: Rows = [*differences, *[self.namespace_row(name, at_ms) for name in sorted(namespaces)]]
        return changed + [self.agent_row(agent, at_ms) for agent in sorted(agents)]

    def _add(self, row: WeightRow) -> None:
        self.lineage.learn_one((row.namespace, row.agent_id, row.version))
        self.evidence.add(row)

    def _set(self, row: LearnerRow) -> None:
        try:
            body = parsed(row)
            if row.agent_id:
                agent = (row.namespace, row.agent_id, row.version)
                self.lineage.learn_one(agent)
                self.states[agent] = AgentState.of(body)
                self.note_demoted(agent)
            elif row.namespace:
                exponents = self.exponents[row.namespace] = Exponents()
                exponents.add(body["exponents"], n=body["n"])
            else:
                self.version, self.frozen = body["version"], body["frozen"]
                self.rollbacks = [(int(restored), int(at)) for restored, at in body.get("rollbacks", ())]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"the learner's row {row[:3]} cannot be read: {error!r}") from error


def _with(counted: Counted, caller: str) -> Sums:
    """What counts for one caller."""
    over_n, over_s = counted.beyond_of(caller)
    return counted.sums[0] + over_n, counted.sums[1] + over_s
