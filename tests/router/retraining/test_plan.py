from __future__ import annotations

import json
from collections import Counter

import pytest

from intent.fit_classifiers import Example
from intent.multi import MultiExample
from router.retraining.plan import ALWAYS_TRAINED, Plan, planned
from router.retraining.rows import Row, Source

CARDS = [
    Row("card", text, intent, Source.CARDS) for text, intent in (("where is it", "track"), ("the bill", "invoice"))
]


def example(n: int, intent: str = "track") -> Row:
    return Row(f"more.jsonl:{n}", f"example {n}", intent, Source.EXAMPLES)


def correction(n: int, intent: str = "track", caller: str = "web") -> Row:
    return Row(f"review:{n}", f"correction {n}", intent, Source.CORRECTIONS, 1.0, caller, "invoice")


def outcome(n: int, intent: str = "track") -> Row:
    return Row(f"decision:{n}", f"outcome {n}", intent, Source.OUTCOMES, 0.25, f"c{n}")


def plan_of(
    examples: list[Row] | None = None,
    corrections: list[Row] | None = None,
    outcomes: list[Row] | None = None,
    golden: list[Row] | None = None,
    **more: object,
) -> Plan:
    return planned(CARDS, examples or [], corrections or [], outcomes or [], golden or [], made_at=7, **more)  # type: ignore[arg-type]


def test_a_fifth_of_the_texts_is_held_out_and_the_same_ones_when_more_is_known() -> None:
    first = plan_of([example(n) for n in range(500)], outcomes=[outcome(n) for n in range(500)])
    assert 150 <= len(first.held_out) <= 250
    later = plan_of([example(n) for n in range(1000)], outcomes=[outcome(n) for n in range(300, 900)])
    trained_later = {row.key for row in later.more}
    assert not {row.key for row in first.held_out} & trained_later
    assert first.n_held_out["examples"] + first.n_examples["examples"] == 500


def test_the_first_corrections_are_all_trained_on_and_of_later_ones_a_fifth_is_held_out() -> None:
    rows = [correction(n, caller=f"c{n}") for n in range(300)]
    few, many = plan_of(corrections=rows[:ALWAYS_TRAINED]), plan_of(corrections=rows)
    assert few.n_held_out == {}
    assert few.n_examples["corrections"] == ALWAYS_TRAINED
    held_out = {row.row_id for row in many.held_out}
    assert 30 <= len(held_out) <= 90
    assert not held_out & {row.row_id for row in rows[:ALWAYS_TRAINED]}


def test_cards_are_never_held_out_whoever_repeats_them() -> None:
    rows = [Row(f"card{n}", f"card text {n}", "track", Source.CARDS) for n in range(50)]
    said = [Row(f"review:{n}", f"Card text {n}!", "invoice", Source.CORRECTIONS, 1.0, f"c{n}") for n in range(50)]
    plan = planned([*CARDS, *rows], [], said, [], [], made_at=0)
    assert plan.held_out == ()
    assert plan.n_examples == {"cards": 52, "corrections": 50}


def test_the_earlier_source_outdoes_the_later_one() -> None:
    text = "where is it?"
    again = [row._replace(text=text) for row in (correction(1, "track"), outcome(1, "invoice"))]
    plan = plan_of(
        [example(1)], [again[0], correction(2)], [again[1], outcome(3), outcome(2)._replace(text="Example 1")]
    )
    assert {row.row_id for row in (*plan.more, *plan.held_out)} == {"more.jsonl:1", "review:2", "decision:3"}
    assert plan.left_out == {"repeated": 3}


def test_a_correction_outdoes_an_outcome_of_the_same_text() -> None:
    plan = plan_of(corrections=[correction(1, "invoice")], outcomes=[outcome(1)._replace(text="Correction 1!")])
    assert plan.examples[-1] == Example("correction 1", "invoice")
    assert plan.left_out == {"repeated": 1}


def test_golden_texts_are_trained_on_only_where_they_stand_on_a_card() -> None:
    golden = [
        Row(f"g:{n}", text, "track", Source.EXAMPLES)
        for n, text in enumerate(("example 1", "Where is it", "outcome 1"))
    ]
    multi = [MultiExample("Example  1", ("track", "invoice")), MultiExample("both", ("track", "invoice"))]
    plan = plan_of([example(1)], outcomes=[outcome(1)], golden=golden, multi=multi)
    assert plan.more == ()
    assert plan.left_out == {"golden": 2}
    assert Example("where is it", "track") in plan.examples
    assert plan.multi == (multi[1],)


def test_weights_are_told_where_they_are_not_one() -> None:
    plan = plan_of(corrections=[correction(0)], outcomes=[outcome(n) for n in range(3)])
    light = {Example(row.text, row.intent): row.weight for row in plan.more if row.source is Source.OUTCOMES}
    assert light
    assert plan.weights == light


def test_texts_out_of_scope_are_no_examples() -> None:
    outside = [Row(f"o:{n}", f"outside {n}", "oos", Source.EXAMPLES) for n in range(20)]
    plan = plan_of(outside)
    assert plan.examples == [Example("where is it", "track"), Example("the bill", "invoice")]
    assert len(plan.out_of_scope) + plan.n_held_out["out_of_scope"] == 20
    assert plan.n_examples == {"cards": 2, "out_of_scope": len(plan.out_of_scope)}


@pytest.mark.parametrize("text", ["where is it", "track", "example 2", "both at once", "pinned"])
def test_all_that_is_read_or_trained_on_is_embedded(text: str) -> None:
    golden = [Row("g:1", "pinned", "track", Source.EXAMPLES)]
    multi = [MultiExample("both at once", ("track", "invoice"))]
    found = plan_of([example(2)], golden=golden, multi=multi).texts()
    assert found.count(text) == 1
    assert "oos" not in found


def test_a_plan_comes_back_equal_from_its_json() -> None:
    plan = plan_of(
        [example(n) for n in range(9)],
        [correction(1)],
        [outcome(1)],
        [Row("g:1", "pinned", "track", Source.EXAMPLES)],
        multi=[MultiExample("both", ("track", "invoice"))],
        left_out=Counter({"masked": 2}),
        data={"log": "0" * 64},
    )
    assert Plan.of_json(json.loads(json.dumps(plan.to_json()))) == plan
