from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.candidate import Stage
from models.card import AgentCard
from models.decision import SkippedVersion
from models.errors import InvalidPayloadError
from models.request import RouteRequest
from router.eligibility import Eligible, check, serving
from router.snapshot import Entry
from tests.builders import capability, card, snapshot_of

NUMBER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
ANYTHING: dict[str, Any] = {}


def agent(agent_id: str = "a", version: str = "1.0.0", **fields: Any) -> AgentCard:
    """A card that echoes; the fields are those of the card or of its capability."""
    own = {name: fields.pop(name) for name in ("cost_level", "quality", "input_schema") if name in fields}
    return card(agent_id, capability("echo", **own), version=version, **fields)


def entries_of(*cards: AgentCard) -> list[Entry]:
    return list(snapshot_of(cards).entries)


def checked(cards: list[AgentCard], remaining_ms: float = 60_000, **wanted: Any) -> Eligible:
    return check(entries_of(*cards), RouteRequest(intent="echo", **wanted), remaining_ms)


def versions(entries: list[Entry]) -> list[str]:
    return [entry.card.version for entry in entries]


def stages(eligible: Eligible) -> dict[str, Stage]:
    return {entry.card.agent_id: stage for entry, stage in eligible.excluded}


LIVE = ["0.9.0", "1.0.0", "1.2.0", "1.2.3", "1.2.9", "1.3.0", "1.10.0", "2.0.0-rc.1", "2.0.0", "3.0.0-beta"]


@pytest.mark.parametrize(
    ("wanted", "serves"),
    [
        (None, "3.0.0-beta"),
        (">=2", "2.0.0"),
        ("^1.2", "1.10.0"),
        ("~1.2.3", "1.2.9"),
        (">=1.0 <2.0", "1.10.0"),
        (">=1.0, <1.3", "1.2.9"),
        ("1.2.3", "1.2.3"),
        ("=1.2.0", "1.2.0"),
        ("1.2", "1.2.9"),
        ("<1", "0.9.0"),
        ("^0.9", "0.9.0"),
    ],
)
def test_the_newest_version_that_the_range_admits_serves(wanted: str | None, serves: str) -> None:
    served, passed_over = serving(entries_of(*(agent(version=version) for version in LIVE)), wanted)
    assert versions(served) == [serves]
    assert passed_over == []


def test_a_range_admits_no_pre_release() -> None:
    served, passed_over = serving(entries_of(agent(version="2.0.0-rc.1")), ">=1")
    assert (versions(served), versions(passed_over)) == ([], ["2.0.0-rc.1"])


def test_versions_are_compared_as_numbers_and_pre_releases_come_before_their_release() -> None:
    assert versions(serving(entries_of(agent(version="1.9.0"), agent(version="1.10.0")), None)[0]) == ["1.10.0"]
    assert versions(serving(entries_of(agent(version="1.0.0"), agent(version="1.0.0-rc.1")), None)[0]) == ["1.0.0"]


def test_of_two_builds_the_same_one_serves_in_whatever_order_they_were_registered() -> None:
    builds = [agent(version="1.0.0+build.9"), agent(version="1.0.0+build.10")]
    for cards in (builds, builds[::-1]):
        assert versions(serving(entries_of(*cards), None)[0]) == ["1.0.0+build.10"]
        assert versions(serving(entries_of(*cards), "^1")[0]) == ["1.0.0+build.10"]


def test_the_same_agent_in_two_namespaces_is_two_agents() -> None:
    cards = [agent(version="1.0.0"), agent(version="2.0.0", namespace="other")]
    assert versions(serving(entries_of(*cards), None)[0]) == ["1.0.0", "2.0.0"]


def test_an_agent_that_no_version_serves_is_named_once_with_its_newest_version() -> None:
    cards = [agent("a", "1.0.0"), agent("a", "1.5.0"), agent("b", "2.1.0"), agent("b", "1.0.0")]
    found = checked(cards, version=">=2")
    assert versions(found.entries) == ["2.1.0"]
    assert found.skipped == [SkippedVersion(agent_id="a", version="1.5.0", wanted=">=2")]
    assert stages(found) == {"a": Stage.VERSION}


def test_without_a_range_nothing_is_skipped() -> None:
    found = checked([agent("a", "1.0.0"), agent("a", "2.0.0")])
    assert (versions(found.entries), found.skipped, found.excluded) == (["2.0.0"], [], [])


@pytest.mark.parametrize(
    ("card_fields", "wanted", "stage"),
    [
        ({}, {"exclude": ["a"]}, Stage.EXCLUDED),
        ({"input_schema": "none"}, {"payload": {"text": "x"}}, Stage.PAYLOAD),
        ({"cost_level": 3}, {"max_cost_level": 2}, Stage.MAX_COST_LEVEL),
        ({"quality": 0.79}, {"min_quality": 0.8}, Stage.MIN_QUALITY),
        ({"timeout_ms": 60_001}, {}, Stage.DEADLINE),
    ],
)
def test_each_check_takes_out_what_fails_it(card_fields: dict[str, Any], wanted: dict[str, Any], stage: Stage) -> None:
    found = checked([agent("a", **card_fields), agent("b", quality=1.0)], **wanted)
    assert [entry.card.agent_id for entry in found.entries] == ["b"]
    assert stages(found) == {"a": stage}


@pytest.mark.parametrize(
    ("card_fields", "wanted"),
    [
        ({}, {"exclude": ["A", "aa"]}),
        ({"cost_level": 2}, {"max_cost_level": 2}),
        ({"quality": 0.8}, {"min_quality": 0.8}),
        ({"timeout_ms": 60_000}, {}),
    ],
)
def test_what_just_meets_a_limit_stays(card_fields: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert len(checked([agent("a", **card_fields)], **wanted).entries) == 1


def test_the_first_check_that_fails_is_the_stage() -> None:
    bad: dict[str, Any] = {"input_schema": "none", "cost_level": 5, "quality": 0.1, "timeout_ms": 90_000}
    fields: dict[str, Any] = {"payload": {"text": "x"}, "max_cost_level": 1, "min_quality": 0.5}
    order = [("exclude", Stage.EXCLUDED), ("payload", Stage.PAYLOAD)]
    order += [("max_cost_level", Stage.MAX_COST_LEVEL), ("min_quality", Stage.MIN_QUALITY), ("", Stage.DEADLINE)]
    fields["exclude"] = ["a"]
    for given_up, stage in order:
        assert stages(checked([agent("a", **bad), agent("b")], **fields))["a"] is stage
        fields.pop(given_up, None)


def test_a_payload_that_fits_some_leaves_those() -> None:
    cards = [agent("a", input_schema=NUMBER), agent("b"), agent("c", input_schema=ANYTHING)]
    found = checked(cards, payload={"order": 5})
    assert [entry.card.agent_id for entry in found.entries] == ["a", "c"]
    assert stages(found) == {"b": Stage.PAYLOAD}


def test_a_payload_that_fits_nobody_is_an_error_that_names_the_field() -> None:
    with pytest.raises(InvalidPayloadError) as caught:
        checked([agent("a", input_schema=NUMBER), agent("b", input_schema=NUMBER)], payload={"order": "5521"})
    [problem] = caught.value.problems
    assert problem.path == "payload.order"
    assert "integer" in problem.message
    assert caught.value.code == "invalid_payload"


def test_missing_and_unknown_fields_of_a_payload_are_named() -> None:
    with pytest.raises(InvalidPayloadError) as caught:
        checked([agent("a")], payload={"txt": "x"})
    assert {problem.path for problem in caught.value.problems} == {"payload.text", "payload.txt"}


@pytest.mark.parametrize("wanted", [{}, {"payload": None}])
def test_a_missing_payload_is_not_an_invalid_one(wanted: dict[str, Any]) -> None:
    assert len(checked([agent("a", input_schema=NUMBER)], **wanted).entries) == 1


@pytest.mark.parametrize("payload", [{}, [], "", 0, False])
def test_an_empty_payload_is_a_payload(payload: Any) -> None:
    with pytest.raises(InvalidPayloadError):
        checked([agent("a", input_schema=NUMBER)], payload=payload)


def test_a_payload_that_fits_only_an_excluded_agent_is_not_invalid() -> None:
    found = checked([agent("a"), agent("b", input_schema="none")], payload={"text": "x"}, exclude=["a"])
    assert found.entries == []
    assert stages(found) == {"a": Stage.EXCLUDED, "b": Stage.PAYLOAD}


def test_versions_that_do_not_serve_have_no_say_on_the_payload() -> None:
    cards = [agent(version="1.0.0", input_schema=NUMBER), agent(version="2.0.0")]
    with pytest.raises(InvalidPayloadError):
        checked(cards, payload={"order": 1})
    assert versions(checked(cards, payload={"order": 1}, version="^1").entries) == ["1.0.0"]


def test_nothing_permitted_is_nothing_eligible() -> None:
    found = check([], RouteRequest(intent="echo", payload={"text": "x"}, version=">=2"), 1000)
    assert (found.entries, found.excluded, found.skipped) == ([], [], [])


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


ABSURD = st.one_of(
    st.sampled_from([10**4000, -(10**9000), Decimal("1e400"), Decimal("1e-999999"), Decimal("0." + "1" * 5000)]),
    st.sampled_from([nested(150), nested(5000), {"text": "x" * 100_000}, {"text": "\ud800"}, {"": {"": {}}}]),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.decimals()),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
        max_leaves=20,
    ),
)


def problem_paths(cards: list[AgentCard], payload: Any) -> list[str]:
    """Where an invalid payload is wrong; empty for one that fits."""
    try:
        checked(cards, payload=payload)
    except InvalidPayloadError as error:
        return [problem.path for problem in error.problems]
    return []


@given(payload=ABSURD)
def test_an_absurd_payload_fits_or_is_invalid_and_nothing_else(payload: Any) -> None:
    for cards in ([agent("a", input_schema=NUMBER)], [agent("a"), agent("b", input_schema={"minimum": 3})]):
        assert all(path.startswith("payload") for path in problem_paths(cards, payload))


@pytest.mark.parametrize("payload", [10**4000, nested(150), nested(5000), Decimal("0." + "1" * 5000)])
def test_an_absurd_payload_that_fits_nobody_says_so(payload: Any) -> None:
    assert problem_paths([agent("a")], payload) == ["payload"]
