from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.requests import Request

from router.endpoints.policy import named_generations
from tests.router.asgi import speaking


def request(*values: str) -> Request:
    return Request({"type": "http", "headers": [(b"if-match", value.encode("latin-1")) for value in values]})


@pytest.mark.parametrize(
    ("values", "generations"),
    [
        ([], None),
        (["*"], None),
        ([" * "], None),
        (['"3"'], {3}),
        (['"3", "5"', '"0"'], {3, 5, 0}),
        (['W/"3"'], set()),
        (['W/"3","4"'], {4}),
        (["3"], set()),
        ([""], set()),
        (['"three"', '"-1"', '"03"', '"³"'], set()),
        (['"' + "9" * 5000 + '"'], set()),
    ],
    ids=str,
)  # fmt: skip
def test_if_match_names_generations(values: list[str], generations: set[int] | None) -> None:
    assert named_generations(request(*values)) == generations


async def share(client: httpx.AsyncClient) -> tuple[str, float]:
    """The tag of the policy in force, and what tells the policies of these tests apart."""
    response = await client.get("/policy")
    assert response.headers["ETag"] == f'"{response.json()["generation"]}"'
    return response.headers["ETag"], response.json()["policy"]["defaults"]["share_within"]


def policy(share_within: float) -> dict[str, object]:
    return {"defaults": {"share_within": share_within}}


async def test_a_change_over_a_policy_that_is_no_longer_in_force_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, parts):
        await parts["readiness"].ready.wait()
        tag, _ = await share(client)
        mine = await client.put("/policy", json=policy(0.1), headers={"If-Match": tag})
        assert (mine.status_code, mine.headers["ETag"]) == (200, f'"{int(tag[1:-1]) + 1}"')
        for method, path in (("PUT", "/policy"), ("POST", "/policy/rollback")):
            theirs = await client.request(method, path, json={}, headers={"If-Match": tag})
            assert (theirs.status_code, theirs.json()["code"]) == (412, "precondition_failed")
            assert theirs.headers["Content-Type"] == "application/problem+json"
            assert mine.headers["ETag"][1:-1] in theirs.json()["detail"]
        assert await share(client) == (mine.headers["ETag"], 0.1)
        assert (await client.put("/policy", json=policy(0.2), headers={"If-Match": "*"})).status_code == 200
        assert (await client.put("/policy", json=policy(0.3))).status_code == 200


async def test_a_policy_that_is_wrong_is_told_so_whatever_it_was_to_replace(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, parts):
        await parts["readiness"].ready.wait()
        answer = await client.put("/policy", json={"defalts": {}}, headers={"If-Match": '"77"'})
        assert (answer.status_code, answer.json()["code"]) == (422, "policy_invalid")


async def test_policies_are_rolled_back_one_step_or_to_the_one_named(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, parts):
        await parts["readiness"].ready.wait()
        first, second = [(await client.put("/policy", json=policy(each))).json()["generation"] for each in (0.1, 0.2)]
        back = await client.post("/policy/rollback")
        assert back.json()["generation"] == second + 1
        assert await share(client) == (back.headers["ETag"], 0.1)
        assert (await client.post("/policy/rollback", json={"generation": second})).status_code == 200
        assert (await share(client))[1] == 0.2
        assert (await client.post("/policy/rollback", json={"generation": None})).status_code == 200
        tag, found = await share(client)
        assert (tag, found) == (f'"{second + 3}"', 0.1)
        assert first + 1 == second
    async with speaking(tmp_path) as (client, parts):
        await parts["readiness"].ready.wait()
        assert await share(client) == (tag, 0.1)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ('{"generation": 99}', 404, "not_found"),
        ('{"generation": -1}', 422, "invalid_request"),
        ('{"generation": "first"}', 422, "invalid_request"),
        ('{"generations": 1}', 422, "invalid_request"),
        ("[]", 422, "invalid_request"),
        ("{", 400, "malformed_json"),
    ],
)
async def test_what_cannot_be_rolled_back_to_changes_nothing(tmp_path: Path, body: str, status: int, code: str) -> None:
    async with speaking(tmp_path) as (client, parts):
        await parts["readiness"].ready.wait()
        before = await share(client)
        answer = await client.post("/policy/rollback", content=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert await share(client) == before
