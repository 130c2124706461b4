import gzip
import json
from pathlib import Path

import pytest

from benchmarks.data_sets import (
    Row,
    cycled,
    example_utterances,
    examples_by_intent,
    one_namespace,
    permissions_of,
    read_rows,
)
from router.card_files import read_card_files
from tests.builders import capability, card

CARDS = """\
agents:
- agent_id: red
  namespace: paint.red
  capabilities:
  - intent: mix
    description: 'namespace: stays here'
- agent_id: blue
  namespace: paint.blue
  capabilities:
  - intent: mix
"""


def test_rows_are_read_with_the_fields_that_count(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "hello", "intent": "greet", "domain": "x", "part": "val"}) + "\n\n")
    assert read_rows(path) == [Row("hello", "greet", part="val")]


def test_a_line_separator_within_a_text_ends_no_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"text": "one\u2028line", "intent": "a", "lang": "en"}, {"text": "two", "intent": "b", "lang": "zh"}]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    assert [row.text for row in read_rows(path)] == ["one\u2028line", "two"]
    assert read_rows(path, lang="zh") == [Row("two", "b", lang="zh")]


def test_a_gzipped_file_is_found_by_its_plain_name(tmp_path: Path) -> None:
    row = {"text": "hello", "intent": "greet", "dup_in_train": True}
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    assert read_rows(tmp_path / "rows.jsonl") == [Row("hello", "greet", is_repeat=True)]


def test_a_missing_file_tells_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="--data"):
        read_rows(tmp_path / "rows.jsonl")


def test_all_agents_come_into_one_namespace_and_texts_stay(tmp_path: Path) -> None:
    (tmp_path / "cards.yaml").write_text(CARDS)
    cards = read_card_files([one_namespace(tmp_path / "cards.yaml", tmp_path / "out.yaml")]).cards
    assert {(card.agent_id, card.namespace) for card in cards} == {("red", "default"), ("blue", "default")}
    assert cards[0].capabilities[0].description == "namespace: stays here"


def test_permissions_and_examples_are_gathered_from_all_cards() -> None:
    cards = [
        card("a", capability("mix", ["b", "a"], required_permissions=["p"])),
        card("b", capability("mix", ["b", "c"], required_permissions=["q"])),
        card("off", capability("mix", ["d"]), enabled=False),
    ]
    assert permissions_of(cards) == {"p", "q"}
    assert examples_by_intent(cards) == {"mix": ["a", "b", "c"]}


def test_items_are_taken_from_the_start_again() -> None:
    assert cycled(["a", "b"], 3) == ["a", "b", "a"]
    with pytest.raises(ValueError, match="there are 0"):
        cycled([], 3)


def test_the_example_set_has_sentences() -> None:
    assert len(example_utterances()) > 10
