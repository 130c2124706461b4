"""Beyond: what counts for one caller alone, beside what counts for everybody, of all agents of a namespace."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.cell import Told

Floats = NDArray[np.float64]

MAX_PLACES = 2_000_000
"""Figures of callers that are kept laid out, 16 MB; beyond, those asked for longest ago are laid out anew."""


class Own(NamedTuple):
    """What counts for one caller alone: float64, in parts of an outcome; whole numbers, so that sums are exact.

    Attributes:
        n: of shape (cells + 1,), the last stays 0; so `s` of rewards.
        intent_n: of shape (intents,); so `intent_s`.
        agent_n: of shape (agents,); so `agent_s`.
    """

    n: Floats
    s: Floats
    intent_n: Floats
    intent_s: Floats
    agent_n: Floats
    agent_s: Floats

    def add(self, cell: int, intent: int, agent: int, n: int, s: int) -> None:
        """One cell has more, or less."""
        self.n[cell] += n
        self.s[cell] += s
        self.intent_n[intent] += n
        self.intent_s[intent] += s
        self.agent_n[agent] += n
        self.agent_s[agent] += s


class Beyond:
    """By cell and caller; what is asked for is laid out in arrays.

    Args:
        intents: the place of each cell's intent.
        agents: the place of each cell's agent.
        max_places: bounds memory (`MAX_PLACES`).
    """

    def __init__(self, intents: Sequence[int], agents: Sequence[int], max_places: int = MAX_PLACES) -> None:
        self._intents = intents
        self._agents = agents
        self._n_intents = max(intents, default=-1) + 1
        self._n_agents = max(agents, default=-1) + 1
        n_places = 2 * (len(intents) + 1 + self._n_intents + self._n_agents)
        self._max_laid_out = max(1, max_places // n_places)
        self._of_cell: dict[int, tuple[Told, ...]] = {}
        self._of_caller: dict[str, dict[int, Told]] = {}
        self._laid_out: OrderedDict[str, Own] = OrderedDict()

    def put(self, cell: int, told: tuple[Told, ...]) -> bool:
        """What is beyond in a cell is now this, at most one entry a caller; whether that is a change."""
        old = self._of_cell.get(cell, ())
        if old == told:
            return False
        for each in old:
            cells = self._of_caller[each.caller]
            del cells[cell]
            self._change(each.caller, cell, -each.n, -each.s)
            if not cells:
                del self._of_caller[each.caller]
                self._laid_out.pop(each.caller, None)
        for each in told:
            self._of_caller.setdefault(each.caller, {})[cell] = each
            self._change(each.caller, cell, each.n, each.s)
        if told:
            self._of_cell[cell] = told
        else:
            del self._of_cell[cell]
        return True

    def of(self, caller: str) -> Own | None:
        """What counts for this caller alone; None where nothing does."""
        cells = self._of_caller.get(caller)
        if cells is None:
            return None
        own = self._laid_out.get(caller)
        if own is None:
            own = self._laid_out[caller] = self._lay_out(cells)
            if len(self._laid_out) > self._max_laid_out:
                self._laid_out.popitem(last=False)
        self._laid_out.move_to_end(caller)
        return own

    def _lay_out(self, cells: dict[int, Told]) -> Own:
        sizes = (len(self._intents) + 1, self._n_intents, self._n_agents)
        own = Own(*[np.zeros(size) for size in sizes for _ in range(2)])
        for cell, told in cells.items():
            own.add(cell, self._intents[cell], self._agents[cell], told.n, told.s)
        return own

    def _change(self, caller: str, cell: int, n: int, s: int) -> None:
        own = self._laid_out.get(caller)
        if own is not None:
            own.add(cell, self._intents[cell], self._agents[cell], n, s)
