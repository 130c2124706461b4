"""Constraints come out equal to what went in, whatever became of the request (SPEC A14)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.decision import Action
from models.request import RouteRequest
from router.wire import loads
from tests.builders import capability, card
from tests.json_texts import json_texts, objects
from tests.service_builders import Desk, exact, key_grants, service_of

FIELDS = {
    Action.INVOKE: '"intent":"echo"',
    Action.DENY: '"intent":"guarded"',
    Action.FALLBACK: '"intent":"unknown"',
    Action.CLARIFY: '"utterance":"do either"',
}
EXTREME = (
    '{"big":1234567890123456789012345678901234567890,"small":-0.1000000000000000055511151231257827,"huge":1e400,'
    '"tiny":1e-400,"π":"\\u03c0 😀 \\u0000","nested":{"a":[[],{},[null,true,{"b":[2.50,1E3,-0.0]}]]},"":""}'
)


def desk() -> Desk:
    return service_of(
        [
            card("a", capability("echo")),
            card("b", capability("guarded", required_permissions=["p"])),
            card("c", capability("left", ["do either"])),
            card("d", capability("right", ["do either"])),
        ]
    )


async def answered(constraints: str, action: Action, extra: str = "") -> tuple[dict[str, Any], Desk]:
    """The answer to a request with these constraints, from bytes to bytes."""
    body = f'{{{FIELDS[action]},"constraints":{constraints}{extra}}}'
    used = desk()
    _, sent = await used.sent(RouteRequest.model_validate(loads(body.encode())), key_grants(), explain=True)
    answer: dict[str, Any] = exact(sent)
    assert answer["action"] == action.value
    return answer, used


@pytest.mark.parametrize("action", FIELDS)
async def test_extreme_constraints_come_out_equal_in_the_answer_and_on_record(action: Action) -> None:
    answer, used = await answered(EXTREME, action)
    [record] = used.records.decisions
    assert answer["constraints"] == exact(EXTREME)
    assert exact(record.answer)["constraints"] == exact(EXTREME)
    assert exact(record.request)["constraints"] == exact(EXTREME)
    assert list(answer["constraints"]) == list(exact(EXTREME))


@settings(max_examples=60)
@given(constraints=objects(json_texts), action=st.sampled_from(list(FIELDS)))
async def test_constraints_come_out_equal_whatever_the_action(constraints: str, action: Action) -> None:
    answer, used = await answered(constraints, action)
    [record] = used.records.decisions
    assert answer["constraints"] == exact(record.answer)["constraints"] == exact(constraints)
    assert exact(record.request)["constraints"] == exact(constraints)


async def test_a_goal_mismatch_keeps_the_constraints_too() -> None:
    used = desk()
    fields = {"intent": "echo", "task_id": "t", "constraints": loads(EXTREME.encode())}
    await used.sent(RouteRequest(global_goal_hash="one", **fields))
    _, body = await used.sent(RouteRequest(global_goal_hash="two", **fields))
    answer = exact(body)
    assert (answer["reason"], answer["constraints"]) == ("goal_mismatch", exact(EXTREME))


async def test_a_caller_s_object_is_not_altered() -> None:
    given_in = loads(EXTREME.encode())
    await desk().route(RouteRequest(intent="echo", constraints=given_in))
    assert given_in == loads(EXTREME.encode())


@pytest.mark.parametrize("payload", ['{"text":"x"}', "null"])
async def test_a_payload_beside_them_changes_nothing(payload: str) -> None:
    answer, _ = await answered(EXTREME, Action.INVOKE, f',"payload":{payload}')
    assert answer["constraints"] == exact(EXTREME)
