"""Decisions, traces and events over HTTP: there at once, and for those who may see them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.service.conftest import Keyed
from tests.service.server import SHOP_NAMESPACE, Server, paths_of, problem

CANCEL = {"intent": "cancel_booking", "namespace": SHOP_NAMESPACE}


@pytest.fixture(scope="module")
def client(shop: Server) -> httpx.Client:
    return shop.client


def test_a_decision_and_its_trace_are_there_right_after_the_answer(client: httpx.Client) -> None:
    for number in range(30):
        answer = client.post("/route", json={**CANCEL, "step_index": number}).json()
        record = client.get(f"/decisions/{answer['decision_id']}").json()
        assert record["answer"] == answer
        assert record["request"] == {**CANCEL, "step_index": number}
        events = client.get(f"/traces/{answer['trace_id']}").json()["events"]
        assert [event["event_type"] for event in events] == ["request", "read", "route", "response"]
        assert events[-1]["payload"] == {"decision_id": answer["decision_id"]}


def test_events_of_a_trace_are_in_causal_order_with_rising_numbers(shop: Server) -> None:
    client = shop.client
    spans = [client.post("/route", json={**CANCEL, "trace_id": "many"}).json()["span_id"] for _ in range(5)]
    shop.wait(lambda: stored(client, "many") == 20, "the events are not stored")
    events = client.get("/traces/many").json()["events"]
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))
    assert list(dict.fromkeys(event["span_id"] for event in events)) == spans
    assert len(client.get("/traces/many?limit=7").json()["events"]) == 7


def stored(client: httpx.Client, trace_id: str) -> int:
    return sum(event["seq"] is not None for event in client.get(f"/traces/{trace_id}").json()["events"])


@pytest.mark.parametrize("trace_id", ["a/b", "/", "50%", "%2F", "a?b#c", "ends/", "x" * 128, '!~\\"{}'])
def test_a_trace_of_any_id_is_found(client: httpx.Client, trace_id: str) -> None:
    assert client.post("/route", json={**CANCEL, "trace_id": trace_id}).status_code == 200
    response = client.get(f"/traces/{quote(trace_id, safe='')}")
    assert response.status_code == 200, response.text
    assert {event["trace_id"] for event in response.json()["events"]} == {trace_id}


def test_events_are_found_by_time_and_by_pages(shop: Server) -> None:
    client = shop.client
    answers = [client.post("/route", json={**CANCEL, "trace_id": f"page-{number}"}).json() for number in range(4)]
    shop.wait(lambda: stored(client, "page-3") == 4, "the events are not stored")
    first = client.get(f"/traces/{answers[0]['trace_id']}").json()["events"][0]
    window = f"from={first['happened_at']}&to={first['happened_at'] + 60_000}"
    found: list[dict[str, Any]] = []
    after = first["seq"] - 1
    while page := client.get(f"/events?{window}&after={after}&limit=3").json()["events"]:
        assert len(page) <= 3
        found += page
        after = page[-1]["seq"]
    assert [event["seq"] for event in found] == sorted({event["seq"] for event in found})
    assert {event["trace_id"] for event in found} >= {answer["trace_id"] for answer in answers}
    assert all("caller" not in event for event in found)
    assert client.get(f"/events?from={first['happened_at'] + 3_600_000}").json() == {"events": []}
    assert client.get("/events?from=2&to=1").json() == {"events": []}


@pytest.mark.parametrize(
    ("path", "named"),
    [("/events?from=soon", "from"), ("/events?to=-1", "to"), ("/events?limit=1001", "limit"),
     ("/events?limit=1&limit=2", "limit"), ("/traces/a?limit=0", "limit"), ("/traces/%20", "trace_id"),
     ("/traces/" + "x" * 129, "trace_id"), ("/decisions/%C3%A9", "decision_id")],
)  # fmt: skip
def test_parameters_that_do_not_fit_are_named(client: httpx.Client, path: str, named: str) -> None:
    assert paths_of(problem(client.get(path), 422, "invalid_request")) == [named]


def test_what_was_never_written_is_404(client: httpx.Client) -> None:
    problem(client.get("/decisions/none"), 404, "not_found")
    problem(client.get("/traces/none"), 404, "not_found")


def test_a_key_sees_its_own_records_and_router_read_sees_all(keyed: Keyed) -> None:
    client = keyed.client
    request = {**CANCEL, "trace_id": "shared"}
    own, others = (client.post("/route", json=request, headers=key).json() for key in (keyed.one, keyed.other))
    assert keyed.statuses("GET", f"/decisions/{own['decision_id']}") == [401, 200, 404, 200, 200]
    assert keyed.statuses("GET", f"/decisions/{others['decision_id']}") == [401, 404, 200, 200, 200]
    keys = (keyed.one, keyed.other, keyed.reader, keyed.admin)
    n_events = [len(client.get("/traces/shared", headers=key).json()["events"]) for key in keys]
    assert n_events == [4, 4, 8, 8]
    assert keyed.statuses("GET", "/events") == [401, 403, 403, 200, 200]


def test_a_record_of_another_key_looks_like_none(keyed: Keyed) -> None:
    decision_id = keyed.client.post("/route", json={**CANCEL, "trace_id": "mine"}, headers=keyed.one).json()[
        "decision_id"
    ]
    for path, name in [("/traces/{}", "mine"), ("/decisions/{}", decision_id)]:
        unseen, missing = (keyed.client.get(path.format(each), headers=keyed.other) for each in (name, "none"))
        assert problem(unseen, 404, "not_found")["detail"].replace(name, "none") == missing.json()["detail"]
