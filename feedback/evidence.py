"""Evidence: how many outcomes, and of what worth, each caller has told of each agent's intents, in whole numbers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from feedback.caller_cap import fit, limit_of
from models.card import AgentKey
from models.events import EVIDENCE_UNIT, WeightRow

MAX_CALLER_CELLS = 200_000
"""Beyond so many sums by caller, those touched longest ago are folded into the caller ""."""

Sums = tuple[int, int]
"""(n, s): outcomes and their rewards, in parts of EVIDENCE_UNIT; 0 <= s <= n."""

ZERO: Sums = (0, 0)


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


class _Cell:
    """An agent's intent: the sums over all callers, and those of each."""

    __slots__ = ("callers", "n", "s")

    def __init__(self) -> None:
        self.n = 0
        self.s = 0
        self.callers: dict[str, Sums] = {}


class Evidence:
    """Sums by agent, intent and caller; adding is exact in any order, so two of them merge by adding.

    Every change is returned as the differences that a store adds to what it has.

    Args:
        max_caller_cells: bounds memory (`MAX_CALLER_CELLS`).
    """

    def __init__(self, max_caller_cells: int = MAX_CALLER_CELLS) -> None:
        self._max_caller_cells = max_caller_cells
        self._agents: dict[AgentKey, dict[str, _Cell]] = {}
        self._by_caller: dict[AgentKey, dict[str, int]] = {}
        self._n: dict[AgentKey, int] = {}
        self._touched: OrderedDict[tuple[AgentKey, str, str], None] = OrderedDict()
        # made as sums change, so that all of them can be copied at once
        self._rows: dict[tuple[AgentKey, str, str], WeightRow] = {}

    def __contains__(self, agent: AgentKey) -> bool:
        return agent in self._agents

    def agents(self) -> list[AgentKey]:
        """All agents with evidence."""
        return list(self._agents)

    def of(self, agent: AgentKey, intent: str) -> Sums:
        """The sums of all callers on an agent's intent."""
        cells = self._agents.get(agent)
        cell = None if cells is None else cells.get(intent)
        return ZERO if cell is None else (cell.n, cell.s)

    def intents(self, agent: AgentKey) -> list[str]:
        """The intents on which there is evidence of an agent."""
        return list(self._agents.get(agent, ()))

    def total(self, agent: AgentKey) -> Sums:
        """The sums of all callers on all intents of an agent."""
        cells = self._agents.get(agent, {}).values()
        return sum([cell.n for cell in cells]), sum([cell.s for cell in cells])

    def share(self, agent: AgentKey, caller: str) -> float:
        """The part of an agent's evidence that is one caller's, 0..1; 0 where there is none."""
        callers = self._by_caller.get(agent)
        own = 0 if callers is None else callers.get(caller, 0)
        return own / self._n[agent] if own else 0.0

    def of_caller(self, agent: AgentKey, caller: str) -> float:
        """Outcomes of one caller on all intents of an agent."""
        callers = self._by_caller.get(agent)
        return 0.0 if callers is None else callers.get(caller, 0) / EVIDENCE_UNIT

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
        agent = (row.namespace, row.agent_id, row.version)
        cell = self._agents.setdefault(agent, {}).setdefault(row.intent, _Cell())
        n, s = cell.callers.get(row.caller, ZERO)
        self._put(agent, row.intent, cell, row.caller, (n + row.n, s + row.s))

    def grow(
        self, agent: AgentKey, part: tuple[str, int, int], caller: str, share: float, free: int
    ) -> tuple[WeightRow, Sums]:
        """Adds evidence of a caller as far as the cap on it admits.

        Args:
            part: (intent, n, s), as `split` gives it.
            share: the cap, 0..1, as `limit_of` has it; so `free`.

        Returns:
            How the caller's sums changed, as its older evidence may have made room; and what of the part counts.
        """
        intent, new_n, new_s = part
        cell = self._agents.setdefault(agent, {}).setdefault(intent, _Cell())
        old = cell.callers.get(caller, ZERO)
        fitted = fit(old, (new_n, new_s), limit_of(old[0], cell.n - old[0], share, free))
        n, s = fitted.kept_n + fitted.added_n, fitted.kept_s + fitted.added_s
        self._put(agent, intent, cell, caller, (n, s))
        return WeightRow(*agent, intent, caller, n - old[0], s - old[1]), (fitted.added_n, fitted.added_s)

    def take_back(self, agent: AgentKey, part: tuple[str, int, int], caller: str) -> list[WeightRow]:
        """Takes evidence back, as far as there is any: the caller's own first, then that of folded callers."""
        intent, n, s = part
        cell = self._agents.get(agent, {}).get(intent)
        rows = []
        for name in (caller, "") if caller else ("",):
            old = ZERO if cell is None else cell.callers.get(name, ZERO)
            if cell is None or n <= 0 or old[0] <= 0:
                continue
            kept_n = max(old[0] - n, 0)
            new = (kept_n, min(max(old[1] - s, 0), kept_n))
            self._put(agent, intent, cell, name, new)
            rows.append(WeightRow(*agent, intent, name, new[0] - old[0], new[1] - old[1]))
            n, s = n - (old[0] - new[0]), s - (old[1] - new[1])
        return rows

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

    def fold(self) -> list[WeightRow]:
        """Folds what is over the bound into the caller "", least recently touched first."""
        rows: list[WeightRow] = []
        while len(self._touched) > self._max_caller_cells:
            agent, intent, caller = next(iter(self._touched))
            rows += self._fold(agent, intent, caller)
        return rows

    def fold_caller(self, caller: str) -> list[WeightRow]:
        """Folds all that one caller told into the caller "", so that its name is gone and its evidence stays."""
        return [
            row
            for agent, intent, name in list(self._touched)
            if name == caller
            for row in self._fold(agent, intent, name)
        ]

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

    def _fold(self, agent: AgentKey, intent: str, caller: str) -> list[WeightRow]:
        cell = self._agents[agent][intent]
        n, s = cell.callers[caller]
        others_n, others_s = cell.callers.get("", ZERO)
        self._put(agent, intent, cell, caller, ZERO)
        self._put(agent, intent, cell, "", (others_n + n, others_s + s))
        return [WeightRow(*agent, intent, caller, -n, -s), WeightRow(*agent, intent, "", n, s)]

    def _put(self, agent: AgentKey, intent: str, cell: _Cell, caller: str, new: Sums) -> None:
        old_n, old_s = cell.callers.get(caller, ZERO)
        cell.n += new[0] - old_n
        cell.s += new[1] - old_s
        self._n[agent] = self._n.get(agent, 0) + new[0] - old_n
        by_caller = self._by_caller.setdefault(agent, {})
        n_by_caller = by_caller.get(caller, 0) + new[0] - old_n
        if n_by_caller:
            by_caller[caller] = n_by_caller
        else:
            by_caller.pop(caller, None)
        key = (agent, intent, caller)
        if new == ZERO:
            cell.callers.pop(caller, None)
            self._touched.pop(key, None)
            self._rows.pop(key, None)
            return
        cell.callers[caller] = new
        self._rows[key] = WeightRow(*agent, intent, caller, *new)
        if caller:
            self._touched[key] = None
            self._touched.move_to_end(key)
