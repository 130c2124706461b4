"""`/agents` over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.service.conftest import Keyed, Serve
from tests.service.server import SHOP_NAMESPACE, Server, paths_of, problem

BELL = {"intent": "polish_bell", "examples": ["please polish my bell"], "input_schema": "text", "output_schema": "none"}
CARD: dict[str, Any] = {"version": "1.0.0", "endpoint": "http://bell/", "capabilities": [BELL]}


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve()


@pytest.fixture
def client(server: Server) -> httpx.Client:
    return server.client


def ask(client: httpx.Client, namespace: str = "default") -> Any:
    return client.post("/route", json={"intent": "polish_bell", "namespace": namespace}).json()


def test_a_card_is_registered_replaced_read_and_forgotten(client: httpx.Client) -> None:
    assert ask(client)["reason"] == "no_capable_agent"
    made = client.put("/agents/bell-ringer", json=CARD)
    assert (made.status_code, made.json()["routable"], made.json()["flaws"]) == (201, ["polish_bell"], {})
    assert ask(client)["target"]["endpoint"] == "http://bell/"
    again = client.put("/agents/bell-ringer", json={**CARD, "endpoint": "http://other/"})
    assert (again.status_code, again.json()["card"]["endpoint"]) == (200, "http://other/")
    assert ask(client)["target"]["endpoint"] == "http://other/"
    (shown,) = client.get("/agents/bell-ringer").json()["agents"]
    assert list(shown.pop("earned")) == ["polish_bell"]
    assert {**shown, "earned": {}} == again.json()
    gone = client.delete("/agents/bell-ringer").json()
    assert gone == {"agent_id": "bell-ringer", "namespace": "default", "versions": ["1.0.0"]}
    problem(client.get("/agents/bell-ringer"), 404, "not_found")
    problem(client.delete("/agents/bell-ringer"), 404, "not_found")
    assert ask(client)["reason"] == "no_capable_agent"


def test_a_card_takes_the_place_that_the_address_names(client: httpx.Client) -> None:
    client.put("/agents/a?namespace=prod/bells", json=CARD)
    client.put("/agents/a", json={**CARD, "namespace": "test/bells"})
    client.put("/agents/a?namespace=prod/bells", json={**CARD, "agent_id": "a", "namespace": "prod/bells"})
    listed = client.get("/agents").json()["agents"]
    assert [each["card"]["namespace"] for each in listed if each["card"]["agent_id"] == "a"] == [
        "prod/bells",
        "test/bells",
    ]
    assert [each["card"]["agent_id"] for each in client.get("/agents?namespace=prod/bells").json()["agents"]] == ["a"]
    assert ask(client, "prod/bells")["action"] == ask(client, "test/bells")["action"] == "invoke"
    for query, field, value in [("", "agent_id", "b"), ("?namespace=prod/bells", "namespace", "test/bells")]:
        response = client.put(f"/agents/a{query}", json={**CARD, field: value})
        assert paths_of(problem(response, 422, "invalid_request")) == [field]


def test_versions_live_side_by_side_and_go_one_by_one(client: httpx.Client) -> None:
    for version in ("1.9.0", "1.10.0", "2.0.0-rc.1"):
        client.put("/agents/versioned?namespace=v", json={**CARD, "version": version})
    found = client.get("/agents/versioned?namespace=v").json()["agents"]
    assert [each["card"]["version"] for each in found] == ["1.9.0", "1.10.0", "2.0.0-rc.1"]
    assert client.get("/agents/versioned?namespace=v&version=1.9.0").json()["agents"] == found[:1]
    assert client.delete("/agents/versioned?namespace=v&version=1.10.0").json()["versions"] == ["1.10.0"]
    problem(client.get("/agents/versioned?namespace=v&version=1.10.0"), 404, "not_found")
    assert client.delete("/agents/versioned?namespace=v").json()["versions"] == ["1.9.0", "2.0.0-rc.1"]


def test_a_capability_without_schemas_is_kept_and_flagged(client: httpx.Client) -> None:
    view = client.put("/agents/vague?namespace=v", json={"capabilities": [{"intent": "help"}, BELL]}).json()
    assert view["routable"] == ["polish_bell"]
    assert list(view["flaws"]) == ["help"]


def test_every_wrong_field_of_a_card_is_named(client: httpx.Client) -> None:
    wrong = {**CARD, "versoin": "1", "weight": "much", "capabilities": [{**BELL, "cost_level": 6, "quality": 1.5}]}
    named = problem(client.put("/agents/wrong", json=wrong), 422, "invalid_request")
    assert set(paths_of(named)) == {"versoin", "weight", "capabilities[0].cost_level", "capabilities[0].quality"}
    problem(client.put("/agents/no spaces", json=CARD), 422, "invalid_request")
    for body in ("[]", "null", '"text"', "7"):
        problem(client.put("/agents/wrong", content=body), 422, "invalid_request")
    problem(client.put("/agents/wrong", content=b'{"version": NaN}'), 400, "malformed_json")
    problem(client.get("/agents/wrong"), 404, "not_found")


@pytest.mark.parametrize(
    "schema",
    [{"type": "text"}, {"$ref": "https://example.com/s.json"}, {"$ref": "#/$defs/no"}, {"pattern": "(?=look)"},
     {"required": "id"}, {"minimum": "1"}, {"properties": {"a": {"type": 5}}}, {"patternProperties": {"(": {}}}],
    ids=str,
)  # fmt: skip
def test_a_schema_that_is_none_is_named(client: httpx.Client, schema: dict[str, Any]) -> None:
    card = {**CARD, "capabilities": [BELL, {**BELL, "intent": "other", "output_schema": schema}]}
    assert paths_of(problem(client.put("/agents/wrong", json=card), 422, "card_invalid")) == [
        "capabilities[1].output_schema"
    ]


EXACT = """{"capabilities": [{"intent": "polish_bell", "output_schema": "none", "input_schema":
    {"properties": {"n": {"minimum": 0.1234567890123456789, "maximum": 2E0, "multipleOf": 1.0}}}}]}"""


def test_cards_are_there_after_the_process_was_killed_and_their_numbers_are_numbers(server: Server) -> None:
    put = server.client.put("/agents/exact?namespace=exact", content=EXACT)
    card = put.json()["card"]
    limits = {"n": {"minimum": 0.12345678901234568, "maximum": 2, "multipleOf": 1}}
    assert card["capabilities"][0]["input_schema"]["properties"] == limits
    for number in range(20):
        made = server.client.put(f"/agents/bell-{number}", json={**CARD, "endpoint": f"http://bell/{number}"})
        assert made.status_code == 201
    server.kill()
    server.start()
    for number in range(20):
        found = server.client.get(f"/agents/bell-{number}").json()["agents"]
        assert [each["card"]["endpoint"] for each in found] == [f"http://bell/{number}"]
    assert ask(server.client)["action"] == "invoke"
    assert server.client.get("/agents/exact?namespace=exact").json()["agents"][0]["card"] == card
    for payload, status in [({"n": 1}, 200), ({"n": 3}, 422)]:
        request = {"intent": "polish_bell", "namespace": "exact", "payload": payload}
        assert server.client.post("/route", json=request).status_code == status
    named = problem(server.client.put("/agents/exact", content=EXACT.replace("2E0", "2e999")), 422, "invalid_request")
    assert paths_of(named) == ["capabilities[0].input_schema.properties.n.maximum"]


def test_cards_of_a_watched_file_cannot_be_deleted(shop: Server) -> None:
    problem(shop.client.delete(f"/agents/deposit_desk?namespace={SHOP_NAMESPACE}"), 409, "conflict")
    assert shop.client.get(f"/agents/deposit_desk?namespace={SHOP_NAMESPACE}").status_code == 200


def test_reading_needs_router_read_and_changing_router_admin(keyed: Keyed) -> None:
    path = "/agents/bell?namespace=rights"
    assert keyed.client.put(path, headers=keyed.admin, json=CARD).status_code == 201
    assert keyed.statuses("GET", "/agents") == [401, 403, 403, 200, 200]
    assert keyed.statuses("GET", path) == [401, 403, 403, 200, 200]
    assert keyed.statuses("PUT", path, json=CARD) == [401, 403, 403, 403, 200]
    assert keyed.statuses("PUT", path, content=b"not json") == [401, 403, 403, 403, 400]
    assert keyed.statuses("DELETE", path) == [401, 403, 403, 403, 200]
