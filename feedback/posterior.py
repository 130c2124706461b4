"""Posteriors: what declared quality and evidence together say of every agent of a namespace, per intent.

Two-way hierarchical Beta-Bernoulli model (the project's own, "Learning" in its documentation): an agent's quality on
an intent is the level of that intent plus what the agent is better or worse throughout, and then its own outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.evidence import Sums
from models.card import AgentKey
from models.events import EVIDENCE_UNIT
from models.learning_policy import LearningPolicy

LEAST = 0.02
"""The prior mean of an agent's intent lies within [LEAST, 1 - LEAST]."""

MAX_PLANS = 1024
"""So many different questions are remembered with where their answers lie."""

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Posterior(NamedTuple):
    """Beta distributions of quality, in the order in which agents were asked for.

    Attributes:
        alpha: without the temperature: draws take alpha / temperature^2; so `beta`.
    """

    alpha: tuple[float, ...]
    beta: tuple[float, ...]


class _Plan:
    """Where the answer to a question lies: the agents asked for, and the intents of the reading."""

    __slots__ = (
        "agents",
        "answer",
        "asked",
        "cells",
        "cols",
        "intents",
        "inter",
        "main",
        "n_asked",
        "served",
        "starts",
    )

    def __init__(self, n_asked: int, asked: list[int]) -> None:
        self.n_asked = n_asked
        self.asked = asked  # which of the agents asked for are known and serve any of the intents
        self.agents: Places
        self.cells: Places  # all cells of those agents, one agent after the other
        self.cols: Places  # the intent of each
        self.starts: Places  # where each agent's cells begin
        self.main: Places  # the cells asked for (agents, intents); past the end where an agent does not serve it
        self.intents: Places
        self.inter: Floats  # what was declared for those beyond agent and intent
        self.served: Floats
        self.answer: tuple[object, Posterior] | None = None


class Fleet:
    """The agents of a namespace as they are declared, with the evidence on what they serve.

    Sums over agents are whole numbers, and those over intents run in the order of their names: so posteriors are the
    same to the last bit in whatever order evidence came.

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
        self._spans = list(zip(ends[:-1], ends[1:], strict=True))
        self._n = np.zeros(n_cells + 1)
        self._ns = [0.0] * n_cells
        self._s = np.zeros(n_cells + 1)
        self._sums: list[Sums] = [(0, 0)] * n_cells
        self._agent_sums: list[Sums] = [(0, 0)] * len(agents)
        self._intent_sums: list[Sums] = [(0, 0)] * n_intents
        self._agent_n = np.zeros(len(agents))
        self._agent_s = np.zeros(len(agents))
        self._plans: dict[tuple[tuple[AgentKey, ...], tuple[str, ...]], _Plan] = {}
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
        self._declared_intent = of_intent
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

    def put(self, agent: AgentKey, intent: str, sums: Sums) -> None:
        """The evidence on an agent's intent is now this; one that is not served is no part of the model."""
        cell = self._cell_of.get((agent, intent))
        if cell is None or self._sums[cell] == sums:
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
        self._mu[place] = self._levels[place] = (
            self.intent_prior * self._declared_intent[place] + (s + ds) / EVIDENCE_UNIT
        ) / (self.intent_prior + (n + dn) / EVIDENCE_UNIT)
        self.n_changes += 1

    def posterior(
        self, agents: tuple[AgentKey, ...], intents: Sequence[tuple[str, float]], policy: LearningPolicy
    ) -> Posterior:
        """Beta distributions of the agents' quality on a reading.

        With intents i of confidences p_i, the first one routed by: merit is to be sum_i p_i * q_ia and similarity is
        p_1 already, so quality is sum_i (p_i / p_1) * q_ia over the intents that the agent serves, at most 1. Its Beta
        has the mean and the variance of that sum of independent ones. An agent that is not known, or serves none of the
        intents, has the mean 0.5 and the weight of a declaration.

        Args:
            agents: of this namespace.
            intents: at least one, with its confidence, 0..1, the one that is routed by first.
            policy: its priors.
        """
        names, confidences = zip(*intents, strict=True)
        plan = self._plan(agents, names)
        key = (self.n_changes, confidences, policy.prior, policy.agent_prior)
        if plan.answer is not None and plan.answer[0] == key:
            return plan.answer[1]
        if plan.asked:
            alpha, beta = self._betas(plan, policy.prior, policy.agent_prior)
            if len(names) == 1:
                found = Posterior(tuple(alpha[:, 0].tolist()), tuple(beta[:, 0].tolist()))
            else:
                found = _mixed(alpha, beta, plan.served, confidences)
        else:
            found = Posterior((), ())
        if len(plan.asked) < plan.n_asked:
            half = policy.prior / 2
            betas = dict(zip(plan.asked, zip(*found, strict=True), strict=True))
            both = [betas.get(place, (half, half)) for place in range(plan.n_asked)]
            found = Posterior(tuple(a for a, _ in both), tuple(b for _, b in both))
        plan.answer = (key, found)
        return found

    def expected(self, agent: AgentKey, intents: Sequence[tuple[str, float]], policy: LearningPolicy) -> float | None:
        """The mean reward that is to be expected of an agent, over those of the intents that it serves.

        None where it is not known or serves none of them. It runs for every outcome, in plain floats: for one agent
        that is several times faster than arrays, and the same but for the last bits.
        """
        place = self._agent_of.get(agent)
        served = [(self._cell_of.get((agent, intent)), confidence) for intent, confidence in intents]
        known = [(cell, confidence) for cell, confidence in served if cell is not None]
        if place is None or not known:
            return None
        start, stop = self._spans[place]
        levels, cols = self._levels, self._cols
        by_level = sum([n * levels[col] for n, col in zip(self._ns[start:stop], cols[start:stop], strict=True) if n])
        n_agent, s_agent = self._agent_sums[place]
        residual = policy.agent_prior * self._gaps[place] + s_agent / EVIDENCE_UNIT - by_level
        residual /= policy.agent_prior + n_agent / EVIDENCE_UNIT
        total = sum([confidence for _, confidence in known])
        mean = 0.0
        for cell, confidence in known:
            prior = min(max(levels[cols[cell]] + residual + self._inters[cell], LEAST), 1 - LEAST)
            own = (policy.prior * prior + self._sums[cell][1] / EVIDENCE_UNIT) / (policy.prior + self._ns[cell])
            mean += own * (confidence / total if total > 0 else 1 / len(known))
        return mean

    def _betas(self, plan: _Plan, prior: float, agent_prior: float) -> tuple[Floats, Floats]:
        """alpha and beta, float64 (agents, intents)."""
        n, mu = self._n, self._mu
        by_level = np.add.reduceat(n[plan.cells] * mu[plan.cols], plan.starts)
        residual = (agent_prior * self._gap[plan.agents] + (self._agent_s[plan.agents] - by_level)) / (
            agent_prior + self._agent_n[plan.agents]
        )
        mean = mu[plan.intents] + residual[:, None] + plan.inter
        mean = np.minimum(np.maximum(mean, LEAST), 1 - LEAST)
        own_n, own_s = n[plan.main], self._s[plan.main]
        return prior * mean + own_s, prior * (1 - mean) + (own_n - own_s)

    def _plan(self, agents: tuple[AgentKey, ...], names: tuple[str, ...]) -> _Plan:
        plan = self._plans.get((agents, names))
        if plan is not None:
            return plan
        end = len(self._cell_of)
        asked = []
        for place, agent in enumerate(agents):
            if agent in self._agent_of and any((agent, intent) in self._cell_of for intent in names):
                asked.append(place)
        plan = _Plan(len(agents), asked)
        known = [agents[place] for place in asked]
        plan.agents = np.array([self._agent_of[agent] for agent in known], dtype=np.intp)
        spans = [(self._starts[place], self._starts[place + 1]) for place in plan.agents]
        plan.cells = np.concatenate([np.arange(*span) for span in spans] or [np.zeros(0, dtype=np.intp)])
        plan.cols = self._col[plan.cells]
        plan.starts = np.cumsum([0, *[stop - start for start, stop in spans]], dtype=np.intp)[:-1]
        main = [[self._cell_of.get((agent, intent), end) for intent in names] for agent in known]
        plan.main = np.array(main, dtype=np.intp).reshape(len(known), len(names))
        plan.intents = np.array([self._intent_of.get(intent, len(self._intent_of)) for intent in names], dtype=np.intp)
        plan.inter = self._inter[plan.main]
        plan.served = (plan.main != end).astype(np.float64)
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[agents, names] = plan
        return plan


def _mixed(alpha: Floats, beta: Floats, served: Floats, confidences: tuple[float, ...]) -> Posterior:
    """One Beta for each agent, with mean and variance of the weighted sum of those of its intents."""
    first = confidences[0]
    weights = served * (np.asarray(confidences) / first if first > 0 else np.ones(len(confidences)))
    total = alpha + beta
    means = alpha / total
    mean = np.minimum((weights * means).sum(axis=1), 1 - 1e-3)
    # an agent that serves only intents of confidence 0 is left with a mean above 0, as a Beta must have one
    mean = np.maximum(mean, 1e-3)
    variance = (weights * weights * means * (1 - means) / (total + 1)).sum(axis=1)
    weight = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, 1.0)
    return Posterior(tuple((mean * weight).tolist()), tuple(((1 - mean) * weight).tolist()))
