from __future__ import annotations

import json
from collections import Counter
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from intent.embedder import bundled
from intent.normalize import match_key, normalize
from models.card import AgentCard
from models.policy import Policy
from models.request import RouteRequest
from router.card_files import read_card_files
from router.finding import Severity
from router.lint import lint_cards
from router.policy_file import read_policy

SHOP = Path(__file__).parents[1] / "data" / "shop"


def example() -> tuple[tuple[AgentCard, ...], Policy]:
    with as_file(files("router.example")) as folder:
        read = read_card_files([folder / "cards.yaml", folder / "nested"])
        assert read.warnings == ()
        return read.cards, read_policy(folder / "policy.yaml")


def shop() -> tuple[tuple[AgentCard, ...], Policy]:
    return read_card_files([SHOP]).cards, read_policy(SHOP / "policy.yaml")


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def example_requests() -> list[dict[str, Any]]:
    return rows(files("router.example").joinpath("requests.jsonl").read_text(encoding="utf-8"))


def shop_requests() -> list[dict[str, Any]]:
    return rows((SHOP / "requests.jsonl").read_text(encoding="utf-8"))


def test_the_example_has_neither_lint_errors_nor_warnings() -> None:
    cards, policy = example()
    found = [each for each in lint_cards(cards, bundled().embed, policy) if each.severity is not Severity.INFO]
    assert found == []


def test_every_capability_of_the_example_can_be_learned_in_both_languages() -> None:
    cards, _ = example()
    n_english: Counter[str] = Counter()
    n_chinese: Counter[str] = Counter()
    for capability in (capability for card in cards for capability in card.capabilities):
        for text in capability.examples:
            counter = n_english if text.isascii() else n_chinese
            counter[capability.intent] += 1
    assert len(n_english) == 18
    assert min(n_english.values()) >= 5
    assert n_chinese.keys() == n_english.keys()
    assert min(n_chinese.values()) >= 3


@pytest.mark.parametrize(("load", "read"), [(example, example_requests), (shop, shop_requests)])
def test_requests_are_valid_unless_a_422_is_expected_and_expect_what_there_is(load: Any, read: Any) -> None:
    cards, _ = load()
    agents = {card.agent_id for card in cards}
    intents = {capability.intent for card in cards for capability in card.capabilities}
    requests = read()
    assert len({row["name"] for row in requests}) == len(requests)
    for row in requests:
        expected = row["expect"]
        assert expected.get("target.agent_id") in {None, *agents}, row["name"]
        assert expected.get("intent.name") in {None, *intents}, row["name"]
        try:
            RouteRequest.model_validate(row["request"])
        except ValidationError:
            assert expected == {"status": 422}, row["name"]


def test_requests_of_the_example_are_no_examples_of_its_cards() -> None:
    cards, _ = example()
    known = {
        match_key(normalize(text)) for card in cards for capability in card.capabilities for text in capability.examples
    }
    requests = example_requests()
    assert len(requests) >= 60
    said = [row["request"]["utterance"] for row in requests if "utterance" in row["request"]]
    assert [text for text in said if match_key(normalize(text)) in known] == []


def test_paraphrases_of_the_shop_belong_to_its_english_cases() -> None:
    requests = {row["name"]: row["request"] for row in shop_requests()}
    english = {
        name for name, request in requests.items()
        if request.get("utterance", "").isascii() and "utterance" in request and "namespace" in request
    }  # fmt: skip
    paraphrases = rows((SHOP / "paraphrases.jsonl").read_text(encoding="utf-8"))
    assert {row["case"] for row in paraphrases} == english
    for row in paraphrases:
        assert len(set(row["templates"])) == 5
        assert all(template.format(id="A-1", amount="20") for template in row["templates"])
