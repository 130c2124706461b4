"""Case: what belongs to one request while it is being decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from intent.llm.escalated import Escalated
from models.candidate import Stage
from models.deadline import Deadline
from models.entity import Found
from models.policy import NamespacePolicy
from models.reading import Reading
from models.request import RouteRequest
from router.eligibility import Eligible
from router.permit import Grants
from router.selection import Selection
from router.snapshot import Entry, Snapshot


@dataclass(slots=True)
class Case:
    """A request on its way; every stage adds what it found.

    Attributes:
        started_ms: steady clock at the arrival.
        now_ms: wall clock at the arrival.
        checked_ms: wall clock when the deadline was last looked at.
        seed: of all draws of this decision.
        explain: whether all candidates are listed.
        escalated: how asking a language model ended; None where nobody thought of it.
        hides_intent: whether the answer keeps quiet about the intent that was read (`hide_denied`).
    """

    request: RouteRequest
    grants: Grants
    snapshot: Snapshot
    policy: NamespacePolicy
    namespaces: tuple[str, ...]
    deadline: Deadline
    decision_id: str
    trace_id: str
    span_id: str
    started_ms: float
    now_ms: float
    checked_ms: float
    seed: int
    explain: bool
    classifier_generation: int = 0
    escalated: Escalated | None = None
    found: list[Found] = field(default_factory=list)
    reading: Reading | None = None
    hides_intent: bool = False
    eligible: Eligible = field(default_factory=Eligible)
    selection: Selection | None = None
    degraded: list[str] = field(default_factory=list)

    @property
    def remaining_ms(self) -> float:
        """What an agent's call may take."""
        return self.deadline.remaining_ms(self.checked_ms)

    @property
    def n_llm_tokens(self) -> int:
        """Spent on a language model."""
        return 0 if self.escalated is None else self.escalated.n_tokens

    @property
    def late(self) -> list[Entry]:
        """Capabilities that only the deadline took out."""
        return [entry for entry, stage in self.eligible.excluded if stage is Stage.DEADLINE]
