from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from models.learning_policy import RetentionPolicy
from models.policy import Policy
from tests.builders import capability, card, request
from tests.service_builders import Desk, service_of

SAID = "send 20 euros to ann@example.com"
MASKED = "send [amount] to [email]"


def desk_of(utterances: Literal["full", "redacted", "digest"]) -> Desk:
    policy = Policy(retention=RetentionPolicy(utterances=utterances))
    return service_of([card("a", capability("pay", [SAID]))], policy)


async def recorded(desk: Desk) -> tuple[Any, Any, Any]:
    """Request, answer and inputs of a decision as they are written down."""
    [row] = desk.records.decisions
    return json.loads(row.request), json.loads(row.answer), json.loads(row.inputs)


@pytest.mark.parametrize(("utterances", "kept"), [("full", SAID), ("redacted", MASKED)])
async def test_a_record_keeps_the_text_as_the_policy_says(utterances: Any, kept: str) -> None:
    desk = desk_of(utterances)
    decision = await desk.route(request(SAID, constraints={"to": "ann@example.com"}))
    asked, answer, _ = await recorded(desk)
    assert decision.text == SAID
    assert (asked["utterance"], answer["text"]) == (kept, kept)
    assert asked["constraints"] == answer["constraints"]
    assert ("ann@example.com" in json.dumps([asked, answer])) is (utterances == "full")


async def test_a_record_of_a_digest_holds_none_of_the_text() -> None:
    desk = desk_of("digest")
    decision = await desk.route(request(SAID, payload={"text": SAID}))
    assert decision.text == SAID
    [row] = desk.records.decisions
    assert not [word for word in ("euros", "ann@", "20") if word in row.request + json.loads(row.answer)["text"]]
    asked, answer, _ = await recorded(desk)
    assert asked["utterance"].startswith("sha256:")
    assert asked["payload"].startswith("sha256:")
    assert (answer["intent"]["name"], answer["target"]["agent_id"]) == ("pay", "a")


@pytest.mark.parametrize("utterances", ["redacted", "digest"])
async def test_inputs_and_audit_tell_no_text(utterances: Any) -> None:
    desk = desk_of(utterances)
    await desk.route(request(SAID))
    [row] = desk.records.decisions
    assert "ann@" not in row.inputs
    assert not [event for event in desk.records.audit if "ann@" in event.payload or "euros" in event.payload]
