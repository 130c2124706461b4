"""Names that options give: one that nothing can ever have is a slip of the pen, and not an empty result."""

from __future__ import annotations

from typing import Any

from router.cli.output import UNUSABLE, fail


def namespace_of(text: str | None) -> str | None:
    """The namespace that `--namespace` gives; None where it is not given. Ends the command where it can be none."""
    from models.contract import Namespace

    return _checked("--namespace", text, Namespace)


def intent_of(text: str | None) -> str | None:
    """The same of an intent and `--intent`."""
    from models.contract import IntentName

    return _checked("--intent", text, IntentName)


def _checked(option: str, text: str | None, kind: Any) -> str | None:
    from pydantic import TypeAdapter, ValidationError

    from router.field_problems import problems_of

    if text is None:
        return None
    try:
        name: str = TypeAdapter(kind).validate_python(text)
    except ValidationError as error:
        fail(f"{option}: {problems_of(error, kind)[0].message}", UNUSABLE)
    return name
