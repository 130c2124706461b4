from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.errors import CardError, ConfigError, FieldProblem
from router.yaml_text import MAX_DEPTH, parse_yaml, read_yaml


def value_of(text: str, *, is_json: bool = False) -> Any:
    return parse_yaml(text.encode(), "file.yaml", is_json=is_json).value


def problem_of(content: str | bytes, *, is_json: bool = False) -> FieldProblem:
    data = content.encode() if isinstance(content, str) else content
    with pytest.raises(ConfigError) as caught:
        parse_yaml(data, "file.yaml", is_json=is_json)
    (problem,) = caught.value.problems
    assert problem.path == "file.yaml"
    return problem


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "y", "n", "2024-01-01", "12:30:00", "1_000", "1.2.3", "-x"])
def test_only_true_and_false_are_booleans_and_dates_are_text(word: str) -> None:
    assert value_of(f"intent: {word}") == {"intent": word}


@pytest.mark.parametrize(
    ("word", "value"),
    [("true", True), ("false", False), ("null", None), ("~", None), ("", None), ("12", 12), ("-3", -3), ("010", 10),
     ("1.0", 1.0), (".5", 0.5), ("1e3", 1000.0), ("'12'", "12"), ("!!str 12", "12")],
)  # fmt: skip
def test_plain_words_become_the_json_value_they_look_like(word: str, value: Any) -> None:
    found = value_of(f"key: {word}")["key"]
    assert found == value
    assert type(found) is type(value)


def test_integers_of_any_size_stay_exact() -> None:
    assert value_of(f"key: {10**40}") == {"key": 10**40}


@pytest.mark.parametrize("word", [".nan", ".inf", "-.INF"])
def test_numbers_that_are_not_finite_are_refused_with_their_line(word: str) -> None:
    problem = problem_of(f"a: 1\nb: {word}\n")
    assert problem.line == 2
    assert "quote it" in problem.message


@pytest.mark.parametrize("number", ["1e999", "9" * 5000])
def test_numbers_too_large_to_be_read_are_refused(number: str) -> None:
    assert problem_of(f"a: {number}") == FieldProblem("file.yaml", "a number too large to be read", 1)


def test_a_key_that_stands_twice_is_refused_with_both_lines() -> None:
    problem = problem_of("agents:\n  - version: a\n    weight: 1\n    version: b\n")
    assert problem.line == 4
    assert problem.message == "the key 'version' stands here a second time; the first is in line 2"


@pytest.mark.parametrize("key", ["1", "true", "null", "1.5"])
def test_a_key_that_is_no_text_is_refused_with_the_remedy(key: str) -> None:
    assert problem_of(f"a: b\n{key}: c").message == f'a key must be text, got {key}; quote it: "{key}"'


@pytest.mark.parametrize("text", ["? [a]\n: b", "{{a: b}: c}", "a: &x 1\n*x : 2"])
def test_a_key_that_is_no_scalar_is_refused(text: str) -> None:
    assert problem_of(text).message.startswith("a key must be text, got")


def test_a_second_document_is_refused() -> None:
    assert problem_of("a: 1\n---\nb: 2\n") == FieldProblem(
        "file.yaml", "a second document begins here; a file holds one", 2
    )


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing but a remark\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    assert problem_of(text).message == "the file is empty"


def test_bytes_that_are_not_utf8_are_refused_with_their_line() -> None:
    assert problem_of(b"a: 1\nb: \xff\n") == FieldProblem("file.yaml", "not UTF-8: byte 0xff", 2)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert value_of("\ufeffa: 1") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "line"), [("a: [1,\nb]: 2", 2), ("a: 1\nb: c: d", 2), ("a: 'x", 1), ("a: @x", 1), ("a: 1\nb: \x00", 2)]
)
def test_a_syntax_error_has_its_line(text: str, line: int) -> None:
    problem = problem_of(text)
    assert problem.line == line
    assert problem.message.startswith("not valid YAML: ")


def test_a_tab_as_indentation_is_named() -> None:
    assert problem_of("a:\n\tb: 1").message.endswith("indent with spaces, not tabs")


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!secret", "!!timestamp", "!!binary", "!!set"])
def test_tags_beyond_text_are_refused(tag: str) -> None:
    assert "is not allowed" in problem_of(f"a: {tag} x").message


def test_an_alias_is_the_value_of_its_anchor() -> None:
    assert value_of("a: &x [1]\nb: *x") == {"a": [1], "b": [1]}


def test_own_keys_win_over_merged_ones_and_the_first_mapping_over_the_second() -> None:
    text = "a: &a {k: 1, l: 1}\nb: &b {k: 2, m: 2}\nc: {k: 3, <<: [*a, *b]}\nd: {<<: [*b, *a]}"
    assert value_of(text)["c"] == {"k": 3, "l": 1, "m": 2}
    assert value_of(text)["d"] == {"k": 2, "l": 1, "m": 2}


def test_only_mappings_can_be_merged() -> None:
    assert problem_of("<<: 5").message == "'<<' merges mappings, got something else"


@pytest.mark.parametrize("text", ["a: *x", "a: &x [*x]"])
def test_an_alias_without_a_finished_anchor_is_refused(text: str) -> None:
    assert problem_of(text).message == "the alias *x has no &x that ends before it"


def test_a_document_that_aliases_blow_up_is_refused() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    problem = problem_of("\n".join(lines))
    assert problem.line == 6
    assert problem.message == "aliases expand this document beyond 1000000 values"


def test_long_texts_count_for_more_when_they_are_copied() -> None:
    text = f"a: &a {'x' * 200_000}\nb: [{', '.join(['*a'] * 600)}]"
    assert "aliases expand" in problem_of(text).message


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 900, 100_000])
def test_depth_is_bounded(levels: int) -> None:
    assert "nest" in problem_of("[" * levels + "]" * levels).message


def test_depth_is_bounded_through_aliases_too() -> None:
    lines = ["a0: &a0 [1]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, MAX_DEPTH + 1)]
    assert problem_of("\n".join(lines)).message == f"nested deeper than {MAX_DEPTH} levels"


def test_every_value_has_the_line_of_its_key_or_item() -> None:
    text = b"agents:\n  - agent_id: a\n    capabilities:\n      - intent: x\n  -\n    agent_id: b\n"
    document = parse_yaml(text, "file.yaml")
    assert document.line_of(()) == 1
    assert document.line_of(("agents", 0, "capabilities")) == 3
    assert document.line_of(("agents", 0, "capabilities", 0, "intent")) == 4
    assert document.line_of(("agents", 1, "agent_id")) == 6


def test_what_is_not_in_the_text_has_the_line_of_its_nearest_ancestor() -> None:
    document = parse_yaml(b"a:\n  b:\n    c: 1\n", "file.yaml")
    assert document.line_of(("a", "b", "missing", 3)) == 2


def test_an_aliased_value_has_the_line_of_the_alias_and_its_parts_those_of_the_anchor() -> None:
    document = parse_yaml(b"a: &x\n  k: 1\nb: *x\nc: [*x]\n", "file.yaml")
    assert document.line_of(("b",)) == 3
    assert document.line_of(("c", 0)) == 4
    assert document.line_of(("b", "k")) == 2


def test_json_may_have_tabs_and_escaped_surrogates() -> None:
    text = '{\n\t"a":\t"\\ud83d\\ude00 \\\\ud83d \\/",\n\t"b": [1E5, true, null]\n}'
    assert value_of(text, is_json=True) == {"a": "😀 \\ud83d /", "b": [1e5, True, None]}


def test_a_lone_surrogate_in_json_is_refused() -> None:
    assert problem_of('{"a": "\\ud83d"}', is_json=True).line == 1


def test_json_files_are_known_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "cards.JSON"
    path.write_text('{\t"a": 1}', encoding="utf-8")
    assert read_yaml(path).value == {"a": 1}


def test_a_file_that_cannot_be_read_raises_the_error_asked_for(tmp_path: Path) -> None:
    with pytest.raises(CardError) as caught:
        read_yaml(tmp_path / "none.yaml", CardError)
    assert caught.value.problems == (
        FieldProblem(str(tmp_path / "none.yaml"), "cannot be read: No such file or directory"),
    )
