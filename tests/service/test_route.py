"""`POST /route` and `/route/batch` over HTTP: answers, headers, and what is refused."""

from __future__ import annotations

import json
import socket
import time
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.service.conftest import Serve
from tests.service.server import SHOP_NAMESPACE, SHOP_OPTIONS, Server, paths_of, problem
from tests.service_builders import exact

CANCEL = {"intent": "cancel_booking", "namespace": SHOP_NAMESPACE}
DEPOSIT = {"intent": "deposit_status", "namespace": SHOP_NAMESPACE}
SENTENCE = {"utterance": "did you pay back my deposit", "namespace": SHOP_NAMESPACE}


@pytest.fixture(scope="module")
def client(shop: Server) -> httpx.Client:
    return shop.client


def post(client: httpx.Client, body: str | bytes, **fields: Any) -> httpx.Response:
    return client.post("/route", content=body, headers={"Content-Type": "application/json"}, **fields)


def test_the_answer_names_the_agent_and_why(client: httpx.Client) -> None:
    response = client.post("/route", json=SENTENCE)
    answer = response.json()
    assert (response.status_code, answer["action"]) == (200, "invoke")
    assert answer["reason"] in ("selected", "preferred_cheaper")
    assert answer["target"]["agent_id"] == answer["plan"][0]["target"]["agent_id"] == "deposit_desk"
    assert answer["candidates"] == []


def test_headers_tell_the_trace_the_parent_and_the_time(client: httpx.Client) -> None:
    request = {**CANCEL, "trace_id": "trace/of~mine", "caller": {"agent_id": "front.end"}}
    response = client.post("/route", json=request)
    assert response.headers["X-Trace-Id"] == response.json()["trace_id"] == "trace/of~mine"
    assert response.headers["X-Parent-Agent"] == "front.end"
    assert float(response.headers["X-Elapsed-Ms"]) == response.json()["elapsed_ms"]
    assert "X-Agent-Version-Skipped" not in response.headers


def test_a_missing_trace_id_is_made_and_a_missing_parent_is_not(client: httpx.Client) -> None:
    response = client.post("/route", json=CANCEL)
    assert response.headers["X-Trace-Id"] == response.json()["trace_id"] != ""
    assert "X-Parent-Agent" not in response.headers


def test_agents_passed_over_because_of_their_version_are_in_a_header(client: httpx.Client) -> None:
    response = client.post("/route", json={**DEPOSIT, "version": ">=1.1"})
    assert response.json()["target"]["agent_id"] == "deposit_desk"
    assert response.headers["X-Agent-Version-Skipped"] == "deposit_auditor@1.0.0"
    assert [each["wanted"] for each in response.json()["skipped_versions"]] == [">=1.1"]


def test_a_deadline_in_the_header_holds_as_one_in_the_body_does(client: httpx.Client) -> None:
    soon, late = str(int(time.time() * 1000) + 1000), str(int(time.time() * 1000) + 60_000)
    reasons = [
        client.post("/route", json=request, headers={"X-Deadline-Ms": header}).json()["reason"]
        for request, header in [
            (DEPOSIT, soon),
            ({**DEPOSIT, "deadline_ms": int(soon)}, late),
            ({**DEPOSIT, "deadline_ms": int(late)}, soon),
        ]
    ]
    assert reasons == ["deadline"] * 3
    assert client.post("/route", json=DEPOSIT, headers={"X-Deadline-Ms": late}).json()["action"] == "invoke"


@pytest.mark.parametrize("value", ["", "soon", "-1", "1e12", "1.5", "٣", "9" * 16, "1, 2"])
def test_a_deadline_that_is_no_instant_is_named(client: httpx.Client, value: str) -> None:
    response = client.post("/route", json=DEPOSIT, headers=[(b"X-Deadline-Ms", value.encode())])
    assert paths_of(problem(response, 422, "invalid_request")) == ["X-Deadline-Ms"]


def test_explain_lists_all_candidates_with_what_the_losers_lack(client: httpx.Client) -> None:
    found = client.post("/route?explain=true", json=DEPOSIT).json()["candidates"]
    assert {each["agent_id"]: bool(each["why_not"]) for each in found} == {
        "deposit_desk": False,
        "deposit_auditor": True,
    }
    assert client.post("/route?explain=false", json=DEPOSIT).json()["candidates"] == []


@pytest.mark.parametrize("query", ["explain=yes", "explain=", "explain=true&explain=true"])
def test_a_query_that_does_not_fit_is_named(client: httpx.Client, query: str) -> None:
    assert paths_of(problem(client.post(f"/route?{query}", json=DEPOSIT), 422, "invalid_request")) == ["explain"]


CONSTRAINTS = """{"huge": 123456789012345678901234567890, "long": 0.1234567890123456789012345678901234567890,
 "beyond": 1e400, "tiny": -1.5E-400, "negative zero": -0.0, "one": 1.0, "e": 1e2,
 "text": "\\u0000\\ud83d\\ude00 \\" 年",
 "": [[], {}, null, true, [1, [2, {"a": [false]}]]], "digits": %s}""" % ("7" * 5000)


def test_constraints_come_back_equal_as_json_values(client: httpx.Client) -> None:
    for start in ('{"intent": "cancel_booking"', '{"utterance": "please cancel my rental"', '{"intent": "unknown"'):
        body = f'{start}, "namespace": "{SHOP_NAMESPACE}", "constraints": {CONSTRAINTS}}}'
        response = post(client, body.encode())
        assert response.status_code == 200
        assert as_values(response.content)["constraints"] == as_values(CONSTRAINTS.encode())
        decision_id = as_values(response.content)["decision_id"]
        record = as_values(client.get(f"/decisions/{decision_id}").content)
        assert record["request"]["constraints"] == record["answer"]["constraints"] == as_values(CONSTRAINTS.encode())


def as_values(body: bytes) -> Any:
    """JSON with numbers of any length as Decimals."""
    return json.loads(body, parse_float=Decimal, parse_int=Decimal)


def test_whole_numbers_may_be_written_with_a_point(client: httpx.Client) -> None:
    body = (
        f'{{"intent": "deposit_status", "namespace": "{SHOP_NAMESPACE}", "response_timeout_ms": 30000.0, "limit": 1E0}}'
    )
    assert len(post(client, body).json()["candidates"]) == 1


def test_a_long_decimal_is_a_number(client: httpx.Client) -> None:
    body = f'{{"intent": "deposit_status", "namespace": "{SHOP_NAMESPACE}", "min_quality": 0.88000000000000000000001}}'
    assert exact(post(client, body).content)["target"]["agent_id"] == "deposit_auditor"


@pytest.mark.parametrize(
    "body",
    [
        "", " ", "{", "[1,]", "{'a': 1}", '{"utterance": NaN}', '{"constraints": {"a": Infinity}, "intent": "a"}',
        '{"intent": "a", "intent": "b"}', '{"intent": "a", "constraints": {"x": {"k": 1, "k": 1}}}',
        b'{"utterance": "\xff"}', '{"utterance": "\\ud800"}', '{"constraints": ' + "[" * 150 + "]" * 150 + "}",
        '{"constraints": ' + "[" * 100_000 + "]" * 100_000 + "}", "{} {}",
    ],
    ids=range(14),
)  # fmt: skip
def test_what_is_no_strict_json_is_400(client: httpx.Client, body: str | bytes) -> None:
    problem(post(client, body), 400, "malformed_json")


def test_every_wrong_field_is_named(client: httpx.Client) -> None:
    body = {
        "utterance": 5,
        "namespce": "a",
        "caller": {"agent_id": "no spaces", "x": 1},
        "limit": 0,
        "exclude": ["ok", 7],
    }
    named = problem(client.post("/route", json=body), 422, "invalid_request")
    assert paths_of(named) == ["utterance", "caller.agent_id", "caller.x", "exclude[1]", "limit", "namespce"]
    assert "did you mean 'namespace'" in named["errors"][-1]["message"]


@pytest.mark.parametrize(
    "body", ["[]", "null", '"text"', "7", "{}", '{"utterance": null, "intent": null}', '{"utterance": ""}']
)
def test_what_is_no_request_is_422(client: httpx.Client, body: str) -> None:
    assert problem(post(client, body), 422, "invalid_request")["errors"]


@pytest.mark.parametrize("number", ["1e400", "1" + "0" * 400, "1e308", "-1e400", "1.5", "5" * 5000])
def test_a_number_beyond_all_bounds_is_named(client: httpx.Client, number: str) -> None:
    body = f'{{"intent": "a", "deadline_ms": {number}}}'
    assert paths_of(problem(post(client, body), 422, "invalid_request")) == ["deadline_ms"]


def test_a_payload_that_fits_nobody_says_why(client: httpx.Client) -> None:
    named = problem(client.post("/route", json={**CANCEL, "payload": {"reason": 7}}), 422, "invalid_payload")
    assert all(path.startswith("payload.") for path in paths_of(named))


def test_unknown_paths_are_404_and_other_methods_405_with_allow(client: httpx.Client) -> None:
    problem(client.get("/nothing/here"), 404, "not_found")
    for method, path, allowed in [("GET", "/route", {"POST"}), ("PATCH", "/policy", {"GET", "HEAD", "PUT"}),
                                  ("POST", "/agents/a", {"GET", "HEAD", "PUT", "DELETE"})]:  # fmt: skip
        response = client.request(method, path)
        problem(response, 405, "method_not_allowed")
        assert set(response.headers["Allow"].split(", ")) == allowed


def test_a_batch_keeps_the_order_and_puts_problems_in_place(client: httpx.Client) -> None:
    bodies = [
        {**CANCEL, "trace_id": "first"},
        {"namespace": SHOP_NAMESPACE},
        {**SENTENCE, "trace_id": "third"},
        5,
        {**CANCEL, "payload": {"reason": 7}},
        {**DEPOSIT, "trace_id": "last"},
    ]
    response = client.post("/route/batch?explain=true", json=bodies)
    assert response.status_code == 200
    answers = response.json()
    assert [each.get("trace_id", each.get("code")) for each in answers] == [
        "first", "invalid_request", "third", "invalid_request", "invalid_payload", "last"
    ]  # fmt: skip
    assert [each.get("status") for each in answers] == [None, 422, None, 422, 422, None]
    assert len(answers[-1]["candidates"]) == 2


def test_a_batch_of_256_is_taken_and_one_of_257_is_not(client: httpx.Client) -> None:
    bodies = [{**CANCEL, "step_index": place} for place in range(256)]
    answers = client.post("/route/batch", json=bodies).json()
    assert [each["envelope"]["step_index"] for each in answers] == list(range(256))
    problem(client.post("/route/batch", json=[*bodies, CANCEL]), 422, "invalid_request")
    assert client.post("/route/batch", json=[]).json() == []
    problem(client.post("/route/batch", json={"requests": []}), 422, "invalid_request")


def test_a_dry_run_decides_and_leaves_no_record(client: httpx.Client) -> None:
    answer = client.post("/route", json={**CANCEL, "dry_run": True, "trace_id": "dry-1"}).json()
    assert (answer["action"], answer["dry_run"]) == ("invoke", True)
    problem(client.get(f"/decisions/{answer['decision_id']}"), 404, "not_found")
    problem(client.get("/traces/dry-1"), 404, "not_found")


def test_a_goal_that_changed_is_asked_about(client: httpx.Client) -> None:
    task = {**CANCEL, "task_id": "task-1"}
    assert client.post("/route", json={**task, "global_goal_hash": "one"}).json()["action"] == "invoke"
    answer = client.post("/route", json={**task, "global_goal_hash": "two"}).json()
    assert (answer["action"], answer["reason"]) == ("clarify", "goal_mismatch")


@pytest.fixture(scope="module")
def small(serve: Serve) -> Server:
    """A server with small limits."""
    limits = {
        "AGENCY_ROUTER_MAX_BODY_BYTES": "2048",
        "AGENCY_ROUTER_MAX_IN_FLIGHT": "2",
        "AGENCY_ROUTER_MAX_BATCH": "3",
    }
    return serve(*SHOP_OPTIONS, env=limits)


def test_a_large_body_is_413_by_its_length_and_by_its_stream(small: Server) -> None:
    body = json.dumps({"utterance": "x" * 3000}).encode()
    problem(post(small.client, body), 413, "body_too_large")
    problem(small.client.post("/route", content=iter([body[:1000], body[1000:]])), 413, "body_too_large")
    problem(small.client.put("/policy", content=body), 413, "body_too_large")
    fits = json.dumps({"utterance": "x" * 1000, "namespace": SHOP_NAMESPACE}).encode()
    assert small.client.post("/route", content=iter([fits[:100], fits[100:]])).status_code == 200


def test_the_largest_batch_is_a_setting_that_the_document_tells(small: Server) -> None:
    problem(small.client.post("/route/batch", json=[CANCEL] * 4), 422, "invalid_request")
    assert len(small.client.post("/route/batch", json=[CANCEL] * 3).json()) == 3
    document = small.client.get("/openapi.json").json()
    assert document["components"]["schemas"]["RouteBatch"]["maxItems"] == 3


def half_sent(server: Server) -> socket.socket:
    """A request whose body is still under way."""
    connection = server.connect()
    connection.sendall(b"POST /route HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n{")
    return connection


def in_flight(client: httpx.Client) -> float:
    lines = client.get("/metrics").text.splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("agency_router_http_in_flight ")))


def test_too_many_in_flight_are_429_with_retry_after_and_health_still_answers(small: Server) -> None:
    with half_sent(small), half_sent(small):
        small.wait(lambda: in_flight(small.client) == 2, "two requests are not under way")
        response = small.client.post("/route", json=CANCEL)
        problem(response, 429, "overloaded")
        assert int(response.headers["Retry-After"]) >= 1
        assert small.client.get("/healthz").status_code == small.client.get("/readyz").status_code == 200
    small.wait(lambda: in_flight(small.client) == 0, "what went away is still counted")
    assert small.client.post("/route", json=CANCEL).status_code == 200


def test_a_caller_that_leaves_in_the_middle_of_its_body_is_no_error_of_ours(small: Server) -> None:
    half_sent(small).close()
    small.wait(lambda: 'status="499"' in small.client.get("/metrics").text, "it was not noticed")
    assert "ERROR" not in small.log
