from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.errors import PolicyError
from models.policy import NamespacePolicy, Policy
from router.policy_file import parse_policy, policy_source, read_policy

SHOP = Path(__file__).parents[1] / "data" / "shop"


def faults(path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        read_policy(path)
    return [str(problem).replace(str(path), "policy.yaml") for problem in caught.value.problems]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def test_the_policy_of_the_shop_is_read() -> None:
    policy = read_policy(SHOP / "policy.yaml")
    assert policy.of("live/bikes").intents["erase_rider_data"].agents == ["records_officer"]
    assert policy.rules[0].preference == "best"
    assert policy.of("elsewhere") == NamespacePolicy()


def test_layers_merge_by_key_built_in_defaults_namespace() -> None:
    policy = parse_policy(
        {
            "defaults": {"hide_denied": True, "weights": {"load": 2.0}, "intents": {"a": {"risk": "low"}}},
            "namespaces": {"prod": {"weights": {"health": 3.0}, "intents": {"a": {"agents": ["x"]}, "b": {}}}},
        }
    )
    prod = policy.of("prod")
    assert prod.hide_denied is True
    assert (prod.weights.similarity, prod.weights.health, prod.weights.load) == (1.0, 3.0, 2.0)
    assert (prod.intents["a"].risk, prod.intents["a"].agents) == ("low", ["x"])
    assert set(prod.intents) == {"a", "b"}
    assert policy.defaults.weights.health == 1.0


def test_a_wording_may_be_given_in_parts_because_a_lower_layer_has_the_rest() -> None:
    fallback = parse_policy({"defaults": {"fallback": {"message_user": "Sorry."}}}).defaults.fallback
    assert fallback.message_user == "Sorry."
    assert fallback.message_internal == NamespacePolicy().fallback.message_internal


def test_null_takes_back_what_a_lower_layer_says() -> None:
    layers: dict[str, Any] = {
        "defaults": {"intents": {"a": {"agents": ["x"]}}},
        "namespaces": {"prod": {"intents": {"a": {"agents": None}}}},
    }
    assert parse_policy(layers).of("prod").intents["a"].agents is None


def test_sections_that_are_left_empty_count_as_absent(file: Path) -> None:
    file.write_text("version: 1\ndefaults:\nnamespaces:\n  prod:\nagents:\nrules:\n", encoding="utf-8")
    assert read_policy(file) == Policy(namespaces={"prod": NamespacePolicy()})


@pytest.mark.parametrize(("extend", "merged"), [(True, ["a", "b", "c"]), (False, ["b", "c"])])
def test_a_list_says_whether_it_extends_the_one_below(extend: bool, merged: list[str]) -> None:
    upper = {"extend_from_base": extend, "items": ["b", "c"]}
    value = {"defaults": {"cross_namespaces": ["a", "b"]}, "namespaces": {"prod": {"cross_namespaces": upper}}}
    assert parse_policy(value).of("prod").cross_namespaces == merged


def test_a_list_that_does_not_say_so_is_refused_with_its_path_and_the_remedy(file: Path) -> None:
    text = "defaults:\n  cross_namespaces: [a]\nnamespaces:\n  prod:\n    cross_namespaces: [b]\n"
    (told,) = faults(file, text)
    assert told.startswith("line 5, policy.yaml:namespaces.prod.cross_namespaces: 'defaults' has entries")
    assert "{extend_from_base: true, items: [...]}" in told


def test_lists_deep_inside_are_held_to_the_same(file: Path) -> None:
    text = (
        "defaults: {intents: {a: {agents: [x], required_permissions: [p]}}}\n"
        "namespaces:\n  prod: {intents: {a: {agents: [y], required_permissions: [q]}}}\n"
    )
    paths = [told.split(": ")[0] for told in faults(file, text)]
    assert paths == [
        "line 3, policy.yaml:namespaces.prod.intents.a.agents",
        "line 3, policy.yaml:namespaces.prod.intents.a.required_permissions",
    ]


@pytest.mark.parametrize("below", [{}, {"cross_namespaces": []}])
def test_a_list_may_stand_alone_where_no_lower_layer_has_entries(below: dict[str, Any]) -> None:
    value = {"defaults": below, "namespaces": {"prod": {"cross_namespaces": ["b"]}}}
    assert parse_policy(value).of("prod").cross_namespaces == ["b"]


def test_the_marked_form_is_accepted_where_there_is_nothing_to_extend() -> None:
    value = {"defaults": {"cross_namespaces": {"extend_from_base": True, "items": ["b"]}}}
    assert parse_policy(value).defaults.cross_namespaces == ["b"]


@pytest.mark.parametrize(
    ("upper", "told"),
    [
        ("{items: [b]}",
         "cross_namespaces: extend_from_base is missing: true adds to the layer below, false replaces it"),
        ("{extend_from_base: yes, items: [b]}",
         "cross_namespaces.extend_from_base: expected true or false, got text 'yes'"),
        ("{extend_from_base: true}", "cross_namespaces.items: is missing"),
        ("{extend_from_base: true, items: b}", "cross_namespaces.items: expected a list, got text 'b'"),
        ("{extend_from_base: true, items: [b], itms: [c]}",
         "cross_namespaces.itms: unknown field; did you mean 'items'?"),
    ],
)  # fmt: skip
def test_a_marked_list_is_complete(file: Path, upper: str, told: str) -> None:
    text = f"defaults: {{cross_namespaces: [a]}}\nnamespaces:\n  prod:\n    cross_namespaces: {upper}\n"
    assert faults(file, text) == [f"line 4, policy.yaml:namespaces.prod.{told}"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("defaults:\n  hide_denid: true\n", "line 2, policy.yaml:defaults.hide_denid: unknown field; did you mean "
                                            "'hide_denied'?"),
        ("defaults:\n  retention: {utterances: digest}\n",
         "line 2, policy.yaml:defaults.retention: belongs beside 'defaults', not in a layer"),
        ("namespaces:\n  prod: {learning: {mode: explore}}\n",
         "line 2, policy.yaml:namespaces.prod.learning: belongs beside 'defaults', not in a layer"),
        ("breaker: {open_ms: 5}\n", "line 1, policy.yaml:breaker: belongs under 'defaults' or a namespace"),
        ("rulez: []\n", "line 1, policy.yaml:rulez: unknown field; did you mean 'rules'?"),
        ("learning: {mode: guess}\n", "line 1, policy.yaml:learning.mode: expected one of 'observe', 'exploit', "
                                      "'explore', got text 'guess'"),
        ("risk:\n  high: always\n", "line 2, policy.yaml:risk.high: expected one of 'none', got text 'always'"),
        ("namespaces:\n  prod:\n    weights: {load: x}\n",
         "line 3, policy.yaml:namespaces.prod.weights.load: expected a number, got text 'x'"),
        ("namespaces:\n  prod: 5\n", "line 2, policy.yaml:namespaces.prod: expected a mapping, got the number 5"),
        ("namespaces: []\n", "line 1, policy.yaml:namespaces: expected a mapping, got a list"),
        ("rules:\n- pattern: a\n  preference: bst\n",
         "line 3, policy.yaml:rules[0].preference: expected one of 'auto', 'cheapest', 'best', got text 'bst'; "
         "did you mean 'best'?"),
        ("rules:\n- {pattern: a, preference: best}\n- {pattern: '(a', preference: best}\n",
         "line 3, policy.yaml:rules[1].pattern: no RE2 pattern: missing ): (a"),
        ("rules:\n- {pattern: '(?=a)', preference: best}\n",
         "line 2, policy.yaml:rules[0].pattern: no RE2 pattern: invalid perl operator: (?="),
        ("defalts:\n",
         "line 1, policy.yaml:defalts: unknown field; did you mean 'defaults'?"),
        ("- 1\n", "line 1, policy.yaml: expected a mapping, got a list"),
        ("rules: [\n", "line 2, policy.yaml: not valid YAML: did not find expected node content "
                       "(while parsing a flow node)"),
        ("", "line 1, policy.yaml: the file is empty"),
    ],
)  # fmt: skip
def test_each_fault_has_its_line_and_path(file: Path, text: str, told: str) -> None:
    assert faults(file, text) == [told]


def test_a_fault_that_namespaces_inherit_is_told_once_where_it_stands(file: Path) -> None:
    text = (
        "defaults:\n  cross_namespaces: [a b]\n  latency_weight: -1\nnamespaces:\n  x: {}\n  y: {latency_weight: -2}\n"
    )
    assert [told.rpartition(":")[0].split(": ")[0] for told in faults(file, text)] == [
        "line 2, policy.yaml:defaults.cross_namespaces[0]",
        "line 3, policy.yaml:defaults.latency_weight",
        "line 6, policy.yaml:namespaces.y.latency_weight",
    ]


def test_a_policy_over_the_api_has_paths_without_lines() -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy({"defaults": {"hide_denid": True}})
    (problem,) = caught.value.problems
    assert (problem.path, problem.line) == ("defaults.hide_denid", None)


def test_a_policy_written_out_is_read_back_equal() -> None:
    for policy in (Policy(), read_policy(SHOP / "policy.yaml")):
        assert parse_policy(policy_source(policy)) == policy
    extended = parse_policy(
        {
            "defaults": {"cross_namespaces": ["a"]},
            "namespaces": {"prod": {"cross_namespaces": {"extend_from_base": True, "items": ["b"]}}},
            "rules": [{"pattern": "x", "preference": "best"}],
            "agents": {"a": {"enabled": False}},
        }
    )
    assert parse_policy(policy_source(extended)) == extended


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        read_policy(tmp_path / "none.yaml")
