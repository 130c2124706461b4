from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.redaction import CUT, MAX_MASKED_CHARS, Mode, Redaction

FULL, REDACTED, DIGEST = (Redaction(mode, b"key") for mode in ("full", "redacted", "digest"))
SAID = "refund 20 euros of order number 8841 to ann@example.com"
MASKED = "refund [amount] of order number [id] to [email]"
REQUEST = {
    "utterance": SAID,
    "payload": {"to": ["ann@example.com", 300, True, None], "ann@example.com": "x"},
    "constraints": {"max_amount": 300},
    "namespace": "shop",
    "caller": {"session_id": "s-77"},
}
ANSWER = {
    "decision_id": "d1",
    "text": SAID,
    "entities": {"order": {"value": 8841, "text": "8841", "kind": "id", "unit": None, "resolved": None}},
    "constraints": {"max_amount": 300},
    "parts": [{"text": "and mail ann@example.com", "entities": {}, "constraints": {}, "parts": []}],
    "plan": [{"timeout_ms": 1500}],
}


def test_a_full_record_is_the_request_itself() -> None:
    assert FULL.request(REQUEST) == REQUEST
    assert FULL.answer(ANSWER) == ANSWER
    assert FULL.text(SAID) == SAID
    assert FULL.texts(b"{ }", b"[1.0]") == (b"{ }", b"[1.0]")


def test_entities_are_masked_wherever_the_caller_may_have_put_them() -> None:
    kept = REDACTED.request(REQUEST)
    assert kept["utterance"] == MASKED
    assert kept["payload"] == {"to": ["[email]", "[number]", True, None], "[email]": "x"}
    assert kept["constraints"] == {"max_amount": "[number]"}
    assert (kept["namespace"], kept["caller"]) == ("shop", {"session_id": "s-77"})


def test_an_answer_is_masked_with_its_parts() -> None:
    kept = REDACTED.answer(ANSWER)
    assert kept["text"] == MASKED
    assert kept["entities"] == {
        "order": {"value": "[id]", "text": "[id]", "kind": "id", "unit": None, "resolved": None}
    }
    assert kept["parts"][0]["text"] == "and mail [email]"
    assert (kept["decision_id"], kept["plan"]) == ("d1", [{"timeout_ms": 1500}])


def test_of_a_digest_nothing_can_be_read() -> None:
    request, answer = DIGEST.request(REQUEST), DIGEST.answer(ANSWER)
    text = json.dumps([request, answer])
    assert not [word for word in ("refund", "ann", "8841", "300") if word in text]
    assert request["utterance"] == DIGEST.text(SAID) == answer["text"]
    assert request["utterance"].startswith("sha256:")
    assert answer["entities"] == {}
    assert list(request["constraints"]) == ["digest"]
    assert (request["namespace"], answer["decision_id"]) == ("shop", "d1")


def test_digests_need_the_key_and_tell_equal_texts() -> None:
    assert DIGEST.text(SAID) == Redaction("digest", b"key").text(SAID)
    assert DIGEST.text(SAID) != Redaction("digest", b"other").text(SAID)
    assert DIGEST.text(SAID) != DIGEST.text(SAID + ".")
    same = DIGEST.value({"a": 1.0, "b": "x"}), DIGEST.value({"b": "x", "a": 1})
    assert same[0] == same[1]


@pytest.mark.parametrize("redaction", [REDACTED, DIGEST], ids=["redacted", "digest"])
def test_what_is_kept_stays_as_it_is(redaction: Redaction) -> None:
    kept = redaction.request(REQUEST)
    assert redaction.text(kept["utterance"]) == kept["utterance"]
    if redaction is REDACTED:
        assert redaction.request(kept) == kept


def test_a_long_text_is_masked_to_its_end_or_cut() -> None:
    said = "write to ann@example.com now, " * 100
    kept = REDACTED.text(said[:MAX_MASKED_CHARS])
    assert "ann" not in kept
    assert kept.count("[email]") == 100
    longer = REDACTED.text("x " * MAX_MASKED_CHARS + "ann@example.com")
    assert longer.endswith(CUT)
    assert "ann" not in longer


def test_an_entity_on_the_edge_of_a_window_is_masked_whole() -> None:
    for lead in range(1980, 2002):
        kept = REDACTED.text("a " * (lead // 2) + "a" * (lead % 2) + " ann.example@example.com is mine")
        assert kept.endswith(" [email] is mine"), lead


def test_the_texts_of_one_record_share_its_room() -> None:
    kept = REDACTED.request({"utterance": "x" * MAX_MASKED_CHARS, "payload": {"": "more"}})
    assert kept["payload"] == {"": CUT}


def test_numbers_of_any_size_come_through() -> None:
    request, _ = REDACTED.texts(b'{"utterance": "hi", "step_index": 123456789012345678901234567890}', b"{}")
    assert json.loads(request) == {"utterance": "hi", "step_index": 123456789012345678901234567890}
    assert DIGEST.value(Decimal("2.50")) == DIGEST.value(2.5)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), JSON, st.sampled_from(["full", "redacted", "digest"]))
def test_any_request_can_be_kept(said: str, payload: Any, mode: Mode) -> None:
    redaction = Redaction(mode, b"key")
    kept = redaction.request({"utterance": said, "payload": payload, "constraints": {}})
    assert set(kept) == {"utterance", "payload", "constraints"}
    assert isinstance(kept["utterance"], str)
    json.dumps(kept)
