"""Query parameters of every call: those that are documented are taken, all others refused."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from router.app import CALLS
from router.endpoints.call import Call, Parameter
from tests.router.asgi import speaking
from tests.router.endpoints.desk import CARD

STRICT = [call for call in CALLS if not call.takes_any_query]
LENIENT = [call for call in CALLS if call.takes_any_query]
DOCUMENTED = [(call, each) for call in CALLS for each in call.parameters if each.where == "query"]
Answers = dict[tuple[str, str, str], httpx.Response]


def path_of(call: Call) -> str:
    """A path of the call that leads to nothing that is there, but for files of pages."""
    return re.sub(r"\{\w+\}", "swagger-ui.css" if call.operation_id == "docs_asset" else "nobody", call.path)


def sample(parameter: Parameter) -> str:
    """A value that the parameter's schema admits."""
    schema = parameter.schema.get("anyOf", [parameter.schema])[0]
    if "enum" in schema:
        return str(schema["enum"][0])
    return "7" if schema["type"] == "integer" else "1.2.0"


def queries() -> Iterator[tuple[Call, str]]:
    for call in CALLS:
        yield call, "verison=1"
    for call, parameter in DOCUMENTED:
        text = f"{parameter.name}={sample(parameter)}"
        yield from ((call, text), (call, f"{text}&{text}"), (call, f"{parameter.name}x=1"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """(operation, method, query) → what is answered, of all calls."""

    async def ask() -> Answers:
        found: Answers = {}
        async with speaking(tmp_path_factory.mktemp("queries"), classifier=False) as (client, parts):
            await parts["readiness"].ready.wait()
            for call, text in queries():
                for method in {call.method, "HEAD" if call.method == "GET" else call.method}:
                    address = f"{path_of(call)}?{text}"
                    found[call.operation_id, method, text] = await client.request(method, address)
        return found

    return asyncio.run(ask())


def errors_of(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.headers["content-type"] == "application/problem+json"
    errors: list[dict[str, Any]] = response.json()["errors"]
    return errors


@pytest.mark.parametrize("call", STRICT, ids=lambda call: call.operation_id)
def test_an_unknown_parameter_is_refused_by_name_with_those_that_are_known(call: Call, answers: Answers) -> None:
    response = answers[call.operation_id, call.method, "verison=1"]
    assert response.status_code == 422
    [error] = errors_of(response)
    assert error["path"] == "verison"
    assert error["message"].startswith("unknown parameter")
    assert response.json()["detail"] == f"verison: {error['message']}"
    assert ("did you mean 'version'?" in error["message"]) is ("version" in call.query_names)
    assert error["message"].endswith(", ".join(call.query_names) or "this call takes none in its query")
    if call.method == "GET":
        assert answers[call.operation_id, "HEAD", "verison=1"].status_code == 422


@pytest.mark.parametrize(
    ("call", "parameter"), DOCUMENTED, ids=[f"{call.operation_id}-{each.name}" for call, each in DOCUMENTED]
)
def test_a_documented_parameter_is_taken_once_and_its_misspelling_is_not(
    call: Call, parameter: Parameter, answers: Answers
) -> None:
    once, twice, wrong = (
        answers[call.operation_id, call.method, text]
        for text in (
            f"{parameter.name}={sample(parameter)}",
            f"{parameter.name}={sample(parameter)}&{parameter.name}={sample(parameter)}",
            f"{parameter.name}x=1",
        )
    )
    assert once.status_code in (200, 400, 404), once.text  # there is no such thing, or the body is missing
    assert (twice.status_code, wrong.status_code) == (422, 422)
    assert errors_of(twice) == [{"path": parameter.name, "message": "stands more than once"}]
    [error] = errors_of(wrong)
    assert error["path"] == f"{parameter.name}x"
    assert f"did you mean '{parameter.name}'?" in error["message"]


@pytest.mark.parametrize("call", LENIENT, ids=lambda call: call.operation_id)
def test_a_page_may_be_asked_for_with_anything(call: Call, answers: Answers) -> None:
    assert answers[call.operation_id, call.method, "verison=1"].status_code == 200
    assert call.media_type != "application/json"


def test_every_call_that_answers_json_looks_at_its_query() -> None:
    assert {call.operation_id for call in LENIENT} == {"metrics", "docs", "docs_asset"}
    assert all(call.media_type == "application/json" for call in STRICT)


async def test_a_misspelt_version_deletes_nothing(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        for version in ("1.0.0", "2.0.0"):
            assert (await client.put("/agents/x", json={**CARD, "version": version})).status_code == 201
        for text in ("verison=1.0.0", "version=1.0.0&version=2.0.0", "version=1.0.0&namespaec=b", "=1"):
            assert (await client.delete(f"/agents/x?{text}")).status_code == 422
        listed = (await client.get("/agents/x")).json()["agents"]
        assert [each["card"]["version"] for each in listed] == ["1.0.0", "2.0.0"]
        assert (await client.delete("/agents/x?version=1.0.0")).json()["versions"] == ["1.0.0"]


async def test_of_very_many_wrong_parameters_some_are_named_and_long_names_are_cut(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, _):
        response = await client.get("/agents?" + "&".join(f"p{number}{'x' * 500}=1" for number in range(30)))
    assert response.json()["detail"] == "30 query parameters are wrong"
    assert [len(each["path"]) for each in errors_of(response)] == [100] * 20


async def test_a_wrong_key_is_told_before_a_wrong_parameter(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, _):
        wrong_key = {"Authorization": "Bearer nonsense"}
        assert (await client.get("/agents?verison=1", headers=wrong_key)).status_code == 401
