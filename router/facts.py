"""Facts: what decided a case besides request, cards and policy, noted meanwhile so that it can be recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from intent.heads import Heads
from models.card import AgentKey
from models.reading import Reading
from router.live.sessions import Waiting
from router.standing import Standing


@dataclass(slots=True)
class Facts:
    """Noted by whoever finds them; nothing that decides looks here.

    Attributes:
        read: what intake gave, before anything was left out of it or chosen from it; None where nothing was read.
        heads: the classifiers in force when it began to be read.
        heads_changed: whether other classifiers came into force while it was read.
        part_of: the decision of the whole sentence, where this one is of a further part of it, and the part's place.
        goal: the goal hash first seen under the task, where the request came with another.
        waiting: the agent whose question this request answers.
        n_failures: of agents in the session, where there were so many that people take over.
        is_poison: whether the request had failed wherever it went.
        figures: live figures of all that the request may reach, by the numbers of their entries.
        probes: agents to which a call would be a breaker's probe.
        costs_usd: observed cost of the contenders' calls; empty where none is known.
    """

    read: Reading | None = None
    heads: Heads | None = None
    heads_changed: bool = False
    part_of: tuple[str, int] | None = None
    goal: str | None = None
    waiting: Waiting | None = None
    n_failures: int = 0
    is_poison: bool = False
    figures: Mapping[int, Standing] = field(default_factory=dict)
    probes: list[AgentKey] = field(default_factory=list)
    costs_usd: Sequence[float | None] = ()

    def of_part(self, decision_id: str, place: int) -> Facts:
        """Those with which a further part of the sentence begins.

        Args:
            decision_id: of the whole sentence.
            place: of the part among the further ones, from 0.
        """
        return Facts(heads=self.heads, heads_changed=self.heads_changed, part_of=(decision_id, place))
