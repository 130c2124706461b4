"""Answer: the base of what only we construct."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from models.contract import Contract

_set = object.__setattr__


@lru_cache(maxsize=256)
def _blank(model: type[BaseModel]) -> tuple[dict[str, Any], frozenset[str]]:
    """(all fields in their order with their defaults, names of those that have none).

    All instances share the defaults: they are frozen, and nobody changes the empty lists in them.
    """
    fields = model.model_fields
    required = frozenset(name for name, field in fields.items() if field.is_required())
    blank = {
        name: None if name in required else field.get_default(call_default_factory=True)
        for name, field in fields.items()
    }
    return blank, required


class Answer(Contract):
    """Base of what only we construct."""

    model_config = ConfigDict(extra="forbid", strict=False, frozen=True)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """An answer of values that are right by construction, unchecked: validation is for what comes in.

        Does what `model_construct` does, without its walk over all fields: an answer is built on every request.
        """
        blank, required = _blank(cls)
        if not required <= values.keys():
            raise TypeError(f"{cls.__name__} needs {', '.join(sorted(required - values.keys()))} too")
        made = cls.__new__(cls)
        _set(made, "__dict__", {**blank, **values})
        _set(made, "__pydantic_fields_set__", set(values))
        _set(made, "__pydantic_extra__", None)
        _set(made, "__pydantic_private__", None)
        return made

    def members(self) -> dict[str, Any]:
        """Its fields under their names in JSON, not to be changed; a class with other names there says so."""
        return self.__dict__
