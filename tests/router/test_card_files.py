from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.card import AgentCard, Capability
from models.errors import CardError
from router.card_files import read_card_files
from router.card_schemas import check_card
from router.nested_card import SECTIONS, flatten

SHOP = Path(__file__).parents[1] / "data" / "shop"
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file into the working directory, so that paths in messages are short."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def faults(*paths: Path | str) -> list[str]:
    with pytest.raises(CardError) as caught:
        read_card_files(paths)
    return [str(problem) for problem in caught.value.problems]


def one(path: Path) -> AgentCard:
    (card,) = read_card_files([path]).cards
    return card


def test_the_flat_form_is_read_with_named_inline_and_built_in_schemas() -> None:
    cards = {card.key[1:]: card for card in read_card_files([SHOP / "cards.yaml"]).cards}
    assert len(cards) == 7
    desk = cards["deposit_desk", "1.2.0"]
    assert desk.capabilities[0].input_schema == {
        "type": "object",
        "properties": {"amount": {"type": "number"}, "day": {"type": "string"}},
    }
    assert cards["counter_clerk", "3.0.0"].capabilities[0].input_schema == "text"
    assert cards["rental_desk", "0.8.1"].retry_policy.max_attempts == 1
    assert cards["deposit_desk", "2.0.0"].enabled is False


def test_the_nested_form_means_the_same_as_the_flat_one(write: Write) -> None:
    nested = one(SHOP / "card-nested.yaml")
    flat = write("flat.json", json.dumps(nested.model_dump(mode="json")))
    assert one(flat) == nested
    assert (nested.agent_id, nested.timeout_ms, nested.heartbeat_s, nested.warmup_s) == ("bike_locator", 2000, 15, 5)


def test_every_field_of_a_card_has_its_section() -> None:
    placed = {field for fields in SECTIONS.values() for field in fields}
    assert placed == set(AgentCard.model_fields) - {"capabilities"}


def test_nested_names_may_carry_their_units_or_not() -> None:
    reach = {"probe": {"path": "/", "interval": "1m", "timeout_ms": 5}, "retry": {"backoff": "0.5s"}, "heartbeat_s": 7}
    flat = flatten({"agent": {"agent_id": "a"}, "reach": reach, "governance": {"rate_limit": {"window": "1s"}}})
    assert flat.problems == []
    assert flat.card == {
        "agent_id": "a",
        "probe": {"path": "/", "interval_s": 60, "timeout_ms": 5},
        "retry": {"backoff_ms": 500},
        "heartbeat_s": 7,
        "rate_limit": {"window_ms": 1000},
    }


def test_a_list_may_hold_both_forms(write: Write) -> None:
    path = write("a.yaml", "agents:\n- agent_id: a\n- agent: {name: b}\n")
    assert [card.agent_id for card in read_card_files([path]).cards] == ["a", "b"]


def test_a_single_card_may_stand_at_the_top_with_schemas_beside_it(write: Write) -> None:
    text = "schemas: {s: {type: object}}\nagent_id: a\ncapabilities: [{intent: yes, input_schema: s}]\nx-note: hello\n"
    card = one(write("a.yaml", text))
    assert card.capabilities == [Capability(intent="yes", input_schema={"type": "object"})]


def test_a_folder_means_all_cards_in_it_sorted_and_hidden_ones_left_out(write: Write) -> None:
    for name in ("d/b.yml", "d/c/a.json", "d/a.yaml", "d/.hidden.yaml", "d/..data/a.yaml", "d/notes.txt"):
        write(name, json.dumps({"agent_id": Path(name).as_posix().replace("/", "-")}))
    files = read_card_files(["d"])
    assert [card.agent_id for card in files.cards] == ["d-a.yaml", "d-b.yml", "d-c-a.json"]
    assert files.files == (Path("d/a.yaml"), Path("d/b.yml"), Path("d/c/a.json"))
    assert files.warnings == ()


def test_a_file_that_is_named_twice_is_read_once(write: Write) -> None:
    path = write("d/a.yaml", "agent_id: a")
    os.symlink(path.resolve(), "d/b.yaml")
    assert len(read_card_files(["d", path, "d"]).cards) == 1


def test_a_policy_in_a_folder_of_cards_is_left_out_with_a_warning() -> None:
    files = read_card_files([SHOP])
    assert len(files.cards) == 8
    assert files.warnings == (f"{SHOP / 'policy.yaml'}: a policy, not cards; left out",)


def test_a_policy_that_is_named_as_a_card_is_an_error() -> None:
    path = SHOP / "policy.yaml"
    assert faults(path)[0].startswith(f"line 2, {path}:namespaces: unknown field")


def test_folders_and_files_without_cards_are_warned_of(write: Write) -> None:
    write("d/e/none.txt", "")
    write("a.yaml", "agents: []")
    write("s.yaml", "schemas: {s: {}}")
    assert read_card_files(["d", "a.yaml", "s.yaml"]).warnings == (
        "d: no .yaml, .yml, .json files in it",
        "a.yaml: no cards in it",
    )


def test_schemas_of_one_file_serve_the_others(write: Write) -> None:
    write("d/1.yaml", "agent_id: a\ncapabilities: [{intent: i, input_schema: s}]")
    write("d/2.yaml", "schemas: {s: {type: array}}")
    write("d/3.yaml", "schemas: {s: {type: array}}")
    assert read_card_files(["d"]).cards[0].capabilities[0].input_schema == {"type": "array"}


def test_all_problems_of_all_files_are_told_at_once(write: Write) -> None:
    write("d/a.yaml", "agents:\n- agent_id: a\n  wieght: 3\n- agent_id: b\n  version: 1.0\n")
    write("d/b.yaml", "agents: [\n")
    write("d/c.yaml", "agent: {name: c}\nreach: {timeout: soon}\n")
    assert faults("d", "nowhere") == [
        "nowhere: there is no such file or folder",
        "line 2, d/b.yaml: not valid YAML: did not find expected node content (while parsing a flow node)",
        "line 3, d/a.yaml:agents[0].wieght: unknown field; did you mean 'weight'?",
        'line 5, d/a.yaml:agents[1].version: expected text, got the number 1.0; quote it: "1.0"',
        "line 2, d/c.yaml:reach.timeout: 'soon' is no duration such as 500ms, 15s, 2m or 1h",
    ]


FLAT_FAULTS = [
    ("- agent_id: a\n  capabilities:\n  - intent: true\n",
     'line 4, a.yaml:agents[0].capabilities[0].intent: expected text, got true; quote it: "true"'),
    ("- agent_id: a\n  capabilities:\n  - intent: i\n    quality: high\n",
     "line 5, a.yaml:agents[0].capabilities[0].quality: expected a number, got text 'high'"),
    ("- agent_id: a\n  capabilities:\n  - intent: i\n    exmples: [x]\n",
     "line 5, a.yaml:agents[0].capabilities[0].exmples: unknown field; did you mean 'examples'?"),
    ("- agent_id: a\n  capabilities:\n  - intent: i\n    input_schema: txt\n",
     "line 5, a.yaml:agents[0].capabilities[0].input_schema: unknown schema 'txt'; known are text, none; "
     "did you mean 'text'?"),
    ("- agent_id: a\n  capabilities:\n  - intent: i\n    output_schema: {type: text}\n",
     "line 5, a.yaml:agents[0].capabilities[0].output_schema: type: 'text' is none of the types array, boolean, "
     "integer, null, number, object, string"),
    ("- agent_id: a\n  capabilities:\n  - intent: i\n    output_schema: {$ref: 'http://localhost/s'}\n",
     "line 5, a.yaml:agents[0].capabilities[0].output_schema: Resource 'http://localhost/s' is not present in a "
     "registry and retrieving it failed: ValueError: schemas are never fetched, put it under $defs"),
    ("- agent_id: a\n  capabilities:\n  - intent: i\n    input_schema: 5\n",
     "line 5, a.yaml:agents[0].capabilities[0].input_schema: expected a mapping or one of 'text', 'none', "
     "got the number 5"),
    ("- 5\n", "line 2, a.yaml:agents[0]: expected a card, got the number 5"),
    ("- endpoint: x\n", "line 2, a.yaml:agents[0].agent_id: required field is missing"),
    ("- agent_id: a\n- agent_id: b\n- agent_id: a\n",
     "line 4, a.yaml:agents[2]: a 0.0.0 in namespace default is defined a second time; the first is "
     "a.yaml:agents[0], line 2"),
]  # fmt: skip


@pytest.mark.parametrize(("agents", "told"), FLAT_FAULTS)
def test_a_fault_in_a_flat_card_has_its_line_and_path(write: Write, agents: str, told: str) -> None:
    assert faults(write("a.yaml", f"agents:\n{agents}")) == [told]


NESTED_FAULTS = [
    ("agent: {nmae: a}\n", ["line 1, a.yaml:agent.nmae: unknown field; did you mean 'name'?",
                            "line 1, a.yaml:agent.name: required field is missing"]),
    ("agent: {name: a, weight: 3}\n", ["line 1, a.yaml:agent.weight: belongs under governance"]),
    ("agent: {name: a}\nreach: {namespace: x}\n", ["line 2, a.yaml:reach.namespace: belongs under agent"]),
    ("agent: {name: a}\nwarmup: 3s\n", ["line 2, a.yaml:warmup: belongs under governance"]),
    ("agent: {name: a}\ngovernence: {}\n", ["line 2, a.yaml:governence: unknown field; did you mean 'governance'?"]),
    ("reach: {}\n", ["line 1, a.yaml:agent: required section is missing"]),
    ("agent: a\n", ["line 1, a.yaml:agent: expected a mapping, got text 'a'"]),
    ("agent:\n  name: 7\n", ['line 2, a.yaml:agent.name: expected text, got the number 7; quote it: "7"']),
    ("agent: {name: a}\nreach:\n  heartbeat: 15 seconds\n",
     ["line 3, a.yaml:reach.heartbeat: '15 seconds' is no duration such as 500ms, 15s, 2m or 1h"]),
    ("agent: {name: a}\nreach:\n  timeout: 0.5ms\n",
     ["line 3, a.yaml:reach.timeout: expected a whole number, got the number 0.5"]),
    ("agent: {name: a}\nreach:\n  timeout: 2s\n  timeout_ms: 2000\n",
     ["line 4, a.yaml:reach.timeout_ms: stands here a second time; the first is reach.timeout"]),
    ("agent: {name: a}\nreach:\n  probe:\n    path: x\n    interval: 1s\n",
     ["line 4, a.yaml:reach.probe.path: 'x' does not match the pattern ^/[\\x21-\\x7e]*$"]),
    ("agent: {name: a}\nreach: {retry: {backof: 1s}}\n",
     ["line 2, a.yaml:reach.retry.backof: unknown field; did you mean 'backoff_ms'?"]),
    ("agent: {name: a}\ncapabilities:\n- intent: i\n  cost_level: 9\n",
     ["line 4, a.yaml:capabilities[0].cost_level: must be at most 5, got 9"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "told"), NESTED_FAULTS)
def test_a_fault_in_a_nested_card_has_its_line_and_path(write: Write, text: str, told: list[str]) -> None:
    assert faults(write("a.yaml", text)) == told


FILE_FAULTS = [
    ("agnets: []\n", "line 1, a.yaml:agnets: unknown field; did you mean 'agents'?"),
    ("agents: []\nschema: {}\n", "line 2, a.yaml:schema: unknown field; did you mean 'schemas'?"),
    ("agents: {}\n", "line 1, a.yaml:agents: expected a list of cards, got a mapping"),
    ("[1]\n", "line 1, a.yaml: expected a mapping with 'agents' or one card, got a list"),
    ("schemas: [1]\n", "line 1, a.yaml:schemas: expected a mapping of names to schemas, got a list"),
    ("schemas:\n  text: {}\n", "line 2, a.yaml:schemas.text: 'text' is built in; choose another name"),
    ("schemas:\n  s: other\n", "line 2, a.yaml:schemas.s: expected a JSON Schema, got text 'other'"),
    ("schemas:\n  s: {required: a}\n", 'line 2, a.yaml:schemas.s: required: "a" is not of type "array"'),
]


@pytest.mark.parametrize(("text", "told"), FILE_FAULTS)
def test_a_fault_in_the_frame_of_a_file_is_told(write: Write, text: str, told: str) -> None:
    assert faults(write("a.yaml", text)) == [told]


def test_a_faulty_named_schema_is_told_once_not_at_each_use(write: Write) -> None:
    text = "schemas:\n  s: {type: 5}\nagents:\n- agent_id: a\n  capabilities: [{intent: i, input_schema: s}]\n"
    (told,) = faults(write("a.yaml", text))
    assert told.startswith("line 2, a.yaml:schemas.s: type: ")


def test_the_same_name_for_two_schemas_is_told_with_both_places(write: Write) -> None:
    write("d/1.yaml", "schemas: {s: {type: array}}")
    write("d/2.yaml", "schemas:\n  s: {type: object}")
    assert faults("d") == ["line 2, d/2.yaml:schemas.s: 's' is defined differently in d/1.yaml:schemas.s, line 1"]


def test_the_same_card_in_two_files_is_told_with_both_places(write: Write) -> None:
    write("d/1.yaml", "\nagent_id: a\nversion: 1.0.0")
    write("d/2.yaml", "agents:\n- agent: {name: a, version: 1.0.0}")
    assert faults("d") == [
        "line 2, d/2.yaml:agents[0]: a 1.0.0 in namespace default is defined a second time; the first is "
        "d/1.yaml, line 2"
    ]


@pytest.mark.parametrize("other", [{"version": "1.0.1"}, {"namespace": "test"}, {"agent_id": "b"}])
def test_cards_that_differ_in_one_part_of_the_key_live_side_by_side(write: Write, other: dict[str, Any]) -> None:
    card = {"agent_id": "a", "version": "1.0.0"}
    path = write("a.json", json.dumps({"agents": [card, {**card, **other}]}))
    assert len(read_card_files([path]).cards) == 2


def test_schemas_of_a_card_that_came_otherwise_can_be_checked() -> None:
    good = Capability(intent="a", input_schema="text", output_schema={"type": "object"})
    bad = Capability(intent="b", output_schema={"type": "text"})
    assert check_card(AgentCard(agent_id="a", capabilities=[good])) == ()
    (problem,) = check_card(AgentCard(agent_id="a", capabilities=[good, bad]))
    assert problem.path == "capabilities[1].output_schema"
