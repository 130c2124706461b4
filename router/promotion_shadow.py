"""Shadow: a candidate reads what was decided already, beside the requests and without an effect."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import Any, NamedTuple

from intent.embed_pool import EmbedPool
from models.card import AgentKey
from models.decision import Action
from models.errors import RequestError
from models.events import ShadowRow
from models.ports import Clock
from models.reading import Certainty, Reading
from router.case import Case
from router.case_plan import asked_of
from router.eligibility import Eligible
from router.journal import Journal
from router.pick import Picker
from router.promotion import Lane, Lanes
from router.selection import Selection
from router.success import chosen_with
from router.wire import dumps

MAX_WAITING = 1024
READ_MS = 2000.0
_POLITE_S, _MAX_POLITE_S = 0.002, 0.1
"""Requests have the encoder first: a candidate looks again after that long, and goes ahead after the other at last."""


class _Waiting(NamedTuple):
    """A case that a candidate is to read."""

    lane: Lane
    case: Case


class Shadow:
    """Reads in the background; what it cannot keep up with is dropped and counted.

    Attributes:
        n_read: utterances that a candidate has read.
        n_dropped: those that came while too many waited.
        n_failed: those that it could not read in time, or not at all.
    """

    def __init__(
        self,
        lanes: Lanes,
        picker: Picker,
        pool: EmbedPool,
        journal: Journal,
        clock: Clock,
        *,
        max_waiting: int = MAX_WAITING,
        read_ms: float = READ_MS,
    ) -> None:
        """Wire it up.

        Args:
            lanes: say which candidate reads.
            picker: says whom its reading would lead to.
            pool: the encoder, which requests have first.
            journal: takes what was read.
            clock: the time.
            max_waiting: so many cases wait at most.
            read_ms: how long a candidate may take for one.
        """
        self.n_read = self.n_dropped = self.n_failed = 0
        self._lanes = lanes
        self._picker = picker
        self._pool = pool
        self._journal = journal
        self._clock = clock
        self._max_waiting = max_waiting
        self._read_ms = read_ms
        self._waiting: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()

    @property
    def n_waiting(self) -> int:
        """Cases that no candidate has read yet."""
        return len(self._waiting)

    def offer(self, case: Case) -> None:
        """Let the candidate, if there is one, read what was decided; takes no time of the request's."""
        lane = self._lanes.shadow
        if lane is None or not _is_wanted(case):
            return
        if len(self._waiting) >= self._max_waiting:
            self.n_dropped += 1
            return
        self._waiting.append(_Waiting(lane, case))
        self._arrived.set()

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            await self._arrived.wait()
            await self.read_next()

    async def read_next(self) -> None:
        """Read the case that has waited longest, if there is one."""
        if not self._waiting:
            self._arrived.clear()
            return
        await self._give_way()
        lane, case = self._waiting.popleft()
        if lane != self._lanes.shadow:
            return  # that candidate is no longer one
        try:
            reading = await self._read(lane, case)
            target = await self._target(lane, case, reading)
        except (RequestError, TimeoutError, ValueError):  # the last is of heads that cannot tell
            self.n_failed += 1
            return
        body = dumps(shadow_body(case, reading, target)).decode()
        assert lane.promotion_id is not None
        self._journal.put([ShadowRow(case.decision_id, lane.promotion_id, body, int(self._clock.now_ms()))])
        self.n_read += 1

    async def _give_way(self) -> None:
        waited_s = 0.0
        while self._pool.n_waiting and waited_s < _MAX_POLITE_S:
            await asyncio.sleep(_POLITE_S)
            waited_s += _POLITE_S
        await asyncio.sleep(0)

    async def _read(self, lane: Lane, case: Case) -> Reading:
        request, snapshot = case.request, case.snapshot
        return await lane.intake.read(
            request.utterance or "",
            snapshot.scope(case.namespaces),
            rules=snapshot.rules,
            namespace=request.namespace,
            thresholds=case.policy.confidence,
            wait_ms=self._read_ms,
        )

    async def _target(self, lane: Lane, case: Case, reading: Reading) -> Selection | None:
        """Whom the candidate's reading and heads would lead to; None where to nobody."""
        logged = case.reading
        assert logged is not None
        if leads_to_same(case, logged, reading):
            return _by_its_heads(lane, case, reading)
        if reading.certainty is not Certainty.SURE:
            return None
        other = replace(
            case,
            request=case.request.model_copy(update={"dry_run": True}),
            reading=reading,
            heads=lane.heads,
            eligible=Eligible(),
            selection=None,
            standings={},
            degraded=[],
            escalated=None,
            sticky_agent=None,
            may_refuse=False,
            over=None,
            wait_ms=None,
            lease=None,
            is_last_resort=False,
            explain=False,
        )
        decision = await self._picker.pick(other)
        return other.selection if decision.action is Action.INVOKE else None


def _by_its_heads(lane: Lane, case: Case, reading: Reading) -> Selection | None:
    """The selection as it was, but for what the candidate's success heads say in place of those that were asked."""
    selection = case.selection
    if selection is None or (lane.heads is None and case.heads is None):
        return selection
    asked = asked_of(replace(case, heads=lane.heads, reading=reading))
    return chosen_with(selection, case.eligible.entries, asked, case.seed)


def leads_to_same(case: Case, logged: Reading, reading: Reading) -> bool:
    """Whether a reading leads to the decision that the logged one led to.

    Args:
        case: as it was decided.
        logged: the reading that it was decided by, after a language model or the session had their say.
        reading: another one of the same utterance.
    """
    if reading.certainty is Certainty.SURE:
        return logged.certainty is Certainty.SURE and reading.intent == logged.intent
    if case.sticky_agent is not None:
        return True  # the session's bare answer, whoever reads it
    if reading.certainty is Certainty.AMBIGUOUS and case.escalated is not None:
        return True  # the language model would be asked the same
    return reading.certainty is logged.certainty and reading.intent == logged.intent


def shadow_body(case: Case, reading: Reading, selection: Selection | None) -> dict[str, Any]:
    """What is written down: both readings, and all agents that either could lead to.

    `options` are [namespace, agent, version, probability as logged, probability by the candidate]; `chosen` is the
    place of the one that was, -1 where nobody was. `declared` are the qualities on their cards for the intent that the
    candidate reads, 0 for agents that it would not lead to.

    Args:
        case: as it was decided.
        reading: the candidate's.
        selection: whom it would lead to; None where to nobody.
    """
    logged, target = _shares(case.selection), _shares(selection)
    declared = {} if selection is None else {each.agent: each.capability.quality for each in selection.entries}
    agents = [*logged, *(agent for agent in target if agent not in logged)]
    assert case.reading is not None
    return {
        "intent": reading.intent,
        "confidence": round(reading.confidence, 4),
        "certainty": reading.certainty,
        "source": reading.source,
        "logged_intent": case.reading.intent,
        "is_same": logged == target and case.reading.intent == reading.intent,
        "chosen": -1 if case.selection is None else agents.index(case.selection.chosen.agent),
        "options": [[*agent, logged.get(agent, 0.0), target.get(agent, 0.0)] for agent in agents],
        "declared": [declared.get(agent, 0.0) for agent in agents],
    }


def _shares(selection: Selection | None) -> dict[AgentKey, float]:
    if selection is None:
        return {}
    shares = selection.choice.propensities
    found = {
        entry.agent: shares[place] if place < len(shares) else 0.0 for place, entry in enumerate(selection.entries)
    }
    found[selection.chosen.agent] = selection.choice.propensity
    return found


def _is_wanted(case: Case) -> bool:
    request = case.request
    if request.utterance is None or request.intent is not None or case.reading is None or request.dry_run:
        return False
    return request.caller_choice is None and case.snapshot.policy.retention.utterances != "digest"
