"""Learning: what the learner says of the contenders of a case, and what it takes from outcomes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import orjson

from feedback.attribution import Charge
from feedback.learner import Learner
from feedback.lessons import Learnt, Lesson
from feedback.outcome_watch import OutcomeWatch
from feedback.reward import reward
from feedback.share_limit import ShareLimit
from models.card import AgentKey, Risk
from models.events import LearnerRow, Row, WeightRow
from models.outcome import Outcome
from models.policy import NamespacePolicy, Policy
from models.request import Preference
from router.advice import Advice, advice_of, explored_by, with_exponents
from router.live.open_decisions import OpenDecision
from router.scorer import Blend
from router.snapshot import Entry, Snapshot
from router.success import Asked, with_heads

log = logging.getLogger(__name__)

T = TypeVar("T")

_BY_ITSELF = "by itself: "
"""Begins the reason where nobody froze the weights but the watch over outcomes."""


class Told(NamedTuple):
    """What was learned from an outcome.

    Attributes:
        learnt: JSON text with which it can be taken back; None where that is nothing.
        rows: to be written down.
    """

    learnt: str | None
    rows: Sequence[Row]


_NOTHING = Told(None, ())


class Learning:
    """The learner with the policy that it works by, and its brakes.

    A learner that fails fails no decision and no outcome: the declared quality stands in, and the log says so.

    Attributes:
        learner: what is learned.
        watch: says when outcomes look wrong.
        shares: how fast an agent's share may rise.
        raised_floor: gives the floor of exploration in place of the policy's, while a candidate model needs evidence.
        n_failures: of the learner, since the start.
        n_learned: outcomes that were learned from, since the start.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.watch = OutcomeWatch()
        self.shares = ShareLimit()
        self.raised_floor: Callable[[float], float] = _as_it_is
        self.n_failures = self.n_learned = 0

    @property
    def version(self) -> int:
        """Of the weights; 0 where the learner cannot tell."""
        return self._safely(lambda: self.learner.version, 0)

    def follow(self, snapshot: Snapshot) -> None:
        """Take what the cards declare."""
        declared: dict[AgentKey, dict[str, float]] = {}
        for entry in snapshot.entries:
            if entry.flaw is None and entry.card.enabled:
                declared.setdefault(entry.agent, {})[entry.capability.intent] = entry.capability.quality
        self._safely(lambda: self.learner.declare(declared), None)

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
        """What is known of the entries.

        Args:
            entries: the contenders, at least one.
            intents: (intent, confidence) of the reading, the one routed by first.
            policy: the whole one.
            holds: that of the request's namespace.
            preference: of the request: `best` explores nothing.
            risk: of the intent.
            teller: in whose name outcomes will be told: what it has told counts in full.
            asked: what success heads are to be asked; None asks none.
        """
        blend = Blend.of(holds, preference)
        explored = explored_by(policy, preference, risk, self.raised_floor)
        advice = self._safely(
            lambda: advice_of(self.learner, entries, intents, policy.learning, explored, blend, teller),
            Advice(None, (), blend),
        )
        return advice if asked is None else self._safely(lambda: with_heads(advice, entries, asked), advice)

    def decided(self, chosen: Entry, caller: str | None, policy: Policy, now_ms: float) -> None:
        """Note a decision.

        Args:
            chosen: the capability that got it.
            caller: who will tell of it; None where that is not to be expected.
            policy: the whole one.
            now_ms: of the steady clock.
        """
        self._safely(lambda: self.learner.routed(chosen.agent[0]), None)
        if caller is not None:
            self.watch.decided(caller, policy.learning.freeze)
        if policy.learning.max_rise is not None:
            self.shares.note(_group_of(chosen), chosen.agent, now_ms)

    def within_share(self, entries: Sequence[Entry], max_rise: float, now_ms: float) -> frozenset[int]:
        """Numbers of the entries whose share of their intent may rise; of all where that is so of none.

        An agent that is demoted falls as fast as it may: then the others may rise as fast.
        """
        everybody = frozenset(entry.number for entry in entries)

        def allowed() -> frozenset[int]:
            if any(self.learner.is_demoted(entry.agent) for entry in entries):
                return everybody
            return frozenset(
                entry.number for entry in entries if self.shares.allows(_group_of(entry), entry.agent, now_ms, max_rise)
            )

        return self._safely(allowed, everybody) or everybody

    def take(
        self,
        opened: OpenDecision,
        outcome: Outcome,
        charged: Charge,
        policy: Policy,
        at_ms: int,
        *,
        is_amended: bool = False,
    ) -> Told:
        """Learn from an outcome.

        Args:
            opened: the decision.
            outcome: of one of its attempts.
            charged: to whom; only what an agent is charged with is learned from.
            policy: the whole one.
            at_ms: epoch.
            is_amended: whether the call had an outcome before: what has seen it once is not to see it again.
        """
        rules = policy.learning
        step = opened.steps[outcome.attempt - 1]
        worth = reward(outcome, charged, step.slice_ms, rules.reward)
        if worth is None or not opened.intents or not self.watch.trusts(opened.teller):
            return _NOTHING
        if not self._safely(lambda: self.learner.knows(step.agent), False):
            return _NOTHING  # an agent that nobody ever registered: a caller may choose any name
        lesson = Lesson(
            agent=step.agent,
            intents=opened.intents,
            reward=worth,
            caller=opened.teller,
            # what the formula saw was of the first attempt's agent
            features=opened.features if outcome.attempt == 1 else None,
            cost_usd=outcome.cost_usd,
            at_ms=at_ms,
            base=Blend.of(policy.of(opened.namespace), "auto")[:4],
            is_amended=is_amended,
        )
        self.n_learned += 1
        return self._safely(lambda: _told(self.learner.learn_one(lesson, rules)), _NOTHING)

    def take_back(self, learnt: str | None, policy: Policy, at_ms: int) -> Sequence[Row]:
        """Undo what was learned from an outcome that is replaced, or charged to another; rows to be written down."""
        if learnt is None:
            return ()
        contribution = orjson.loads(learnt)
        return self._safely(lambda: self.learner.unlearn_one(contribution, policy.learning, at_ms).rows, ())

    def due(self, policy: Policy, at_ms: int) -> Sequence[Row]:
        """What changes as time goes by: the evidence on demoted agents decays with the requests that were routed."""
        return self._safely(lambda: self.learner.due(policy.learning, at_ms).rows, ())

    def exponents(self, namespace: str, policy: Policy) -> dict[str, float]:
        """Those of the merit in a namespace, as they hold now."""
        base = Blend.of(policy.of(namespace), "auto")
        now = with_exponents(self.learner, namespace, base, policy.learning)
        return {name: getattr(now, name) for name in ("similarity", "quality", "health", "load")}

    def watched(self, caller: str, policy: Policy, at_ms: int, *, is_first: bool, is_odd: bool) -> Sequence[Row]:
        """Note an outcome; learning stops, or goes on, where outcomes look wrong, or right again.

        Args:
            caller: in whose name it came.
            policy: the whole one.
            at_ms: epoch.
            is_first: whether it is the first of its decision.
            is_odd: whether it contradicts what was told before, or comes before the attempt that it follows.
        """
        self.watch.told(caller, is_first=is_first, is_odd=is_odd, policy=policy.learning.freeze)
        return self._safely(lambda: self._freeze_or_thaw(at_ms), ())

    def load(self, weights: Sequence[WeightRow], states: Sequence[LearnerRow]) -> None:
        """Take up what an earlier run has stored."""
        self.learner.load(weights, states)
        frozen = self.learner.frozen
        if frozen is not None and frozen.startswith(_BY_ITSELF):
            self.watch.resume(frozen.removeprefix(_BY_ITSELF))

    def thaw(self, at_ms: int) -> Sequence[Row]:
        """Learn again, whatever stopped it."""
        self.watch.reset()
        return self.learner.thaw(at_ms).rows

    def _freeze_or_thaw(self, at_ms: int) -> Sequence[Row]:
        reason, frozen = self.watch.reason, self.learner.frozen
        if reason is not None and frozen is None:
            log.warning("learning stops: %s", reason)
            return self.learner.freeze(f"{_BY_ITSELF}{reason}", at_ms).rows
        if reason is None and frozen is not None and frozen.startswith(_BY_ITSELF):
            log.warning("learning goes on: outcomes are as usual again")
            return self.learner.thaw(at_ms).rows
        return ()

    def _safely(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception:  # whatever a learner does wrong, decisions and outcomes go on without it
            self.n_failures += 1
            if self.n_failures & (self.n_failures - 1) == 0:  # the first, and then ever fewer: the log has to last
                log.exception("the learner failed, %d times by now; decisions go on without it", self.n_failures)
            return otherwise


def _group_of(entry: Entry) -> tuple[str, str]:
    """Among which agents shares are told: those of an intent of a namespace."""
    return (entry.agent[0], entry.capability.intent)


def _as_it_is(floor: float) -> float:
    return floor


def _told(learnt: Learnt) -> Told:
    added = learnt.contribution
    return Told(None if added is None else orjson.dumps(added).decode(), learnt.rows)
