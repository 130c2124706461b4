"""Settings of a command: its options over the environment, what is wrong with either told in one line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from router.cli.output import fail

if TYPE_CHECKING:
    from models.settings import Settings


def known_environment() -> None:
    """End the command where the environment sets what is no setting: by a misspelt name the default stays in force."""
    prefix = "AGENCY_ROUTER_"
    found = [name for name in os.environ if name.upper().startswith(prefix)]
    if not found:
        return
    from models.settings import Settings
    from router.field_problems import closest

    known = [prefix + name.upper() for name in Settings.model_fields]
    wrong = []
    for name in sorted(found):
        if name.upper() not in known:
            meant = closest(name.upper().removeprefix(prefix), Settings.model_fields)
            asked = "" if meant is None else f" (did you mean {prefix}{meant.upper()}?)"
            wrong.append(f"the environment's {name} is no setting{asked}")
    if wrong:
        fail("settings: " + "; ".join([*wrong, "unset it, or see docs/settings.md for what there is"]), 2)


def settings_of(**given: Any) -> Settings:
    """The settings with these values over those of the environment; None leaves one to the environment.

    Ends the command where a value cannot be used.
    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from models.settings import Settings

    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors(include_url=False)]
        fail("settings: " + "; ".join(wrong), 2)
    except SettingsError as error:
        fail(f'settings: {error}; in the environment a list is written as JSON, such as ["cards.yaml"]', 2)
