"""Settings of a command: its options over the environment, what is wrong with either told in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.cli.output import fail

if TYPE_CHECKING:
    from models.settings import Settings


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
