from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import pytest

from models.events import DecisionRow, OutcomeRow, Row
from models.policy import Policy
from router.evaluate_policy import evaluate_policy, known_policies
from router.policy_file import parse_policy
from router.stores.feedback_log import LogQuery
from tests.builders import capability, card
from tests.router.policy_log import COST_USD, SUCCESS, Pages, World

EXPLORE: dict[str, Any] = {"learning": {"mode": "explore", "floor": 0.1}}
DEAR_FOR_REFUNDS = {**EXPLORE, "defaults": {"intents": {"refund": {"agents": ["dear"]}}}}
CHEAP = {**EXPLORE, "defaults": {"intents": {"refund": {"agents": ["cheap"]}}}}
CARDS = [card(name, *(capability(intent) for intent in SUCCESS)) for name in ("cheap", "dear")]


@cache
def explored(n: int = 2000) -> tuple[Row, ...]:
    """A log with much exploration, of a policy that likes to save."""
    return tuple(World(floor=0.4, cost_weight=0.3).rows(n))


async def evaluated(rows: Iterable[Row], policy: dict[str, Any], cards: Sequence[Any] = CARDS, **options: Any) -> Any:
    return await evaluate_policy(Pages(rows), parse_policy(policy), cards, LogQuery(), **options)


def codes(report: Any) -> set[str]:
    return {refusal["code"] for refusal in report["refusals"]}


async def test_a_better_policy_is_found_better_by_what_it_is() -> None:
    report = await evaluated(explored(), DEAR_FOR_REFUNDS)
    assert (report["verdict"], report["exit_code"], report["refusals"]) == ("better", 0, [])
    assert (report["n_decisions"], report["n_outcomes"], report["n_unknown"]) == (2000, 2000, 0)
    # refunds, half of all, succeed in 90 % of the cases with the dear one
    success = report["new"]["success"]
    assert success["method"] == "sndr"
    refund = SUCCESS["refund"]["dear"]
    assert success["low99"] < (refund + 0.86) / 2 < success["high99"]
    difference = report["difference"]["success"]
    assert difference["low95"] > 0
    assert difference["low99"] < difference["low95"] < difference["value"] < difference["high95"] < difference["high99"]
    assert set(report["estimators"]["success"]) == {"snips", "dr", "sndr"}
    assert report["effective_size"] > 50


async def test_cost_and_latency_are_estimated_too() -> None:
    report = await evaluated(explored(), DEAR_FOR_REFUNDS)
    for name in ("cost_usd", "latency_ms", "cost_share"):
        assert report["difference"][name]["low95"] > 0, name
    assert COST_USD["cheap"] < report["new"]["cost_usd"]["value"] < COST_USD["dear"]
    assert 0.2 <= report["logged"]["cost_share"]["value"] < report["new"]["cost_share"]["value"] <= 1.0


async def test_a_worse_policy_is_found_worse() -> None:
    report = await evaluated(World(floor=0.4, cost_weight=0.0).rows(2000), CHEAP)
    assert (report["verdict"], report["exit_code"]) == ("worse", 1)
    assert report["difference"]["success"]["high95"] < 0
    assert report["difference"]["cost_usd"]["high95"] < 0


@pytest.mark.parametrize("mode", ["observe", "exploit", "explore"])
async def test_the_same_policy_flips_nothing(mode: Any) -> None:
    policy = {"learning": {"mode": mode, "floor": 0.1}, "defaults": {"intents": {}}}
    risk = "low" if mode == "exploit" else "normal"
    cards = [card(name, *(capability(intent, risk=risk) for intent in SUCCESS)) for name in ("cheap", "dear")]
    report = await evaluated(World(mode=mode).rows(300), policy, cards)
    assert (report["verdict"], report["exit_code"], report["flips"]["n"]) == ("same", 0, 0)
    assert report["flips"]["examples"] == []
    assert abs(report["difference"]["success"]["value"]) < 1e-9
    assert report["support"] == {"choices": 1.0, "changes": 1.0, "effective_changes": None}


async def test_decisions_that_flip_are_shown() -> None:
    report = await evaluated(explored(), DEAR_FOR_REFUNDS)
    flips = report["flips"]
    assert flips["n"] > 100
    assert flips["share"] == flips["n"] / 2000
    assert len(flips["examples"]) == 10
    refunds = [each for each in flips["examples"] if each["intent"] == "refund"]
    assert {(each["was"], each["would_be"]) for each in refunds} == {("cheap", "dear")}
    assert flips["examples"][0]["utterance"] == "please help with my order"


async def test_a_log_without_exploration_is_refused_and_nothing_is_estimated() -> None:
    report = await evaluated(World(mode="exploit", floor=0.0, cost_weight=0.9).rows(1500), DEAR_FOR_REFUNDS)
    assert (report["verdict"], report["exit_code"]) == ("refused", 3)
    assert {"untried_choices", "untried_changes"} <= codes(report)
    assert all("learning.mode: explore" in each["text"] for each in report["refusals"])
    assert report["new"] == report["difference"] == report["estimators"] == dict.fromkeys(report["logged"])
    # what was is known, and so is what would be another
    assert report["logged"]["success"]["n"] == 1500
    assert report["flips"]["n"] > 500


async def test_few_outcomes_are_refused() -> None:
    report = await evaluated(explored(99), DEAR_FOR_REFUNDS)
    assert (report["verdict"], report["exit_code"]) == ("refused", 3)
    assert "too_few_outcomes" in codes(report)
    assert report["new"]["success"] is None


async def test_decisions_without_any_outcome_are_refused() -> None:
    rows = [row for row in explored(200) if isinstance(row, DecisionRow)]
    report = await evaluated(rows, DEAR_FOR_REFUNDS)
    assert (report["verdict"], codes(report), report["logged"]["success"]) == ("refused", {"too_few_outcomes"}, None)


async def test_a_small_effective_size_is_refused() -> None:
    # the dear one, which is now to have everything, was chosen in 5 % of the cases
    report = await evaluated(World(mode="exploit", floor=0.1, cost_weight=0.9).rows(300), DEAR_FOR_REFUNDS)
    assert report["effective_size"] < 50
    assert {"small_effective_size", "few_changes_tried"} <= codes(report)
    assert report["exit_code"] == 3


async def test_an_empty_log_is_refused() -> None:
    report = await evaluated([], EXPLORE)
    assert (report["verdict"], report["exit_code"], codes(report)) == (
        "refused",
        3,
        {"no_decisions", "too_few_outcomes"},
    )
    assert (report["n_decisions"], report["flips"]["share"]) == (0, 0.0)


async def test_a_difference_that_cannot_be_told_is_undecided_and_says_how_much_would_do() -> None:
    report = await evaluated(World(floor=0.2).rows(300), {**EXPLORE, "defaults": {"cost_weights": {"auto": 0.0}}})
    assert (report["verdict"], report["exit_code"], codes(report)) == ("undecided", 3, {"wide_interval"})
    assert "outcomes" in report["refusals"][0]["text"]
    assert report["new"]["success"] is not None


async def test_where_nothing_ever_failed_a_failure_may_only_not_have_been_seen() -> None:
    def flawless(n: int) -> list[Row]:
        rows = World(floor=0.4, cost_weight=0.3).rows(n)
        return [
            row._replace(body=row.body.replace("failed", "succeeded")) if isinstance(row, OutcomeRow) else row
            for row in rows
        ]

    few = await evaluated(flawless(300), DEAR_FOR_REFUNDS)
    assert (few["verdict"], few["exit_code"], few["n_outcomes"]) == ("undecided", 3, 300)
    many = await evaluated(flawless(2000), DEAR_FOR_REFUNDS)
    assert (many["verdict"], many["exit_code"]) == ("not_worse", 0)


async def test_how_much_worse_counts_as_not_worse_is_said_by_the_margin() -> None:
    policy = {**EXPLORE, "defaults": {"cost_weights": {"auto": 0.0}}}
    report = await evaluated(World(floor=0.2).rows(300), policy, margin=0.9)
    assert (report["verdict"], report["exit_code"], report["margin"]) == ("not_worse", 0, 0.9)


async def test_an_agent_that_was_never_an_option_is_refused() -> None:
    policy = {**EXPLORE, "defaults": {"intents": {"refund": {"agents": ["dear", "new"]}}}}
    report = await evaluated(explored(), policy, [*CARDS, card("new", capability("refund"))])
    assert (report["verdict"], codes(report)) == ("refused", {"never_offered"})
    assert "new (refund)" in report["refusals"][0]["text"]


async def test_declared_quality_of_cards_that_are_gone_is_refused() -> None:
    report = await evaluated(explored(), {"learning": {"mode": "observe"}}, [])
    assert "unknown_quality" in codes(report)
    assert (report["n_decisions"], report["n_unknown"]) == (0, 2000)
    assert report["verdict"] == "refused"


async def test_records_of_before_are_skipped_and_counted() -> None:
    rows = [
        row._replace(inputs='{"seed": 1}') if isinstance(row, DecisionRow) and row.decision_id < "d000010" else row
        for row in explored(300)
    ]
    report = await evaluated(rows, EXPLORE)
    assert (report["n_skipped"], report["n_decisions"]) == ({"older_format": 10}, 290)


async def test_nobody_for_an_intent_counts_as_no_success() -> None:
    policy = {**EXPLORE, "defaults": {"intents": {"refund": {"agents": ["nobody"]}}}}
    report = await evaluated(explored(), policy)
    assert (report["verdict"], report["exit_code"]) == ("worse", 1)
    assert 900 < report["n_nobody"] < 1100
    assert any(f"for {report['n_nobody']} decisions the policy would choose nobody" in note for note in report["notes"])
    assert {each["would_be"] for each in report["flips"]["examples"] if each["intent"] == "refund"} == {None}


async def test_at_most_so_many_decisions_are_read() -> None:
    read: list[int] = []
    report = await evaluated(explored(), EXPLORE, limit=400, told=read.append)
    assert (report["n_read"], read[-1]) == (400, 400)


SHADOW = World(
    cost_weight=0.0,
    floor=0.1,
    caller_share={"refund": {"cheap": 0.8, "dear": 0.2}, "track": {"cheap": 0.5, "dear": 0.2, "own": 0.3}},
)


async def test_a_log_of_callers_choices_says_what_the_router_would_have_gained() -> None:
    report = await evaluated(SHADOW.rows(3000), {**EXPLORE, "defaults": {"cost_weights": {"auto": 0.0}}})
    assert (report["choices_of"], report["verdict"], report["exit_code"]) == ("callers", "better", 0)
    was = (0.8 * 0.55 + 0.2 * 0.9 + 0.5 * 0.85 + 0.2 * 0.88 + 0.3 * 0.5) / 2
    assert report["logged"]["success"]["low99"] < was < report["logged"]["success"]["high99"]
    # the router takes the dear one of refunds, but for the floor, and either for tracking
    gain = report["difference"]["success"]
    assert gain["low99"] < (0.95 * 0.9 + 0.05 * 0.55 + 0.867) / 2 - was < gain["high99"]
    assert any("estimated from how often they chose each agent" in note for note in report["notes"])


async def test_agents_that_callers_never_chose_are_refused() -> None:
    shadow = World(cost_weight=0.0, caller_share={"refund": {"cheap": 1.0}, "track": {"cheap": 1.0}})
    report = await evaluated(shadow.rows(1000), {**EXPLORE, "defaults": {"cost_weights": {"auto": 0.0}}})
    assert report["exit_code"] == 3
    assert "untried_changes" in codes(report)


async def test_choices_of_router_and_callers_are_not_mixed() -> None:
    rows = [*World(floor=0.4).rows(200), *_later(SHADOW.rows(300))]
    more = await evaluated(rows, EXPLORE)
    assert (more["choices_of"], more["n_decisions"], more["n_skipped"]) == ("callers", 300, {"of_router": 200})
    asked = await evaluated(rows, EXPLORE, kind="router")
    assert (asked["choices_of"], asked["n_decisions"], asked["n_skipped"]) == ("router", 200, {"of_callers": 300})


def _later(rows: Any) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        text = {"decision_id": f"x{row.decision_id}"}
        if isinstance(row, DecisionRow):
            found.append(row._replace(**text, happened_at=row.happened_at + 10_000))
        else:
            found.append(row._replace(**text, body=row.body.replace('"decision_id": "d', '"decision_id": "xd')))
    return found


def test_policies_of_the_archive_that_cannot_be_read_are_left_out() -> None:
    good = parse_policy({"defaults": {"hide_denied": True}})
    texts = {"good": good.model_dump_json().encode(), "odd": b'{"from": "tomorrow"}', "no": b"\xff"}
    assert known_policies(texts) == {"good": good}
    assert known_policies({"d": Policy().model_dump_json().encode()}) == {"d": Policy()}
