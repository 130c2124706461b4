"""Evidence: how many outcomes, and of what worth, each caller has told of each agent's intents, in whole numbers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from feedback.caller_cap import Cap
from feedback.cell import ZERO, Cell, Counted, Sums
from feedback.leader import Leader
from models.card import AgentKey
from models.events import EVIDENCE_UNIT, WeightRow

MAX_CALLER_CELLS = 200_000
"""Beyond so many sums by caller, those touched longest ago are folded into the caller ""."""


def split(intents: Sequence[tuple[str, float]], reward: float) -> list[tuple[str, int, int]]:
    """One outcome of evidence over the intents of a reading, in proportion to their confidences.

    Returns:
        (intent, n, s) in parts of EVIDENCE_UNIT; all n add up to one unit, 0 <= s <= n, intents without a part are
        left out.

    >>> split([("billing", 0.6), ("refund", 0.2)], 0.5)
    [('billing', 750000, 375000), ('refund', 250000, 125000)]
    """
    total = sum([confidence for _, confidence in intents])
    if total <= 0:
        intents, total = [(intent, 1.0) for intent, _ in intents], float(len(intents))
    parts = [int(EVIDENCE_UNIT * confidence / total) for _, confidence in intents]
    parts[-1] = EVIDENCE_UNIT - sum(parts[:-1])
    return [(intent, n, round(n * reward)) for (intent, _), n in zip(intents, parts, strict=True) if n > 0]


class Evidence:
    """Sums by agent, intent and caller; adding is exact in any order, so two of them merge by adding.

    All that was told is kept; how much of it counts for others is worked out when it is read (`counted`). The caller ""
    is nobody: what it has counts for everybody. Every change is returned as the differences that a store adds to what
    it has.

    Args:
        max_caller_cells: bounds memory (`MAX_CALLER_CELLS`).
    """

    def __init__(self, max_caller_cells: int = MAX_CALLER_CELLS) -> None:
        self._max_caller_cells = max_caller_cells
        self._agents: dict[AgentKey, dict[str, Cell]] = {}
        self._by_caller: dict[AgentKey, dict[str, int]] = {}
        self._n: dict[AgentKey, int] = {}
        self._leaders: dict[str, Leader] = {}
        self._touched: OrderedDict[tuple[AgentKey, str, str], None] = OrderedDict()
        # made as sums change, so that all of them can be copied at once
        self._rows: dict[tuple[AgentKey, str, str], WeightRow] = {}

    def of(self, agent: AgentKey, intent: str) -> Sums:
        """The sums of all that was told of an agent's intent."""
        cells = self._agents.get(agent)
        cell = None if cells is None else cells.get(intent)
        return ZERO if cell is None else (cell.n, cell.s)

    def counted(self, agent: AgentKey, intent: str, cap: Cap) -> Counted:
        """How much of what was told of an agent's intent counts, and for whom."""
        cells = self._agents.get(agent)
        cell = None if cells is None else cells.get(intent)
        if cell is None:
            return Counted(ZERO)
        return cell.counted(cap, self.leader(agent[0]))

    def leader(self, namespace: str) -> str | None:
        """Who has told more than two thirds of what is told in a namespace (`feedback.leader`).

        The only caller leads, and one whose traffic the fleet has in the main; None is nobody. Outcomes of a few
        agents, however many, make nobody a leader, and neither does one of each.
        """
        leader = self._leaders.get(namespace)
        return None if leader is None else leader.name

    def intents(self, agent: AgentKey) -> list[str]:
        """The intents on which there is evidence of an agent."""
        return list(self._agents.get(agent, ()))

    def total(self, agent: AgentKey) -> Sums:
        """The sums of all callers on all intents of an agent."""
        cells = self._agents.get(agent, {}).values()
        return sum([cell.n for cell in cells]), sum([cell.s for cell in cells])

    def is_contradicted(self, agent: AgentKey, intent: str, caller: str, cap: Cap) -> bool:
        """Whether what a caller tells of an agent's intent contradicts what counts of the others."""
        return caller in self.counted(agent, intent, cap).odd

    def share(self, agent: AgentKey, caller: str, cap: Cap) -> float:
        """The part of an agent's evidence that is one caller's, under the cap, 0..1; 1 where nobody else has told."""
        own, others = self._capped(agent, caller, cap)
        return own / (own + others) if others else 1.0

    def of_caller(self, agent: AgentKey, caller: str, cap: Cap) -> float:
        """Outcomes of one caller on all intents of an agent, as far as the cap admits."""
        return self._capped(agent, caller, cap)[0] / EVIDENCE_UNIT

    def _capped(self, agent: AgentKey, caller: str, cap: Cap) -> tuple[int, int]:
        """What of an agent's evidence is one caller's, as if the cap were on the agent, and what is all others'."""
        callers = self._by_caller.get(agent, {})
        own = callers.get(caller, 0)
        others = self._n.get(agent, 0) - own
        limit = cap.limit(others, 0)
        if limit is None or own <= limit or not others:
            return own, others
        limit = cap.limit(others, max([n for name, n in callers.items() if name != caller]))
        return own if limit is None else min(own, limit), others

    def differences(self, rows: Iterable[WeightRow]) -> list[WeightRow]:
        """What is to be added so that the sums become those of the rows, in order of their keys."""
        now, then = set(self._rows.values()), set(rows)
        found = {row[:5]: row[5:] for row in then - now}
        for row in now - then:
            n, s = found.get(row[:5], ZERO)
            found[row[:5]] = (n - row.n, s - row.s)
        return [WeightRow(*key, *found[key]) for key in sorted(found)]

    def add(self, row: WeightRow) -> None:
        """Adds a difference as it is."""
        self.grow((row.namespace, row.agent_id, row.version), (row.intent, row.n, row.s), row.caller)

    def grow(self, agent: AgentKey, part: tuple[str, int, int], caller: str) -> WeightRow:
        """Adds evidence of a caller; how its sums changed.

        Args:
            part: (intent, n, s), as `split` gives it.
        """
        intent, added_n, added_s = part
        cell = self._agents.setdefault(agent, {}).setdefault(intent, Cell())
        n, s = cell.callers.get(caller, ZERO)
        self._put(agent, intent, cell, caller, (n + added_n, s + added_s))
        return WeightRow(*agent, intent, caller, added_n, added_s)

    def take_back(self, agent: AgentKey, part: tuple[str, int, int], caller: str) -> list[WeightRow]:
        """Takes evidence back, as far as there is any: the caller's own, or that of folded ones where it has none."""
        intent, n, s = part
        cell = self._agents.get(agent, {}).get(intent)
        name = caller if cell is not None and caller in cell.callers else ""
        old = ZERO if cell is None else cell.callers.get(name, ZERO)
        if cell is None or n <= 0 or old[0] <= 0:
            return []
        kept_n = max(old[0] - n, 0)
        new = (kept_n, min(max(old[1] - s, 0), kept_n))
        self._put(agent, intent, cell, name, new)
        return [WeightRow(*agent, intent, name, new[0] - old[0], new[1] - old[1])]

    def scale(self, agent: AgentKey, by_n: float, by_s: float) -> list[WeightRow]:
        """All evidence on an agent shrinks: n by the factor `by_n`, s by `by_s`, both 0..1, by_s <= by_n."""
        rows = []
        for intent, cell in self._agents.get(agent, {}).items():
            for caller, (n, s) in list(cell.callers.items()):
                new_n = int(n * by_n)
                new_s = min(int(s * by_s), new_n)
                if (new_n, new_s) != (n, s):
                    self._put(agent, intent, cell, caller, (new_n, new_s))
                    rows.append(WeightRow(*agent, intent, caller, new_n - n, new_s - s))
        return rows

    def fold(self, cap: Cap) -> list[WeightRow]:
        """Folds what is over the bound into the caller "", least recently touched first, as far as it counts."""
        rows: list[WeightRow] = []
        while len(self._touched) > self._max_caller_cells:
            rows += self._fold(*next(iter(self._touched)), cap)
        return rows

    def fold_caller(self, caller: str, cap: Cap) -> list[WeightRow]:
        """Folds what one caller told into the caller "": its name is gone, and what counted for others stays."""
        return [row for key in list(self._touched) if key[2] == caller for row in self._fold(*key, cap)]

    def rows(self) -> Iterator[WeightRow]:
        """All sums, in order of their keys."""
        for agent in sorted(self._agents):
            cells = self._agents[agent]
            for intent in sorted(cells):
                for caller, (n, s) in sorted(cells[intent].callers.items()):
                    yield WeightRow(*agent, intent, caller, n, s)

    def copied(self) -> list[WeightRow]:
        """All sums, in no order: what `rows` gives, but fast."""
        return list(self._rows.values())

    def _fold(self, agent: AgentKey, intent: str, caller: str, cap: Cap) -> list[WeightRow]:
        """Makes a caller's sums the caller ""'s, as far as they count for others."""
        cell = self._agents[agent][intent]
        n, s = cell.callers[caller]
        over_n, over_s = self.counted(agent, intent, cap).beyond_of(caller)
        kept = (n - over_n, s - over_s)
        others_n, others_s = cell.callers.get("", ZERO)
        self._put(agent, intent, cell, "", (others_n + kept[0], others_s + kept[1]))
        self._put(agent, intent, cell, caller, ZERO)
        rows = [WeightRow(*agent, intent, caller, -n, -s)]
        return [*rows, WeightRow(*agent, intent, "", *kept)] if kept != ZERO else rows

    def _put(self, agent: AgentKey, intent: str, cell: Cell, caller: str, new: Sums) -> None:
        old = cell.put(caller, new)
        self._n[agent] = self._n.get(agent, 0) + new[0] - old[0]
        by_caller = self._by_caller.setdefault(agent, {})
        n_by_caller = by_caller.get(caller, 0) + new[0] - old[0]
        if n_by_caller:
            by_caller[caller] = n_by_caller
        else:
            by_caller.pop(caller, None)
        if new[0] != old[0]:
            self._leaders.setdefault(agent[0], Leader()).put(caller, old[0], new[0])
        key = (agent, intent, caller)
        if new == ZERO:
            self._touched.pop(key, None)
            self._rows.pop(key, None)
            return
        self._rows[key] = WeightRow(*agent, intent, caller, *new)
        if caller:
            self._touched[key] = None
            self._touched.move_to_end(key)
