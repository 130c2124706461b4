from __future__ import annotations

import doctest
from typing import Any

import pytest

from models.card import AgentCard, Capability, Probe
from router import card_digest as module
from router.card_digest import card_digest

CARD = AgentCard(agent_id="a", labels={"tenant": "x", "domain": "y"}, capabilities=[Capability(intent="réserver")])


def test_the_example_holds() -> None:
    assert doctest.testmod(module) == (0, 1)


def test_the_digest_of_a_card_is_the_same_in_every_release() -> None:
    # sha256 of {"agent_id":"a"}: stored heartbeats are compared with it after an upgrade
    assert card_digest(AgentCard(agent_id="a")) == "41ce7e0cdf03207af2164279852718f60f6c74e64c9adb9834a8569ba788f4b3"


def test_a_card_read_from_json_has_the_digest_of_the_one_written() -> None:
    again = AgentCard.model_validate_json(CARD.model_dump_json())
    assert card_digest(again) == card_digest(CARD)


def test_the_order_of_fields_does_not_matter() -> None:
    turned = AgentCard(
        capabilities=[Capability(intent="réserver")], labels={"domain": "y", "tenant": "x"}, agent_id="a"
    )
    assert card_digest(turned) == card_digest(CARD)


@pytest.mark.parametrize(
    "change",
    [
        {"agent_id": "b"},
        {"version": "0.0.1"},
        {"weight": 50.0},
        {"enabled": False},
        {"probe": Probe(path="/probe")},
        {"labels": {"tenant": "x"}},
        {"capabilities": [Capability(intent="réserver", examples=["une table"])]},
        {"allowed_sources": []},
    ],
)
def test_every_change_of_a_card_changes_its_digest(change: dict[str, Any]) -> None:
    assert card_digest(CARD.model_copy(update=change)) != card_digest(CARD)
