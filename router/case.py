"""Case: what belongs to one request while it is being decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from feedback.success_slates import Slates
from intent.intake import Intake
from intent.llm.escalated import Escalated
from models.candidate import NOT_NOW, Stage
from models.card import AgentKey
from models.deadline import Deadline
from models.decision import Lease
from models.entity import Found
from models.policy import NamespacePolicy
from models.reading import Reading
from models.request import RouteRequest
from router.eligibility import Eligible
from router.facts import Facts
from router.live.asker import Asker
from router.live.sessions import SessionKey
from router.permit import Grants
from router.selection import Selection
from router.snapshot import Entry, Snapshot
from router.standing import OverQuota, Standing


@dataclass(slots=True)
class Case:
    """A request on its way; every stage adds what it found.

    Attributes:
        started_ms: steady clock at the arrival.
        now_ms: wall clock at the arrival.
        checked_ms: wall clock when the deadline was last looked at.
        seed: of all draws of this decision.
        explain: whether all candidates are listed.
        intake: what reads its utterance; None before that is known.
        heads: success heads that go with the classifiers of `intake`; None where there are none.
        promotion_id: whose classifiers those of `intake` are; None where no promotion brought them.
        escalated: how asking a language model ended; None where nobody thought of it.
        hides_intent: whether the answer keeps quiet about the intent that was read (`hide_denied`).
        asker: in whose name it comes.
        given_ms: the deadline that the caller named as an instant (epoch); None where it named none.
        may_refuse: whether the caller's own limits may end in an error; in a batch they are answers.
        sticky_agent: the agent that asked this session for the answer that this request is.
        standings: live figures of the eligible, by their numbers.
        over: the caller's quota that is used up.
        wait_ms: after how long another try may be worth while; None where that is not known.
        lease: the place that was taken at the target.
        facts: what else decided it, for the record.
        shadow: the agent that the caller calls instead, where that may serve the request; None in all other cases.
        is_last_resort: whether the target was chosen although nobody should be sent there.
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
    given_ms: float | None = None
    may_refuse: bool = True
    classifier_generation: int = 0
    weights_version: int = 0
    intake: Intake | None = None
    heads: Slates | None = None
    promotion_id: int | None = None
    escalated: Escalated | None = None
    found: list[Found] = field(default_factory=list)
    reading: Reading | None = None
    hides_intent: bool = False
    eligible: Eligible = field(default_factory=Eligible)
    selection: Selection | None = None
    sticky_agent: str | None = None
    standings: Mapping[int, Standing] = field(default_factory=dict)
    over: OverQuota | None = None
    wait_ms: float | None = None
    lease: Lease | None = None
    is_last_resort: bool = False
    shadow: AgentKey | None = None
    degraded: list[str] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    asker: Asker = field(init=False)

    @property
    def remaining_ms(self) -> float:
        """What an agent's call may take."""
        return self.deadline.remaining_ms(self.checked_ms)

    def __post_init__(self) -> None:
        """Tell in whose name it comes."""
        request = self.request
        self.asker = Asker(
            request.caller.agent_id or self.grants.caller,
            request.namespace,
            is_retry=request.retry_of is not None or (request.attempt or 1) > 1,
            n_tokens=request.budget_tokens or 0,
        )

    @property
    def n_llm_tokens(self) -> int:
        """Spent on a language model."""
        return 0 if self.escalated is None else self.escalated.n_tokens

    @property
    def session(self) -> SessionKey | None:
        """The session that it belongs to; None where it names none."""
        request = self.request
        session_id = request.caller.session_id
        return None if session_id is None else SessionKey(self.asker.caller, request.namespace, session_id)

    @property
    def late(self) -> list[Entry]:
        """Capabilities that only the deadline took out."""
        return [entry for entry, stage in self.eligible.excluded if stage is Stage.DEADLINE]

    @property
    def unable(self) -> list[Entry]:
        """Capabilities that would fit, but cannot take it now or in time."""
        return [entry for entry, stage in self.eligible.excluded if stage in NOT_NOW]
