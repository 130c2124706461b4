"""Frozen: what the parts of a decision look at, standing still as it was sealed.

The deciding itself is done by the same code as ever. Only what it asks of others (live state, the learner, the clock, a
language model, the degrade queue) is answered from the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from random import Random
from typing import Any

from intent.llm.escalate import SHIPPED, Escalation
from intent.llm.escalated import Escalated, EscalationStatus, Origin
from intent.llm.prompt import IntentText
from models.candidate import Stage
from models.card import AgentKey, Risk
from models.decision import QueueTicket
from models.policy import NamespacePolicy, Policy
from models.request import Preference
from router.advice import Advice
from router.degrade_queue import DegradeQueue
from router.learned import Learned
from router.learning import Learning
from router.live.admission import Admission
from router.live.asker import Asker
from router.live.live import Live
from router.live.open_decisions import OpenDecision
from router.live.poison import Poison
from router.live.sessions import SessionKey, Sessions
from router.replayed import DifferentError
from router.scorer import Blend
from router.snapshot import Entry
from router.standing import OverQuota, Standing
from router.success import Asked, heads_of

_N_SHARED = 3
"""Of the blend, the numbers at its end, which are the operator's and never learned."""


class FrozenClock:
    """Stands still.

    Attributes:
        at_ms: wall clock.
        elapsed_ms: steady clock, as if the request had come at 0.
    """

    def __init__(self, at_ms: float, elapsed_ms: float) -> None:
        self.at_ms = at_ms
        self.elapsed_ms = elapsed_ms

    def now_ms(self) -> float:
        """Wall clock."""
        return self.at_ms

    def monotonic_ms(self) -> float:
        """Steady clock."""
        return self.elapsed_ms


class FrozenAdmission(Admission):
    """Live figures as they were sealed; takes nothing."""

    def __init__(self, live: Mapping[str, Any], is_partial: bool) -> None:
        self._is_partial = is_partial
        self._timeouts_ms: Mapping[str, int] = live.get("timeouts_ms", {})
        self._left_out = {key: Stage(stage) for key, stage in live.get("left_out", ())}
        contenders = live.get("contenders", ())
        stages = live.get("stages") or [None] * len(contenders)
        self._known = {
            key: (health, load, share, latency_ms, None if stage is None else Stage(stage))
            for (key, _, _, health, load, share, latency_ms), stage in zip(contenders, stages, strict=True)
        }
        self._over: tuple[int, float, str] | None = live.get("over")
        self._wait_ms: float | None = live.get("retry_after_ms")
        self._probes = frozenset(live.get("probes", ()))
        self._is_leased = bool(live.get("leased"))

    def figures(self, entries: Sequence[Entry], policy: Policy) -> dict[int, Standing]:
        """Standings of all that the request may reach; of those not sealed, what their cards say."""
        return {entry.number: self._standing(entry) for entry in entries}

    def over_quota(self, asker: Asker, policy: Policy) -> OverQuota | None:
        """The quota of the caller alone that was used up."""
        return self._over_quota(policy, of_agent=False)

    def over_quota_of(self, entries: Iterable[Entry], asker: Asker, policy: Policy) -> OverQuota | None:
        """The quota of agents that was used up."""
        return self._over_quota(policy, of_agent=True)

    def look(
        self, entries: Sequence[Entry], asker: Asker, policy: Policy, figures: Mapping[int, Standing]
    ) -> list[Standing]:
        """What could take it, and what took out the others.

        Raises:
            DifferentError: an agent may be reached now of which nothing is sealed.
        """
        standings, wait_ms = [], self._wait_ms
        for entry in entries:
            key, standing = "/".join(entry.agent), figures[entry.number]
            stage = self._left_out.get(key)
            if key in self._known or stage is Stage.SHARE:
                standings.append(standing)  # a share that rises too fast is looked at later
                continue
            if stage is None and not self._is_partial:
                raise DifferentError("live", f"nothing was sealed of {key}, which may take this request")
            standings.append(standing._replace(stage=stage or Stage.CAPACITY, retry_after_ms=wait_ms))
            wait_ms = None
        return standings

    def would_probe(self, entry: Entry, asker: Asker) -> bool:
        """Whether it would have been a probe."""
        return "/".join(entry.agent) in self._probes

    def take(self, opened: OpenDecision, chosen: Entry, asker: Asker, policy: Policy, keep_ms: float) -> bool:
        """Whether a place was taken."""
        return self._is_leased

    def is_within_share(self, agent: AgentKey) -> bool:
        """Whether an agent's share might still rise."""
        return self._left_out.get("/".join(agent)) is not Stage.SHARE

    def _standing(self, entry: Entry) -> Standing:
        key, fresh = "/".join(entry.agent), entry.fresh
        known, timeout_ms = self._known.get(key), self._timeouts_ms.get(key, entry.card.timeout_ms)
        if known is None:
            return fresh if timeout_ms == fresh.timeout_ms else fresh._replace(timeout_ms=timeout_ms)
        health, load, share, latency_ms, stage = known
        return Standing(health, load, share, latency_ms, timeout_ms, stage)

    def _over_quota(self, policy: Policy, *, of_agent: bool) -> OverQuota | None:
        if self._over is None:
            return None
        place, retry_after_ms, told = self._over
        if place >= len(policy.quotas):
            raise DifferentError("live", f"the quota {place} that was used up is not in the policy")
        quota = policy.quotas[place]
        return OverQuota(quota, retry_after_ms, told) if quota.is_of_agent == of_agent else None


class FrozenLearning(Learning):
    """What the learner said, as it was sealed; learns nothing."""

    def __init__(self, inputs: Mapping[str, Any], admission: FrozenAdmission) -> None:
        self._inputs = inputs
        self._admission = admission

    @property
    def version(self) -> int:
        """Of the weights."""
        return int(self._inputs["generations"][3])

    def advise(
        self,
        entries: Sequence[Entry],
        intents: Sequence[tuple[str, float]],
        policy: Policy,
        holds: NamespacePolicy,
        preference: Preference,
        risk: Risk,
        teller: str,
        asked: Asked | None = None,
    ) -> Advice:
        """The posteriors that were sealed, with the policy's own parameters of the formula.

        Raises:
            DifferentError: these are not the contenders of which something was sealed, or not under that policy.
        """
        inputs = self._inputs
        keys = ["/".join(entry.agent) for entry in entries]
        sealed = [row[0] for row in inputs.get("contenders", ())]
        if keys != sealed:
            raise DifferentError("ranking", f"{', '.join(keys)} are to be ranked, {', '.join(sealed)} were")
        learned = None if inputs["learned"] is None else _learned(inputs["learned"])
        blend = Blend.of(holds, preference)
        if learned is not None and learned.mode != "observe" and policy.learning.exponents:
            blend = Blend(*inputs["blend"][:-_N_SHARED], *blend[-_N_SHARED:])
        if list(blend) != inputs["blend"]:
            raise DifferentError("weights", f"the blend is {list(blend)}, {inputs['blend']} was sealed")
        return Advice(learned, tuple(inputs.get("costs_usd", ())), blend)

    def decided(self, *_: Any, **__: Any) -> None:
        """Nothing is noted."""

    def within_share(self, entries: Sequence[Entry], max_rise: float, now_ms: float) -> frozenset[int]:
        """Numbers of the entries whose share might still rise."""
        return frozenset(entry.number for entry in entries if self._admission.is_within_share(entry.agent))


class FrozenEscalation(Escalation):
    """What the language model answered."""

    def __init__(self, told: Sequence[Any] | None) -> None:
        self.limits = SHIPPED
        self._told = told

    async def ask(
        self,
        text: str,
        intents: Sequence[IntentText],
        *,
        remaining_ms: float,
        budget_tokens: int | None = None,
    ) -> Escalated:
        """The answer that was sealed."""
        if self._told is None:
            return Escalated(None, EscalationStatus.DISABLED)
        intent, status, origin, n_tokens, detail = self._told
        return Escalated(intent, EscalationStatus(status), Origin(origin), n_tokens, detail)


class FrozenQueue(DegradeQueue):
    """The ticket that was given."""

    def __init__(self, ticket: Sequence[Any] | None) -> None:
        self._ticket = ticket

    async def put(self, **_: Any) -> QueueTicket | None:
        """The same one; None where the queue was full."""
        if self._ticket is None:
            return None
        ticket, url, expires_at = self._ticket
        return QueueTicket(ticket=ticket, url=url, expires_at=expires_at)


class _FrozenPoison(Poison):
    """Knows one request, and whether it is poison."""

    def __init__(self, is_poison: bool) -> None:
        self._is_poison = is_poison

    def __len__(self) -> int:
        return 1

    def is_poison(self, fingerprint: str, now_ms: float) -> bool:
        """What was sealed."""
        return self._is_poison


def frozen_live(live: Mapping[str, Any], session: SessionKey | None) -> Live:
    """Sessions and poison as they were sealed.

    Args:
        live: the section of the record.
        session: of the request; None where it named none.
    """
    sessions = Sessions()
    if session is not None:
        if "waiting" in live:
            (namespace, agent_id, version), intent = live["waiting"]
            sessions.awaits(session, (namespace, agent_id, version), intent, now_ms=0.0, ttl_ms=inf)
        for _ in range(live.get("n_failures", 0)):
            sessions.failed_again(session, now_ms=0.0, ttl_ms=inf)
    return Live(Random(0), poison=_FrozenPoison("is_poison" in live), sessions=sessions)


def _learned(sealed: Mapping[str, Any]) -> Learned:
    return Learned(
        mode=sealed["mode"],
        alpha=tuple(sealed["alpha"]),
        beta=tuple(sealed["beta"]),
        floor=sealed["floor"],
        temperature=sealed["temperature"],
        version=sealed["version"],
        heads=heads_of(sealed),
    )
