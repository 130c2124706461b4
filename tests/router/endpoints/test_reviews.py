from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from models.events import ReviewRow
from models.review import Review, ReviewPage
from router.endpoints.reviews import CALLS, REVIEW_FORM, REVIEWS
from tests.router.asgi import keyed, speaking

CARD = {
    "version": "1.0.0",
    "endpoint": "http://refunds.internal/invoke",
    "capabilities": [
        {"intent": "refunds", "examples": ["money back"], "input_schema": "text", "output_schema": "text"}
    ],
}


def correction(review_id: str, **fields: Any) -> ReviewRow:
    row = ReviewRow(review_id, f"d-{review_id}", "web", "default", "my money", "orders", "refunds", 1000)
    return row._replace(**fields)


def code(response: httpx.Response) -> tuple[int, Any]:
    return response.status_code, response.json().get("code")


def test_the_documented_answers_are_those_of_the_contracts() -> None:
    assert list(REVIEW_FORM["properties"]) == list(Review.model_fields)
    assert list(REVIEWS["properties"]) == list(ReviewPage.model_fields)
    assert [f"{call.method} {call.path}" for call in CALLS] == [
        "GET /reviews",
        "POST /reviews/{review_id}/accept",
        "POST /reviews/{review_id}/reject",
    ]


async def test_corrections_are_listed_accepted_and_rejected(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        assert (await client.put("/agents/refunds", json=CARD)).status_code == 201
        await parts["store"].records.append(
            [correction("r1"), correction("r2"), correction("r3", correct_intent="nothing")]
        )
        listed = (await client.get("/reviews?state=waiting&limit=2")).json()
        jsonschema_rs.validate(REVIEWS, listed)
        assert ([each["review_id"] for each in listed["reviews"]], listed["next"]) == (["r1", "r2"], "r2")
        assert (listed["n_waiting"], listed["n_refused"]) == (3, 0)

        accepted = await client.post("/reviews/r1/accept")
        jsonschema_rs.validate(REVIEW_FORM, accepted.json())
        assert (accepted.status_code, accepted.json()["state"], accepted.json()["text"]) == (
            200,
            "accepted",
            "my money",
        )
        assert (await client.post("/reviews/r1/accept")).json() == accepted.json()
        assert code(await client.post("/reviews/r1/reject")) == (409, "conflict")
        assert code(await client.post("/reviews/r3/accept")) == (409, "conflict")
        assert (await client.post("/reviews/r3/reject")).json()["state"] == "rejected"
        assert code(await client.post("/reviews/r9/accept")) == (404, "not_found")
        assert code(await client.post("/reviews/%20/accept")) == (404, "not_found")
        left = (await client.get("/reviews?state=waiting")).json()
        assert [each["review_id"] for each in left["reviews"]] == ["r2"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [("intent=nothing", ["r2"]), ("caller=bot", ["r3"]), ("namespace=other", ["r4"]), ("after=r2&limit=1", ["r3"])],
)
async def test_corrections_are_found_by_what_they_are(tmp_path: Path, question: str, expected: list[str]) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        await parts["store"].records.append(
            [
                correction("r1"),
                correction("r2", correct_intent="nothing"),
                correction("r3", caller="bot"),
                correction("r4", namespace="other"),
            ]
        )
        answer = (await client.get(f"/reviews?{question}")).json()
        assert [each["review_id"] for each in answer["reviews"]] == expected


@pytest.mark.parametrize("question", ["state=open", "limit=0", "limit=1001", "namespace=%2F", "intent=%00"])
async def test_a_parameter_that_does_not_fit_is_named(tmp_path: Path, question: str) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        response = await client.get(f"/reviews?{question}")
        assert code(response) == (422, "invalid_request")
        assert response.json()["errors"][0]["path"] == question.partition("=")[0]


async def test_verdicts_need_a_key_that_may_give_them(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        permissions = {"r": ["router:read"], "j": ["router:review"], "a": ["router:admin"], "n": ["x:y"]}
        headers = await keyed(parts, permissions)
        await parts["store"].records.append([correction("r1")])
        listed = {name: (await client.get("/reviews", headers=each)).status_code for name, each in headers.items()}
        assert listed == {"r": 200, "j": 200, "a": 200, "n": 403}
        verdicts = [(await client.post("/reviews/r1/reject", headers=headers[name])) for name in ("n", "r", "j", "a")]
        assert [each.status_code for each in verdicts] == [403, 403, 200, 200]
        assert verdicts[-1].json()["decided_by"] == "j"
