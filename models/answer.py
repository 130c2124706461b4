"""Answer: the base of what only we construct."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from models.contract import Contract

# the slots of every model, set past the check that it is frozen
_set_members, _set_given, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


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
        _set_members(made, {**blank, **values})
        _set_given(made, set(values))
        _set_extra(made, None)
        _set_private(made, None)
        return made

    def members(self) -> dict[str, Any]:
        """Its fields under their names in JSON, not to be changed; a class with other names there says so."""
        return self.__dict__
