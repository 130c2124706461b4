"""What a JSON Schema on a card looks like, for the OpenAPI document: the keywords of 2020-12 with their own types.

Of the schemas inside it only the conditions are spelled out (generators know these words): a description that refers to
itself makes generators run for minutes.
"""

from __future__ import annotations

from typing import Any

_ANY = {"type": ["object", "boolean"]}
_SELF = {**_ANY, "description": "A JSON Schema.", "properties": dict.fromkeys(("if", "then", "else"), _ANY)}
_COUNT = {"type": "integer", "minimum": 0}
_LIST = {"type": "array", "items": _SELF, "minItems": 1}
_MAP = {"type": "object", "additionalProperties": _SELF}
_TYPE = {"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]}

JSON_SCHEMA_FORM: dict[str, Any] = {
    "type": "object",
    "description": "JSON Schema 2020-12. References outside the schema are refused, patterns match in linear time.",
    "properties": {
        "title": {"type": "string"},
        "description": {"type": "string"},
        "type": {"anyOf": [_TYPE, {"type": "array", "items": _TYPE, "minItems": 1, "uniqueItems": True}]},
        "enum": {"type": "array"},
        "properties": _MAP,
        "additionalProperties": _SELF,
        "propertyNames": _SELF,
        "required": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "minProperties": _COUNT,
        "maxProperties": _COUNT,
        "items": _SELF,
        "prefixItems": _LIST,
        "contains": _SELF,
        "minItems": _COUNT,
        "maxItems": _COUNT,
        "uniqueItems": {"type": "boolean"},
        "minLength": _COUNT,
        "maxLength": _COUNT,
        "pattern": {"type": "string", "format": "regex"},
        "format": {"type": "string"},
        "minimum": {"type": "number"},
        "maximum": {"type": "number"},
        "exclusiveMinimum": {"type": "number"},
        "exclusiveMaximum": {"type": "number"},
        "multipleOf": {"type": "number", "exclusiveMinimum": 0},
        "allOf": _LIST,
        "anyOf": _LIST,
        "oneOf": _LIST,
        "not": _SELF,
        "if": _SELF,
        "then": _SELF,
        "else": _SELF,
        "dependentRequired": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        },
        "dependentSchemas": _MAP,
        "patternProperties": {"type": "object", "propertyNames": {"format": "regex"}, "additionalProperties": _SELF},
        "unevaluatedItems": _SELF,
        "unevaluatedProperties": _SELF,
        "minContains": _COUNT,
        "maxContains": _COUNT,
        "readOnly": {"type": "boolean"},
        "writeOnly": {"type": "boolean"},
        "deprecated": {"type": "boolean"},
        "examples": {"type": "array"},
        "$defs": _MAP,
        "$comment": {"type": "string"},
    },
}
