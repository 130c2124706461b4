"""The shop answers right over HTTP: its labelled requests, and paraphrases with ids and amounts drawn at random."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from router.evaluate_routing import at
from tests.service.conftest import Serve
from tests.service.server import CLASSIFYING, SHOP, SHOP_OPTIONS, Server

SEED = 20_250_301
N_DRAWS = 3
SPEAKERS = ("switchboard", "kiosk")


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SHOP / name).read_text(encoding="utf-8").split("\n") if line]


CASES = {case["name"]: case for case in lines("requests.jsonl")}
TEMPLATES = [(entry["case"], template) for entry in lines("paraphrases.jsonl") for template in entry["templates"]]


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve(*SHOP_OPTIONS, env=CLASSIFYING)


@pytest.fixture(scope="module")
def keys(server: Server) -> dict[tuple[str, ...] | None, dict[str, str]]:
    """By what a case says of permissions, the header of a key that grants it."""
    wanted = {None if case.get("permissions") is None else tuple(case["permissions"]) for case in CASES.values()}
    made = {}
    for number, permissions in enumerate(wanted):
        callers = None if permissions is None else SPEAKERS
        made[permissions] = server.key(f"key-{number}", *(permissions or ()), callers=callers)
    return made


def check(server: Server, keys: dict[Any, dict[str, str]], case: dict[str, Any], told: str) -> None:
    permissions = case.get("permissions")
    headers = keys[None if permissions is None else tuple(permissions)]
    response = server.client.post("/route", json=case["request"], headers=headers)
    expect = {"status": 200, **case["expect"]}
    answer = {"status": response.status_code, **response.json()}
    got = {path: at(answer, path) for path in expect}
    fits = {path: got[path] in wanted.split("|") if isinstance(wanted, str) else got[path] == wanted
            for path, wanted in expect.items()}  # fmt: skip
    assert all(fits.values()), f"{told}: expected {expect}, got {got}: {response.text}"


@pytest.mark.parametrize("name", CASES)
def test_a_labelled_request_gets_what_it_expects(server: Server, keys: dict[Any, dict[str, str]], name: str) -> None:
    check(server, keys, CASES[name], name)


def drawn(random: Random, template: str) -> Iterator[str]:
    for _ in range(N_DRAWS):
        kinds = [str(random.randint(2, 99)), f"{random.choice('ABRX')}-{random.randint(100, 99_999)}"]
        yield template.format(id=random.choice(kinds), amount=random.choice([random.randint(5, 999), "79.50", "1,200"]))


@pytest.mark.parametrize(("name", "template"), TEMPLATES)
def test_a_paraphrase_gets_the_same(server: Server, keys: dict[Any, dict[str, str]], name: str, template: str) -> None:
    case = CASES[name]
    for sentence in drawn(Random(f"{SEED} {template}"), template):
        request = {**case["request"], "utterance": sentence}
        check(server, keys, {**case, "request": request}, f"seed {SEED}, case {name!r}: {sentence!r}")
