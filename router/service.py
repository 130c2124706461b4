"""RouteService: the way of a request, from the envelope to the recorded decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from models.deadline import Deadline
from models.decision import RouteDecision
from models.ports import Clock
from models.reading import Reading
from models.request import RouteRequest
from router import answers
from router.case import Case
from router.case_plan import opened_by_caller
from router.decide import Decider
from router.eligibility import Eligible
from router.goals import Goals
from router.live.open_decisions import OpenDecisions
from router.permit import Grants, namespaces_of
from router.recorder import Recorder
from router.registry import Registry


@dataclass(frozen=True, slots=True)
class Ids:
    """Where ids and seeds come from; passed in, so that tests own them.

    Attributes:
        new: a fresh id, 32 characters; its last 16 differ from those of any other too.
        seed: a fresh seed, 0 <= seed < 2^63.
    """

    new: Callable[[], str]
    seed: Callable[[], int]


class RouteService:
    """Answers who should get a request, or why nobody should."""

    def __init__(
        self,
        registry: Registry,
        decider: Decider,
        goals: Goals,
        recorder: Recorder,
        opened: OpenDecisions,
        clock: Clock,
        ids: Ids,
        *,
        offer: Callable[[Case], None] | None = None,
    ) -> None:
        self._registry = registry
        self._decider = decider
        self._goals = goals
        self._recorder = recorder
        self._opened = opened
        self._clock = clock
        self._ids = ids
        self._offer = offer

    async def route(
        self,
        request: RouteRequest,
        grants: Grants,
        *,
        explain: bool = False,
        deadline_ms: float | None = None,
        may_refuse: bool = True,
    ) -> tuple[RouteDecision, bytes]:
        """Decide, and hand the decision to the journal.

        Args:
            request: the envelope.
            grants: what its presenter may do.
            explain: list all candidates.
            deadline_ms: an instant (epoch) that came beside the envelope; the earlier one holds.
            may_refuse: False makes a used-up quota of the caller's an answer, whatever the quota says.

        Returns:
            The decision and its JSON text.

        Raises:
            ForbiddenError: the key does not cover the request's namespace or its caller's id.
            InvalidPayloadError: the payload fits no permitted capability's input schema.
            OverloadedError: the encoder's or the journal's queue is full.
            QuotaExceededError: the caller is over a quota that answers so.
        """
        grants.check(request)
        await self._recorder.room()
        case = self._case(request, grants, explain, deadline_ms, may_refuse)
        decision = await self._decide(case)
        if request.caller_choice is not None and not request.dry_run:
            self._shadow(case)
        body = self._recorder.record(case, decision)
        if self._offer is not None:
            self._offer(case)
        return decision, body

    def _shadow(self, case: Case) -> None:
        """Expect outcomes of the agent that the caller keeps to."""
        opened = opened_by_caller(case)
        if opened is not None:
            self._opened.add(opened)

    def _case(
        self, request: RouteRequest, grants: Grants, explain: bool, deadline_ms: float | None, may_refuse: bool
    ) -> Case:
        snapshot = self._registry.snapshot
        policy = snapshot.policy.of(request.namespace)
        now_ms = self._clock.now_ms()
        given = (request.deadline_ms, deadline_ms)
        budget = request.response_timeout_ms
        if budget is None and given == (None, None):
            budget = policy.default_budget_ms
        return Case(
            request=request,
            grants=grants,
            snapshot=snapshot,
            policy=policy,
            namespaces=namespaces_of(request, snapshot.policy, grants),
            deadline=Deadline.earliest(
                now_ms, budgets_ms=(budget,), instants_ms=given, reserve_ms=policy.deadline_reserve_ms
            ),
            decision_id=self._ids.new(),
            trace_id=request.trace_id or self._ids.new(),
            span_id=self._ids.new()[16:],
            started_ms=self._clock.monotonic_ms(),
            now_ms=now_ms,
            checked_ms=now_ms,
            seed=self._ids.seed(),
            explain=explain,
            may_refuse=may_refuse and request.caller_choice is None,
            given_ms=min((instant for instant in given if instant is not None), default=None),
        )

    async def _decide(self, case: Case) -> RouteDecision:
        if await self._goal_changed(case):
            return answers.goal_mismatch(case, self._decider.elapsed_ms(case))
        decision = await self._decider.decide(case)
        others = case.reading.parts if case.reading is not None else ()
        if not others:
            return decision
        return decision.model_copy(
            update={"parts": [await self._part(case, reading, n) for n, reading in enumerate(others)]}
        )

    async def _part(self, case: Case, reading: Reading, place: int) -> RouteDecision:
        """The decision of another part of the sentence; the payload was for the first."""
        request = case.request.model_copy(update={"utterance": reading.text, "payload": None, "target_agent": None})
        part = replace(
            case,
            request=request,
            decision_id=self._ids.new(),
            span_id=self._ids.new()[16:],
            seed=self._ids.seed(),
            reading=reading,
            eligible=Eligible(),
            selection=None,
            degraded=[],
            escalated=None,
            may_refuse=False,
            sticky_agent=None,
            standings={},
            over=None,
            wait_ms=None,
            lease=None,
            is_last_resort=False,
            facts=case.facts.of_part(case.decision_id, place),
        )
        decision = await self._decider.decide_read(part)
        self._recorder.record(part, decision)
        return decision

    async def _goal_changed(self, case: Case) -> bool:
        request = case.request
        if request.task_id is None or request.global_goal_hash is None:
            return False
        first = await self._goals.claim(
            request.namespace, request.task_id, request.global_goal_hash, keep=not request.dry_run
        )
        if first != request.global_goal_hash:
            case.facts.goal = first
            return True
        if not request.dry_run:
            self._recorder.record_goal(request.namespace, request.task_id, first, case.now_ms)
        return False
