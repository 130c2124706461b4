"""Posteriors: what declared quality and evidence together say of every agent of a namespace, per intent.

Two-way hierarchical Beta-Bernoulli model (the project's own, "Learning" in its documentation): an agent's quality on
an intent is the level of that intent plus what the agent is better or worse throughout, and then its own outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum

import numpy as np

from feedback.beyond import Beyond, Own
from feedback.cell import Counted, Sums
from feedback.plans import Floats, Layout, Places, Plan, Posterior, mixed
from models.card import AgentKey
from models.events import EVIDENCE_UNIT
from models.learning_policy import LearningPolicy

LEAST = 0.02
"""The prior mean of an agent's intent lies within [LEAST, 1 - LEAST]."""

MAX_PLANNED = 250_000
"""Places of figures that are remembered for questions that come again, in each namespace."""


class Fleet:
    """The agents of a namespace as they are declared, with the evidence on what they serve.

    Sums over agents are whole numbers, and those over intents run in the order of their names: so posteriors are the
    same to the last bit in whatever order evidence came.

    What counts for one caller alone is added where posteriors are asked for in its name.

    Args:
        declared: by agent and intent, the quality declared, 0..1; an agent without intents is not known.
        intent_prior: outcomes for which the quality declared for an intent counts.
    """

    def __init__(self, declared: Mapping[AgentKey, Mapping[str, float]], intent_prior: float) -> None:
        agents = sorted(agent for agent, intents in declared.items() if intents)
        names = sorted({intent for agent in agents for intent in declared[agent]})
        self.intent_prior = intent_prior
        self.n_changes = 0
        self._agent_of = {agent: place for place, agent in enumerate(agents)}
        self._intent_of = {intent: place for place, intent in enumerate(names)}
        cells = [(agent, intent) for agent in agents for intent in sorted(declared[agent])]
        self._cell_of = {cell: place for place, cell in enumerate(cells)}
        n_cells, n_intents = len(cells), len(names)
        self._col = np.array([self._intent_of[intent] for _, intent in cells] + [n_intents], dtype=np.intp)
        self._starts = np.zeros(len(agents) + 1, dtype=np.intp)
        np.cumsum([len(declared[agent]) for agent in agents], out=self._starts[1:])
        self._cols = self._col.tolist()
        ends = self._starts.tolist()
        self._spans = list(pairwise(ends))
        self._n = np.zeros(n_cells + 1)
        self._ns = [0.0] * n_cells
        self._s = np.zeros(n_cells + 1)
        self._sums: list[Sums] = [(0, 0)] * n_cells
        self._agent_sums: list[Sums] = [(0, 0)] * len(agents)
        self._intent_sums: list[Sums] = [(0, 0)] * n_intents
        self._intent_n = np.zeros(n_intents)
        self._intent_s = np.zeros(n_intents)
        self._all_intents = np.arange(n_intents)
        self._agent_n = np.zeros(len(agents))
        self._agent_s = np.zeros(len(agents))
        self._beyond = Beyond(self._cols[:-1], [self._agent_of[agent] for agent, _ in cells])
        self._plans: dict[tuple[AgentKey, ...], Plan] = {}
        self._n_planned = 0
        self._declare(declared, cells, agents, names)

    def _declare(
        self,
        declared: Mapping[AgentKey, Mapping[str, float]],
        cells: list[tuple[AgentKey, str]],
        agents: list[AgentKey],
        names: list[str],
    ) -> None:
        figures = [declared[agent][intent] for agent, intent in cells]
        mean = fsum(figures) / len(figures) if figures else 0.5
        by_intent: list[list[float]] = [[] for _ in names]
        for (_, intent), figure in zip(cells, figures, strict=True):
            by_intent[self._intent_of[intent]].append(figure)
        of_intent = [fsum(of) / len(of) for of in by_intent]
        of_agent = [fsum(declared[agent].values()) / len(declared[agent]) for agent in agents]
        self._levels_declared = of_intent
        self._declared_intent = np.array(of_intent)
        self._levels = [*of_intent, 0.0]
        self._mu = np.array(self._levels)
        self._gaps = [own - mean for own in of_agent]
        self._gap = np.array(self._gaps)
        self._inters = [
            (figure - of_agent[self._agent_of[agent]]) - (of_intent[self._intent_of[intent]] - mean)
            for (agent, intent), figure in zip(cells, figures, strict=True)
        ]
        self._inter = np.array([*self._inters, 0.0])

    def __contains__(self, agent: AgentKey) -> bool:
        return agent in self._agent_of

    def cells(self) -> list[tuple[AgentKey, str]]:
        """Each agent with each intent that it serves."""
        return list(self._cell_of)

    def put(self, agent: AgentKey, intent: str, counted: Counted) -> None:
        """The evidence on an agent's intent is now this; one that is not served is no part of the model."""
        cell = self._cell_of.get((agent, intent))
        if cell is None:
            return
        sums = counted.sums
        if self._beyond.put(cell, counted.beyond):
            self.n_changes += 1
        if self._sums[cell] == sums:
            return
        (n, s), (old_n, old_s) = sums, self._sums[cell]
        dn, ds = n - old_n, s - old_s
        self._sums[cell] = sums
        self._n[cell] = self._ns[cell] = n / EVIDENCE_UNIT
        self._s[cell] = s / EVIDENCE_UNIT
        place = self._agent_of[agent]
        n, s = self._agent_sums[place]
        self._agent_sums[place] = (n + dn, s + ds)
        self._agent_n[place] = (n + dn) / EVIDENCE_UNIT
        self._agent_s[place] = (s + ds) / EVIDENCE_UNIT
        place = self._intent_of[intent]
        n, s = self._intent_sums[place]
        self._intent_sums[place] = (n + dn, s + ds)
        of_intent = (n + dn) / EVIDENCE_UNIT, (s + ds) / EVIDENCE_UNIT
        self._intent_n[place], self._intent_s[place] = of_intent
        declared = self._levels_declared[place]
        level = (self.intent_prior * declared + of_intent[1]) / (self.intent_prior + of_intent[0])
        self._mu[place] = self._levels[place] = level
        self.n_changes += 1

    def posterior(
        self,
        agents: tuple[AgentKey, ...],
        intents: Sequence[tuple[str, float]],
        policy: LearningPolicy,
        caller: str = "",
    ) -> Posterior:
        """Beta distributions of the agents' quality on a reading.

        With intents i of confidences p_i, quality is sum_i p_i * q_ia / sum_i p_i over those that the agent serves: how
        well it does whichever of them is meant, and nothing is added for serving more of them. Where all agents serve
        all intents that is in proportion to sum_i p_i * q_ia. Its Beta has the mean and the variance of that weighted
        mean of independent ones. An agent that is not known, or serves none of the intents, has the mean 0.5 and the
        weight of a declaration.

        Args:
            agents: of this namespace.
            intents: at least one, with its confidence, 0..1, the one that is routed by first.
            policy: its priors.
            caller: in whose name is asked: what counts for it alone is added.
        """
        plan = self._plans.get(agents) or self._plan(agents)
        own = self._beyond.of(caller)
        key = (self.n_changes, None if own is None else caller, tuple(intents), policy.prior, policy.agent_prior)
        if plan.answer is not None and plan.answer[0] == key:
            return plan.answer[1]
        names = tuple([intent for intent, _ in intents])
        layout = plan.layouts.get(names) or self._layout(plan, names)
        mu = self._mu if own is None else np.append(self._mu_with(own, self._all_intents), 0.0)
        residual = self._residual(plan, policy.agent_prior, mu, own)
        mean = np.minimum(np.maximum(residual + layout.inter + mu[layout.levels], LEAST), 1 - LEAST)
        n, s = self._n[layout.cells], self._s[layout.cells]
        if own is not None:
            n, s = n + own.n[layout.cells] / EVIDENCE_UNIT, s + own.s[layout.cells] / EVIDENCE_UNIT
        alphas, betas = policy.prior * mean + s, policy.prior * (1 - mean) + (n - s)
        if len(names) == 1:
            alpha, beta = alphas[0], betas[0]
        else:
            alpha, beta = mixed(alphas, betas, layout.served, [confidence for _, confidence in intents])
        if layout.idle is not None:
            alpha, beta = (np.where(layout.idle, policy.prior / 2, each) for each in (alpha, beta))
        found = Posterior(tuple(alpha.tolist()), tuple(beta.tolist()))
        if len(plan.known) < len(agents):
            of_known = dict(zip(plan.known, zip(*found, strict=True), strict=True))
            both = [of_known.get(agent, (policy.prior / 2, policy.prior / 2)) for agent in agents]
            found = Posterior(tuple([a for a, _ in both]), tuple([b for _, b in both]))
        plan.answer = (key, found)
        return found

    def expected(
        self, agent: AgentKey, intents: Sequence[tuple[str, float]], policy: LearningPolicy, caller: str = ""
    ) -> float | None:
        """The mean reward that a caller is to expect of an agent, over those of the intents that it serves.

        None where it is not known or serves none of them. It runs for every outcome, mostly in plain floats: for one
        agent that is several times faster than arrays, and the same but for the last bits.
        """
        place = self._agent_of.get(agent)
        served = [(self._cell_of.get((agent, intent)), confidence) for intent, confidence in intents]
        known = [(cell, confidence) for cell, confidence in served if cell is not None]
        if place is None or not known:
            return None
        start, stop = self._spans[place]
        own = self._beyond.of(caller)
        n_agent, s_agent = self._agent_sums[place]
        levels, ns = [self._levels[col] for col in self._cols[start:stop]], self._ns[start:stop]
        if own is not None:
            levels = self._mu_with(own, self._col[start:stop]).tolist()
            ns = [n + more / EVIDENCE_UNIT for n, more in zip(ns, own.n[start:stop].tolist(), strict=True)]
            n_agent, s_agent = n_agent + int(own.agent_n[place]), s_agent + int(own.agent_s[place])
        by_level = sum([n * level for n, level in zip(ns, levels, strict=True) if n])
        residual = policy.agent_prior * self._gaps[place] + s_agent / EVIDENCE_UNIT - by_level
        residual /= policy.agent_prior + n_agent / EVIDENCE_UNIT
        total = sum([confidence for _, confidence in known])
        mean = 0.0
        for cell, confidence in known:
            prior = min(max(levels[cell - start] + residual + self._inters[cell], LEAST), 1 - LEAST)
            s = self._sums[cell][1] + (0.0 if own is None else float(own.s[cell]))
            of_cell = (policy.prior * prior + s / EVIDENCE_UNIT) / (policy.prior + ns[cell - start])
            mean += of_cell * (confidence / total if total > 0 else 1 / len(known))
        return mean

    def _mu_with(self, own: Own, intents: Places) -> Floats:
        """float64 (n,): the levels of some intents, as one caller is to see them."""
        n, s = own.intent_n[intents] / EVIDENCE_UNIT, own.intent_s[intents] / EVIDENCE_UNIT
        n, s = n + self._intent_n[intents], s + self._intent_s[intents]
        levels: Floats = (self.intent_prior * self._declared_intent[intents] + s) / (self.intent_prior + n)
        return levels

    def _residual(self, plan: Plan, agent_prior: float, mu: Floats, own: Own | None) -> Floats:
        """float64 (agents,): by how much each is better than the levels of the intents."""
        if not plan.known:
            return np.zeros(0)
        n, agent_n, agent_s = self._n[plan.cells], self._agent_n[plan.agents], self._agent_s[plan.agents]
        if own is not None:
            n = n + own.n[plan.cells] / EVIDENCE_UNIT
            agent_n = agent_n + own.agent_n[plan.agents] / EVIDENCE_UNIT
            agent_s = agent_s + own.agent_s[plan.agents] / EVIDENCE_UNIT
        by_level = np.add.reduceat(n * mu[plan.cols], plan.starts)
        better: Floats = (agent_prior * self._gap[plan.agents] + (agent_s - by_level)) / (agent_prior + agent_n)
        return better

    def _plan(self, agents: tuple[AgentKey, ...]) -> Plan:
        plan = Plan(tuple([agent for agent in agents if agent in self._agent_of]))
        plan.agents = np.array([self._agent_of[agent] for agent in plan.known], dtype=np.intp)
        spans = [self._spans[place] for place in plan.agents.tolist()]
        plan.cells = np.array([cell for span in spans for cell in range(*span)], dtype=np.intp)
        plan.cols = self._col[plan.cells]
        plan.starts = np.cumsum([0, *[stop - start for start, stop in spans]], dtype=np.intp)[:-1]
        self._remember(2 * len(plan.cells) + 8 * len(agents))
        self._plans[agents] = plan
        return plan

    def _layout(self, plan: Plan, names: tuple[str, ...]) -> Layout:
        end, n_intents, cell_of = len(self._cell_of), len(self._intent_of), self._cell_of
        cells = np.array([[cell_of.get((agent, name), end) for agent in plan.known] for name in names], dtype=np.intp)
        levels = np.array([[self._intent_of.get(name, n_intents)] for name in names], dtype=np.intp)
        served = cells != end
        idle = ~served.any(axis=0)
        layout = Layout(levels, cells, self._inter[cells], served.astype(np.float64), idle if idle.any() else None)
        self._remember(4 * cells.size + 16)
        plan.layouts[names] = layout
        return layout

    def _remember(self, n_places: int) -> None:
        """Makes room for so many more places: all is forgotten where there would be too many."""
        self._n_planned += n_places
        if self._n_planned > MAX_PLANNED:
            self._plans.clear()
            self._n_planned = n_places
