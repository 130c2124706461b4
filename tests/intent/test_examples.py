from __future__ import annotations

import gzip
from hashlib import sha256
from pathlib import Path

import pytest

from intent.examples import distinct, read_examples, read_numbered
from intent.fit_classifiers import Example
from intent.multi import MultiExample
from models.errors import ModelError


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_rows_are_read_and_other_fields_ignored(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        '{"text": "Where is it?", "intent": "track", "domain": 5}',
        "",
        '{"text":"x","intent":"oos"}',
    )
    found = read_examples([path])
    assert found.examples == (Example("Where is it?", "track"),)
    assert found.out_of_scope == ("x",)
    assert found.digests == {str(path): sha256(path.read_bytes()).hexdigest()}


def test_gzip_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress('{"text": "查快递", "intent": "track"}'.encode()))
    assert read_examples([path]).examples == (Example("查快递", "track"),)


def test_a_line_separator_in_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "one\u2028two", "intent": "a"}')
    assert len(read_examples([path]).examples) == 1


def test_all_wrong_lines_are_told_with_file_and_line(tmp_path: Path) -> None:
    good = '{"text": "a", "intent": "b"}'
    path = write(tmp_path / "a.jsonl", good, "nonsense", good, '{"text": 5, "intent": "b"}', '{"text": "a"}', "[1]")
    with pytest.raises(ModelError) as caught:
        read_examples([path])
    assert [problem.line for problem in caught.value.problems] == [2, 4, 5, 6]
    told = str(caught.value)
    for part in ("4 problem(s)", str(path), "not JSON", "text: expected a text, found 5", "intent: expected a text"):
        assert part in told


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x1f\x8b broken"])
def test_files_that_are_no_text_are_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(ModelError, match=r"a\.jsonl"):
        read_examples([tmp_path / "a.jsonl"])


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.jsonl cannot be read"):
        read_examples([tmp_path / "none.jsonl"])


def test_distinct_examples_are_normalized_and_those_without_words_left_out() -> None:
    rows = [Example("Ｗhere  is it", "a"), Example("Where is it", "a"), Example("Where is it", "b"), Example("?!", "a")]
    assert distinct(rows) == [Example("Where is it", "a"), Example("Where is it", "b")]


def test_rows_may_mean_several_intents_one_or_none(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        '{"text": "cancel it and tell me where it is", "intents": ["cancel", " track "], "fold": 3}',
        '{"text": "stop", "intents": ["cancel"]}',
        '{"text": "again", "intents": ["cancel", "cancel"]}',
        '{"text": "hm", "intents": []}',
        '{"text": "tell a joke", "intents": ["oos"]}',
        '{"text": "where is it", "intent": "track"}',
    )
    found = read_examples([path])
    assert found.multi == (MultiExample("cancel it and tell me where it is", ("cancel", "track")),)
    assert found.examples == (Example("stop", "cancel"), Example("again", "cancel"), Example("where is it", "track"))
    assert found.out_of_scope == ("hm", "tell a joke")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ('"intents": "cancel"', 'intents: expected a list of texts, found "cancel"'),
        ('"intents": ["cancel", 5]', 'intents: expected a list of texts, found ["cancel", 5]'),
        ('"intents": ["cancel", " "]', "intents: expected a list of texts"),
        ('"intents": null', "intents: expected a list of texts, found null"),
        ('"intents": ["a", "oos"]', 'intents: "oos" is none of the intents and stands alone'),
        ('"intent": "a", "intents": ["a", "b"]', "intents: give either these or intent, not both"),
    ],
)
def test_wrong_lists_of_intents_are_told(tmp_path: Path, fields: str, told: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"text": "x", {fields}}}')
    with pytest.raises(ModelError) as caught:
        read_examples([path])
    assert told in str(caught.value)


def test_numbered_rows_name_their_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "pinned.jsonl"
    path.write_text(
        '{"text": "a", "intent": "x"}\n\n{"text": "b", "intent": "oos"}\n{"text": "c", "intents": ["x", "y"]}\n',
        encoding="utf-8",
    )
    rows, digests = read_numbered([path])
    assert rows == [
        ("pinned.jsonl:1", MultiExample("a", ("x",))),
        ("pinned.jsonl:3", MultiExample("b", ())),
        ("pinned.jsonl:4", MultiExample("c", ("x", "y"))),
    ]
    assert list(digests) == [str(path)]
