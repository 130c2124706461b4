from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from models.candidate import Change, Stage
from models.decision import Action, Generations, Reason, RouteDecision

REASONS = """selected only_candidate preferred_cheaper shared explored sticky_session ambiguous goal_mismatch
out_of_scope no_capable_agent not_permitted deadline at_capacity quota breaker_open degraded queued poison_request"""


def test_actions_and_reasons_are_those_of_the_contract() -> None:
    assert [action.value for action in Action] == ["invoke", "clarify", "queue", "fallback", "deny"]
    assert [reason.value for reason in Reason] == REASONS.split()
    assert [stage.value for stage in Stage] == [
        "version",
        "excluded",
        "payload",
        "max_cost_level",
        "min_quality",
        "deadline",
        "down",
        "breaker",
        "dependency",
        "ejected",
        "capacity",
        "quota",
        "share",
    ]


def test_a_change_is_from_and_to_in_json() -> None:
    change = Change(feature="quality", from_=0.8, to=0.9)
    assert change.model_dump(by_alias=True) == {"feature": "quality", "from": 0.8, "to": 0.9}
    assert Change.model_validate({"feature": "quality", "from": 0.8, "to": 0.9}) == change


def decision() -> RouteDecision:
    return RouteDecision.model_validate(
        {
            "decision_id": "d",
            "trace_id": "t",
            "span_id": "s",
            "envelope": {},
            "namespace": "default",
            "action": "deny",
            "reason": "not_permitted",
            "generations": dict.fromkeys(Generations.model_fields, 1),
            "elapsed_ms": 0.5,
        }
    )


def test_a_decision_can_be_read_back_from_its_json() -> None:
    one = decision()
    assert one.action is Action.DENY
    assert RouteDecision.model_validate_json(one.model_dump_json(by_alias=True)) == one
    nested = one.model_copy(update={"parts": [one]})
    assert RouteDecision.model_validate(json.loads(nested.model_dump_json(by_alias=True))) == nested


@pytest.mark.parametrize("changes", [{"reason": "because"}, {"propensity": 1.5}, {"extra": 1}])
def test_nothing_beyond_the_contract_is_an_answer(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RouteDecision.model_validate({**decision().model_dump(), **changes})
