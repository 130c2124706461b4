"""Which annotation of a model stands at the location of an error."""

from __future__ import annotations

import types
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

FieldPath = tuple[str | int, ...]
"""Keys and positions from the root to a value."""


def walk(loc: Sequence[str | int], model: Any) -> tuple[FieldPath, list[Any], bool]:
    """Follow a location of pydantic's through annotations.

    Args:
        loc: keys and positions, between them the names of union members and `[key]`.
        model: a model class or another annotation.

    Returns:
        The path without those names; what may stand at its end or, for an unknown field, the models that hold it;
        whether a union was met.

    >>> from models.request import RouteRequest
    >>> walk(("cross_namespace", "list[constrained-str]", 0), RouteRequest)[0]
    ('cross_namespace', 0)
    """
    current, path, in_union = _members(model), [], False
    owners = current
    steps = list(loc)
    while steps:
        if len(current) > 1:
            in_union = True
            tag = str(steps.pop(0))
            current = [each for each in current if getattr(each, "__name__", None) == tag] or current
            owners = current
            if not steps:
                break
        step = steps.pop(0)
        if step == "[key]":
            break
        path.append(step)
        inner = [member for each in current for member in _inside(each, step)]
        owners = inner or [each for each in current if _is_model(each)]
        current = inner
    return tuple(path), owners, in_union


def _members(annotation: Any) -> list[Any]:
    """The alternatives of an annotation, None left out."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [member for part in get_args(annotation) for member in _members(part)]
    return [] if annotation is type(None) else [annotation]


def _inside(annotation: Any, step: str | int) -> list[Any]:
    """What may stand under `step`."""
    if _is_model(annotation):
        for name, info in annotation.model_fields.items():
            if step in (name, info.alias, info.validation_alias):
                return _members(info.annotation)
        return []
    arguments = get_args(annotation)
    if get_origin(annotation) is dict:
        return _members(arguments[1])
    if get_origin(annotation) in (list, tuple, Sequence):
        return _members(arguments[0])
    return []


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def field_names(owners: Sequence[Any]) -> list[str]:
    """The fields of those of the annotations that are models."""
    return [info.alias or name for each in owners if _is_model(each) for name, info in each.model_fields.items()]


def literals(owners: Sequence[Any]) -> list[Any]:
    """The values of those of the annotations that are Literals or enumerations."""
    found = [value for each in owners if get_origin(each) is Literal for value in get_args(each)]
    enums = [each for each in owners if isinstance(each, type) and issubclass(each, Enum)]
    return found + [member.value for each in enums for member in each]
