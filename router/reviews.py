"""Reviews: corrections that wait, and those who decide about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from models.card import AgentCard
from models.errors import ConflictError, ForbiddenError, NotFoundError
from models.events import ReviewRow
from models.key import READ, REVIEW
from models.outcome import Outcome
from models.policy import Policy
from models.ports import Clock
from models.review import Review, ReviewFilter, ReviewPage, ReviewState, ReviewStore, StoredReview, Verdict
from router.live.open_decisions import OpenDecision
from router.permit import Grants
from router.redaction import Redaction, is_digest


def review_of(
    opened: OpenDecision,
    outcome: Outcome,
    before: Outcome | None,
    read_intent: str | None,
    wall_ms: int,
    new_id: Callable[[], str],
) -> ReviewRow | None:
    """The correction that an outcome brings, or takes back (then its `correct_intent` is empty); None for neither.

    Args:
        opened: the decision; its utterance is taken as it is.
        outcome: of it, one that counts.
        before: the outcome that it amends; None where it is the first of its attempt.
        read_intent: the intent that the decision named.
        wall_ms: now (epoch).
        new_id: makes the id, in the order of time.
    """
    meant = outcome.correct_intent
    was_meant = None if before is None else before.correct_intent
    if meant in (None, read_intent):
        if was_meant in (None, read_intent):
            return None
        meant = ""
    elif meant == was_meant:
        return None
    return ReviewRow(
        review_id=new_id(),
        decision_id=opened.decision_id,
        # a key may speak in the names of many agents
        caller=opened.teller,
        namespace=opened.namespace,
        text=opened.utterance if meant else None,
        intent=read_intent,
        correct_intent=meant or "",
        created_at=wall_ms,
    )


class Corrections:
    """Makes the rows of corrections, with as much of the utterance as the policy has kept.

    Args:
        new_id: makes ids, in the order of time.
        redaction_key: of digests.
    """

    def __init__(self, new_id: Callable[[], str], redaction_key: bytes) -> None:
        self._new_id = new_id
        self._redaction_key = redaction_key

    def rows(
        self, opened: OpenDecision, outcome: Outcome, before: Outcome | None, policy: Policy, wall_ms: int
    ) -> list[ReviewRow]:
        """The row of the correction that an outcome brings or takes back; none for neither.

        Args:
            opened: the decision.
            outcome: of it, one that counts.
            before: the outcome that it amends; None where it is the first of its attempt.
            policy: the whole one.
            wall_ms: now (epoch).
        """
        read = opened.intents[0][0] if opened.intents else opened.intent
        row = review_of(opened, outcome, before, read, wall_ms, self._new_id)
        if row is None or row.text is None:
            return [] if row is None else [row]
        redaction = Redaction(policy.retention.utterances, self._redaction_key)
        return [row._replace(text=redaction.text(row.text))]


def serves(cards: Iterable[AgentCard], policy: Policy, namespace: str, intent: str) -> bool:
    """Whether a card serves the intent where requests of the namespace may go."""
    reached = {namespace, *policy.of(namespace).cross_namespaces}
    return any(
        card.namespace in reached and any(capability.intent == intent for capability in card.capabilities)
        for card in cards
    )


class Reviews:
    """Shows corrections to those who may see them, and takes verdicts.

    Args:
        store: where they are.
        served: whether a card serves an intent, given (namespace, intent).
        clock: stamps verdicts.
    """

    def __init__(self, store: ReviewStore, served: Callable[[str, str], bool], clock: Clock) -> None:
        self._store = store
        self._served = served
        self._clock = clock

    async def page(self, wanted: ReviewFilter, grants: Grants, *, after: str, limit: int) -> ReviewPage:
        """Corrections by id, those of the namespaces that the key reaches.

        Raises:
            ForbiddenError: without `router:read` or `router:review`.
        """
        if not grants.has(REVIEW):
            grants.require(READ)
        if grants.namespaces is not None:
            reached = grants.namespaces if wanted.namespaces is None else wanted.namespaces & grants.namespaces
            wanted = wanted._replace(namespaces=reached)
        rows = await self._store.page(wanted, after, limit + 1)
        return ReviewPage.of(
            reviews=[shown(row) for row in rows[:limit]],
            n_waiting=await self._store.n_waiting(wanted),
            n_refused=await self._store.n_refused(),
            next=rows[limit - 1].review_id if len(rows) > limit else None,
        )

    async def decide(self, review_id: str, verdict: Verdict, grants: Grants) -> Review:
        """The correction after the verdict; the same one again changes nothing.

        Raises:
            ForbiddenError: without `router:review`, or where the key does not reach its namespace.
            NotFoundError: there is none of that id.
            ConflictError: it got the other verdict before; or it is to be accepted, and nothing can be learned from it.
        """
        grants.require(REVIEW)
        row = await self._store.get(review_id)
        if row is not None and not grants.reaches(row.namespace):
            raise ForbiddenError(f"this key does not reach namespace {row.namespace!r}")
        if row is not None and row.state is ReviewState.WAITING and verdict is ReviewState.ACCEPTED:
            self._check(row)
        decided = await self._store.decide(review_id, verdict, grants.caller, int(self._clock.now_ms()))
        if decided is None:
            raise NotFoundError(f"there is no correction {review_id!r}")
        return shown(decided)

    def _check(self, row: StoredReview) -> None:
        if row.text is None or is_digest(row.text):
            raise ConflictError(f"no text is kept of {row.review_id!r}, so nothing can be learned from it: reject it")
        if not self._served(row.namespace, row.correct_intent):
            raise ConflictError(
                f"no card serves the intent {row.correct_intent!r} for namespace {row.namespace!r}: "
                "register one that does first, or reject the correction"
            )


def shown(row: StoredReview) -> Review:
    """A correction as it is shown."""
    return Review.of(**row._asdict())
