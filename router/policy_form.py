"""What a policy on the wire looks like, for the OpenAPI document: layers whose lists say how they merge.

A list of a namespace stands alone only where `defaults` has no entries in the same list (SPEC A15). JSON Schema cannot
say "the same", so the document has two forms: `defaults` without lists, or namespaces whose lists are all marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Literal

Lists = Literal["empty", "marked", "either"]
"""How lists are written: without entries; as {extend_from_base, items}; as that or as a plain list."""

_REF = "#/components/schemas/"
_NAMES: dict[Lists, str] = {"empty": "WithoutLists", "marked": "MarkedLists", "either": ""}


def policy_forms(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The component schemas of a policy's body.

    Args:
        schemas: those that pydantic makes of `Policy`, by name.
    """
    forms: dict[str, Any] = {"RuleBody": _rule(schemas["Rule"]), "QuotaBody": _quota(schemas["Quota"])}
    for lists, name in _NAMES.items():
        forms[f"IntentPolicy{name}Body"] = _intent(schemas["IntentPolicy"], lists)
        forms[f"NamespacePolicy{name}Body"] = _layer(schemas, lists)
    forms["PolicyBody"] = {
        "description": "The whole policy. A section that is null counts as absent.",
        "anyOf": [
            _policy(schemas["Policy"], "empty", "either", "`defaults` has no lists with entries."),
            _policy(
                schemas["Policy"],
                "either",
                "marked",
                "Lists of namespaces say whether they extend those of `defaults` or replace them.",
            ),
        ],
    }
    return forms


def _policy(schema: Mapping[str, Any], defaults: Lists, namespaces: Lists, description: str) -> dict[str, Any]:
    policy = deepcopy(dict(schema))
    properties = policy["properties"]
    properties["rules"]["items"] = {"$ref": f"{_REF}RuleBody"}
    properties["quotas"]["items"] = {"$ref": f"{_REF}QuotaBody"}
    properties["defaults"] = {"$ref": f"{_REF}NamespacePolicy{_NAMES[defaults]}Body"}
    layer = _nullable({"$ref": f"{_REF}NamespacePolicy{_NAMES[namespaces]}Body"})
    properties["namespaces"]["patternProperties"] = dict.fromkeys(properties["namespaces"]["patternProperties"], layer)
    policy["properties"] = {name: _nullable(each) for name, each in properties.items()}
    policy["description"] = description
    return policy


def _rule(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A rule looks for something and says something: what is null or empty is neither."""
    rule = deepcopy(dict(schema))
    text, _ = rule["properties"]["pattern"]["anyOf"]
    text["format"] = "regex"
    some_text, some_entries = {"type": "string"}, {"type": "array", "minItems": 1}
    rule["allOf"] = [
        {"anyOf": [_given("pattern", some_text), _given("keywords", some_entries)]},
        {"anyOf": [_given("preference", some_text), _given("intent", some_text)]},
    ]
    return rule


def _quota(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A quota limits something of somebody: what is null limits nothing, and false tells nobody apart."""
    quota = deepcopy(dict(schema))
    number, text, true = {"type": "integer"}, {"type": "string"}, {"const": True}
    whose = (("caller", text), ("per_caller", true), ("agent", text), ("per_agent", true))
    quota["allOf"] = [
        {"anyOf": [_given("max_calls", number), _given("max_tokens", number)]},
        {"anyOf": [_given(name, given) for name, given in whose]},
        # nobody is refused where callers are not told apart
        {"anyOf": [{"properties": {"over": {"enum": ["queue", "degrade"]}}}, *(_given(*each) for each in whose[:2])]},
    ]
    return quota


def _given(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"required": [name], "properties": {name: dict(schema)}}


def _layer(schemas: Mapping[str, Any], lists: Lists) -> dict[str, Any]:
    layer = deepcopy(dict(schemas["NamespacePolicy"]))
    properties = layer["properties"]
    # one wording can be taken over from the layer below
    fallback = deepcopy(dict(schemas["FallbackForm"]))
    del fallback["required"]
    properties["fallback"] = fallback
    properties["cross_namespaces"] = _list(properties["cross_namespaces"], lists)
    intent = {"$ref": f"{_REF}IntentPolicy{_NAMES[lists]}Body"}
    properties["intents"]["patternProperties"] = dict.fromkeys(properties["intents"]["patternProperties"], intent)
    return layer


def _intent(schema: Mapping[str, Any], lists: Lists) -> dict[str, Any]:
    intent = deepcopy(dict(schema))
    properties = intent["properties"]
    properties["required_permissions"] = _list(properties["required_permissions"], lists)
    plain, null = properties["agents"]["anyOf"]
    properties["agents"] = {"anyOf": [_list(plain, lists), null]}
    return intent


def _list(plain: Mapping[str, Any], lists: Lists) -> dict[str, Any]:
    if lists == "empty":
        return {"type": "array", "maxItems": 0}
    marked = {
        "type": "object",
        "description": "true adds to the layer below, false replaces it",
        "required": ["extend_from_base", "items"],
        "additionalProperties": False,
        "properties": {
            "extend_from_base": {"type": "boolean"},
            "items": {"type": "array", "items": plain["items"]},
        },
    }
    return marked if lists == "marked" else {"anyOf": [{"type": "array", "items": plain["items"]}, marked]}


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema), {"type": "null"}]}
