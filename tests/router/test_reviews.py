from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from models.errors import ConflictError, ForbiddenError, NotFoundError
from models.learning_policy import RetentionPolicy
from models.outcome import Outcome
from models.policy import NamespacePolicy, Policy
from models.review import ReviewFilter, ReviewState, StoredReview, Verdict
from router.live.open_decisions import OpenDecision
from router.permit import OPEN, Grants
from router.reviews import Corrections, Reviews, review_of, serves
from tests.builders import FakeClock, capability, card

OPENED = OpenDecision(
    "d1", "t1", "s1", "key", "web", "", "shop", "orders", "my money back", None, None, steps=()
)  # fmt: skip


def outcome(correct_intent: str | None, **fields: Any) -> Outcome:
    return Outcome.model_validate({"decision_id": "d1", "status": "failed", "correct_intent": correct_intent, **fields})


def made(now: str | None, before: str | None = None, *, is_first: bool = False) -> str | None:
    """The `correct_intent` of the row that an outcome makes; None for no row."""
    row = review_of(OPENED, outcome(now), None if is_first else outcome(before), "orders", 1000, lambda: "r1")
    return None if row is None else row.correct_intent


def test_a_correction_tells_what_was_read_and_what_was_meant() -> None:
    row = review_of(OPENED, outcome("refunds"), None, "orders", 1000, lambda: "r1")
    assert row == ("r1", "d1", "key", "shop", "my money back", "orders", "refunds", 1000)


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        ("refunds", None, "refunds"),
        ("refunds", "billing", "refunds"),
        ("refunds", "refunds", None),
        (None, "refunds", ""),
        ("orders", "refunds", ""),
        ("orders", None, None),
        (None, "orders", None),
        (None, None, None),
    ],
)
def test_an_amendment_replaces_the_correction_or_takes_it_back(
    now: str | None, before: str | None, expected: str | None
) -> None:
    assert made(now, before) == expected


def test_what_agrees_with_the_reading_is_no_correction() -> None:
    assert made("orders", is_first=True) is None
    assert made(None, is_first=True) is None
    assert made("refunds", is_first=True) == "refunds"


def test_what_takes_a_correction_back_holds_no_text() -> None:
    row = review_of(OPENED, outcome(None), outcome("refunds"), "orders", 1000, lambda: "r1")
    assert row is not None
    assert (row.text, row.correct_intent) == (None, "")


def test_a_correction_stands_in_the_name_of_its_key_else_of_its_agent() -> None:
    keyless = replace(OPENED, key="")
    row = review_of(keyless, outcome("refunds"), None, "orders", 1000, lambda: "r1")
    assert row is not None
    assert row.caller == "web"


@pytest.mark.parametrize(
    ("utterances", "kept"), [("full", "20 euros back"), ("redacted", "[amount] back"), ("digest", "sha256:")]
)
def test_a_correction_keeps_of_the_text_what_the_policy_says(utterances: Any, kept: str) -> None:
    policy = Policy(retention=RetentionPolicy(utterances=utterances))
    opened = replace(OPENED, utterance="20 euros back")
    [row] = Corrections(lambda: "r1", b"key").rows(opened, outcome("refunds"), None, policy, 1000)
    assert row.text is not None
    assert row.text.startswith(kept)
    assert Corrections(lambda: "r1", b"key").rows(opened, outcome("orders"), None, policy, 1000) == []
    [withdrawn] = Corrections(lambda: "r1", b"key").rows(opened, outcome(None), outcome("refunds"), policy, 1000)
    assert (withdrawn.text, withdrawn.correct_intent) == (None, "")


def test_an_intent_is_served_where_requests_of_the_namespace_may_go() -> None:
    cards = [card("a", capability("refunds"), namespace="shop"), card("b", capability("billing"), namespace="desk")]
    closed, crossing = Policy(), Policy(namespaces={"shop": NamespacePolicy(cross_namespaces=["desk"])})
    assert serves(cards, closed, "shop", "refunds")
    assert not serves(cards, closed, "shop", "billing")
    assert serves(cards, crossing, "shop", "billing")
    assert not serves(cards, crossing, "desk", "refunds")


class MemoryReviews:
    """A `ReviewStore` of some rows."""

    def __init__(self, *rows: StoredReview) -> None:
        self.rows = {row.review_id: row for row in rows}
        self.asked: list[ReviewFilter] = []

    async def page(self, wanted: ReviewFilter, after: str, limit: int) -> list[StoredReview]:
        self.asked.append(wanted)
        return [row for review_id, row in sorted(self.rows.items()) if review_id > after][:limit]

    async def n_waiting(self, wanted: ReviewFilter) -> int:
        return len(self.rows)

    async def n_refused(self) -> int:
        return 7

    async def get(self, review_id: str) -> StoredReview | None:
        return self.rows.get(review_id)

    async def decide(self, review_id: str, verdict: Verdict, decided_by: str, at_ms: int) -> StoredReview | None:
        row = self.rows.get(review_id)
        if row is not None:
            row = self.rows[review_id] = row._replace(state=verdict, decided_by=decided_by, decided_at=at_ms)
        return row


def stored(review_id: str = "r1", **fields: Any) -> StoredReview:
    row = StoredReview(
        review_id, "d1", "web", "shop", "my money", "orders", "refunds", 1000, ReviewState.WAITING, None, None
    )
    return row._replace(**fields)


def reviews_of(*rows: StoredReview) -> tuple[Reviews, MemoryReviews]:
    store = MemoryReviews(*rows)
    return Reviews(store, lambda _namespace, intent: intent == "refunds", FakeClock(5000.0)), store


REVIEWER = Grants("judge", frozenset({"router:review"}))


async def test_a_verdict_says_who_gave_it_and_when() -> None:
    reviews, _ = reviews_of(stored())
    review = await reviews.decide("r1", ReviewState.ACCEPTED, REVIEWER)
    assert (review.state, review.decided_by, review.decided_at) == (ReviewState.ACCEPTED, "judge", 5000)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"correct_intent": "nobody"}, "no card serves the intent 'nobody' for namespace 'shop'"),
        ({"text": None}, "no text is kept of 'r1'"),
        ({"text": "sha256:" + "0" * 64}, "no text is kept of 'r1'"),
    ],
)
async def test_what_cannot_teach_is_not_accepted_and_can_be_rejected(fields: dict[str, Any], told: str) -> None:
    reviews, store = reviews_of(stored(**fields))
    with pytest.raises(ConflictError, match=told):
        await reviews.decide("r1", ReviewState.ACCEPTED, REVIEWER)
    assert store.rows["r1"].state is ReviewState.WAITING
    assert (await reviews.decide("r1", ReviewState.REJECTED, REVIEWER)).state is ReviewState.REJECTED


async def test_a_verdict_needs_the_permission_and_the_namespace() -> None:
    reviews, store = reviews_of(stored())
    with pytest.raises(ForbiddenError, match="router:review"):
        await reviews.decide("r1", ReviewState.ACCEPTED, Grants("r", frozenset({"router:read"})))
    with pytest.raises(ForbiddenError, match="'shop'"):
        await reviews.decide("r1", ReviewState.ACCEPTED, Grants("r", frozenset({"router:review"}), frozenset({"x"})))
    assert store.rows["r1"].state is ReviewState.WAITING
    with pytest.raises(NotFoundError, match="'r2'"):
        await reviews.decide("r2", ReviewState.ACCEPTED, REVIEWER)


@pytest.mark.parametrize(
    ("asked", "reached", "expected"),
    [(None, None, None), (None, {"a", "b"}, {"a", "b"}), ({"a"}, {"a", "b"}, {"a"}), ({"c"}, {"a"}, set())],
)
async def test_a_bound_key_sees_its_namespaces(
    asked: set[str] | None, reached: set[str] | None, expected: set[str] | None
) -> None:
    reviews, store = reviews_of()
    grants = Grants("r", frozenset({"router:read"}), None if reached is None else frozenset(reached))
    wanted = ReviewFilter(None if asked is None else frozenset(asked))
    await reviews.page(wanted, grants, after="", limit=10)
    assert store.asked[0].namespaces == expected


async def test_a_page_tells_where_to_read_on() -> None:
    numbers = count(1)
    reviews, _ = reviews_of(*(stored(f"r{next(numbers)}") for _ in range(3)))
    page = await reviews.page(ReviewFilter(), OPEN, after="", limit=2)
    assert ([review.review_id for review in page.reviews], page.next) == (["r1", "r2"], "r2")
    rest = await reviews.page(ReviewFilter(), OPEN, after="r2", limit=2)
    assert ([review.review_id for review in rest.reviews], rest.next) == (["r3"], None)
    assert (page.n_waiting, page.n_refused) == (3, 7)


async def test_a_key_that_may_do_neither_sees_none() -> None:
    reviews, _ = reviews_of(stored())
    with pytest.raises(ForbiddenError):
        await reviews.page(ReviewFilter(), Grants("r", frozenset()), after="", limit=2)
