"""Settlement: outcomes are joined to their decisions, written down, and applied to live state."""

from __future__ import annotations

from collections.abc import Sequence

from feedback.attribution import Call, Charge, Party, charge
from models.card import Price
from models.errors import ConflictError, FieldProblem, InvalidRequestError, NotFoundError, RequestError
from models.events import HOUR_MS, OutcomeRow, Row, UsageRow
from models.key import ADMIN
from models.outcome import NOBODY, Effect, Outcome, OutcomeStatus, Receipt
from models.ports import Clock
from router.journal import Journal
from router.learning import Learning
from router.live.change_events import step_of
from router.live.effects import Effects
from router.live.live import Live
from router.live.open_decisions import OpenDecision, Told, of_record
from router.permit import Grants
from router.registry import Registry
from router.reviews import Corrections
from router.spans import Step, span_row

STORED_MS = 5000.0
"""The longest that posting outcomes may take; after that the caller posts again, which changes nothing."""

_SUCCEEDED = frozenset({OutcomeStatus.SUCCEEDED, OutcomeStatus.LOW_CONFIDENCE})


class Settlement:
    """Takes outcomes; an acknowledged one is stored.

    The same outcome again changes nothing. Another one for the same attempt replaces the earlier one in every sum and
    window; a state that has changed since (a breaker that opened) stays until its own rule moves it.
    """

    def __init__(
        self,
        registry: Registry,
        live: Live,
        learning: Learning,
        corrections: Corrections,
        journal: Journal,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._live = live
        self._learning = learning
        self._corrections = corrections
        self._effects = Effects(live)
        self._journal = journal
        self._clock = clock

    async def settle(self, outcomes: Sequence[Outcome], grants: Grants) -> list[Receipt | RequestError]:
        """Take outcomes, in the order given; one that cannot be taken has its error in place of a receipt.

        Raises:
            OverloadedError: too much waits to be written.
            StoreError: the store does not take them; some may be stored, and posting all again is harmless.
        """
        await self._journal.room(STORED_MS)
        receipts: list[Receipt | RequestError] = []
        for outcome in outcomes:
            try:
                opened = self._live.opened.get(outcome.decision_id) or await self._recall(outcome.decision_id)
                receipts.append(self._take(opened, outcome, grants))
            except RequestError as error:
                receipts.append(error)
        await self._journal.stored(STORED_MS)
        return receipts

    async def _recall(self, decision_id: str) -> OpenDecision | None:
        """A decision that is no longer in memory, or of an earlier run."""
        row = await self._journal.decision(decision_id)
        if row is None:
            return None
        told = await self._journal.outcomes(decision_id)
        known = self._live.opened.get(decision_id)  # two outcomes may have asked for it at once
        if known is not None:
            return known
        opened = of_record(row, told, self._registry.snapshot.card_of)
        if opened is not None:
            self._live.opened.add(opened)
        return opened

    def _take(self, opened: OpenDecision | None, outcome: Outcome, grants: Grants) -> Receipt:
        if opened is None or not (grants.caller == opened.key or grants.has(ADMIN)):
            raise NotFoundError(f"there is no decision {outcome.decision_id!r} that named an agent to this caller")
        if outcome.attempt > len(opened.steps):
            message = f"is {outcome.attempt}, the plan of this decision has {len(opened.steps)} step(s)"
            raise InvalidRequestError(f"attempt: {message}", [FieldProblem("attempt", message)])
        before = opened.told.get(outcome.attempt)
        if before is not None and _is_same(before.outcome, outcome):
            return _receipt(opened, outcome, Effect.DUPLICATE)
        if before is not None and outcome.idempotency_key == before.outcome.idempotency_key is not None:
            self._watch(opened, is_first=False, is_odd=True)
            raise ConflictError(f"the key {outcome.idempotency_key!r} came with another outcome of this attempt before")
        return self._settle(opened, outcome, before)

    def _settle(self, opened: OpenDecision, outcome: Outcome, before: Told | None) -> Receipt:
        now_ms, wall_ms = self._clock.monotonic_ms(), int(self._clock.now_ms())
        step = opened.steps[outcome.attempt - 1]
        effects, snapshot = self._effects, self._registry.snapshot
        learned: list[Row] = []
        if before is not None:
            effects.take_back(opened, outcome.attempt, now_ms, snapshot)
            learned += self._learning.take_back(before.learnt, snapshot.policy, wall_ms)
        is_poison = effects.fails(opened, outcome, step.agent, now_ms, snapshot)
        charged = charge(outcome, Call(step.slice_ms, step.timeout_ms, step.depends_on, is_poison))
        effects.record(opened, outcome, charged, now_ms, snapshot)
        effect = Effect.ACCEPTED if before is None else Effect.AMENDED
        if before is None and not effects.end(opened, outcome, now_ms, snapshot) and opened.is_leased:
            effect = Effect.LATE
        at_ms = wall_ms if before is None else before.at_ms
        is_early = outcome.attempt > 1 and outcome.attempt - 1 not in opened.told
        is_odd = is_early or (before is not None and _contradicts(before.outcome, outcome))
        learned += self._watch(opened, is_first=not opened.told, is_odd=is_odd)
        told = self._learning.take(opened, outcome, charged, snapshot.policy, wall_ms, is_amended=before is not None)
        learned += told.rows
        opened.told[outcome.attempt] = Told(outcome, charged.party.value, at_ms, told.learnt)
        earlier = None if before is None else before.outcome
        learned += self._corrections.rows(opened, outcome, earlier, snapshot.policy, wall_ms)
        self._journal.put([*self._rows(opened, outcome, charged, before, wall_ms), *learned])
        return _receipt(opened, outcome, effect)

    def _watch(self, opened: OpenDecision, *, is_first: bool, is_odd: bool) -> Sequence[Row]:
        at_ms = int(self._clock.now_ms())
        policy = self._registry.snapshot.policy
        # beside a caller's own choice nothing was counted as decided
        is_first = is_first and not opened.is_shadow
        return self._learning.watched(opened.teller, policy, at_ms, is_first=is_first, is_odd=is_odd)

    def _recharged(self, opened: OpenDecision, attempt: int, wall_ms: int) -> list[Row]:
        """Rows of an earlier outcome that is charged to another than before: it is learned from, or no longer."""
        told, policy = opened.told[attempt], self._registry.snapshot.policy
        if told.charged == Party.AGENT:
            charged = Charge(Party.AGENT, True)
            learned = self._learning.take(opened, told.outcome, charged, policy, wall_ms, is_amended=True)
            rows, learnt = learned.rows, learned.learnt
        else:
            rows, learnt = self._learning.take_back(told.learnt, policy, wall_ms), None
        opened.told[attempt] = told._replace(learnt=learnt)
        # the same outcome once more: of an attempt's rows the newest says who is charged
        return [_outcome_row(opened, told.outcome, told.charged, wall_ms, learnt), *rows]

    def _rows(
        self, opened: OpenDecision, outcome: Outcome, charged: Charge, before: Told | None, wall_ms: int
    ) -> list[Row]:
        at_ms = wall_ms if before is None else before.at_ms
        party = NOBODY if opened.is_foreign else charged.party.value
        told = {"status": outcome.status, "attempt": outcome.attempt, "charged_to": party}
        steps: list[Step] = [("invoke", outcome.status.value, told, outcome.tokens or 0, outcome.latency_ms or 0.0)]
        steps += [step_of(change) for change in self._live.told_changes()]
        rows: list[Row] = [
            span_row(opened.trace_id, opened.span_id, None, "router", steps, wall_ms, opened.key),
            _outcome_row(opened, outcome, charged.party.value, wall_ms, opened.told[outcome.attempt].learnt),
            _usage(opened, outcome, at_ms, 1),
        ]
        if before is not None:
            rows.append(_usage(opened, before.outcome, at_ms, -1))
        for other, attempt in self._live.told_recharged():
            rows += self._recharged(other, attempt, wall_ms)
        return rows


def _is_same(one: Outcome, other: Outcome) -> bool:
    """The same content; a key that only one of them has makes no difference."""
    keys = {one.idempotency_key, other.idempotency_key} - {None}
    return len(keys) < 2 and one.model_copy(update={"idempotency_key": other.idempotency_key}) == other


def _contradicts(one: Outcome, other: Outcome) -> bool:
    """A success becomes a failure, or the other way round; a judge who adds a quality contradicts nobody."""
    return (one.status in _SUCCEEDED) != (other.status in _SUCCEEDED)


def _receipt(opened: OpenDecision, outcome: Outcome, effect: Effect) -> Receipt:
    told = opened.told[outcome.attempt]
    return Receipt.of(
        decision_id=outcome.decision_id,
        attempt=outcome.attempt,
        effect=effect,
        charged_to=NOBODY if opened.is_foreign else told.charged,
        learned=told.learnt is not None,
    )


def _outcome_row(opened: OpenDecision, outcome: Outcome, charged: str, wall_ms: int, learnt: str | None) -> OutcomeRow:
    return OutcomeRow(
        opened.decision_id,
        outcome.attempt,
        outcome.idempotency_key,
        opened.caller,
        outcome.model_dump_json(by_alias=True, exclude_unset=True),
        charged,
        wall_ms,
        learnt,
    )


def _usage(opened: OpenDecision, outcome: Outcome, at_ms: int, sign: int) -> UsageRow:
    step = opened.steps[outcome.attempt - 1]
    cost_usd = outcome.cost_usd
    if cost_usd is None:
        cost_usd = _listed_usd(step.price, outcome.tokens or 0)
    return UsageRow(
        hour=at_ms // HOUR_MS,
        caller=opened.caller,
        team=opened.team,
        namespace=opened.namespace,
        agent_id=step.agent[1],
        n_decisions=0,
        n_calls=sign,
        n_succeeded=sign if outcome.status in _SUCCEEDED else 0,
        tokens=sign * (outcome.tokens or 0),
        cost_usd=sign * cost_usd,
        n_latencies=0 if outcome.latency_ms is None else sign,
        latency_ms=sign * (outcome.latency_ms or 0.0),
    )


def _listed_usd(price: Price | None, tokens: int) -> float:
    """What the call costs by the price that its card had, where the outcome says nothing of it."""
    return 0.0 if price is None else price.per_call_usd + price.per_1k_tokens_usd * tokens / 1000
