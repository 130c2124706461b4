"""`agency-router serve`: the service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.output import fail

if TYPE_CHECKING:
    from models.settings import Settings


def serve(
    cards: Annotated[
        list[Path] | None,
        typer.Option(help="Card file or folder; may be given several times. None: the stored set, or the example set."),
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="Policy file.")] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to bind; beyond loopback every call needs a key. [default: 127.0.0.1]")
    ] = None,
    port: Annotated[int | None, typer.Option(help="TCP port; 0 takes a free one. [default: 8080]")] = None,
    store: Annotated[str | None, typer.Option(help="Store URL. [default: sqlite:///agency-router.db]")] = None,
) -> None:
    """Run the service until it is told to stop."""
    from pydantic import ValidationError

    given: dict[str, Any] = {
        "cards": tuple(cards) if cards else None,
        "policy": policy,
        "host": host,
        "port": port,
        "store": store,
    }
    from models.settings import Settings

    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        fail("settings: " + "; ".join(wrong), 2)
    _run(settings)


def _run(settings: Settings) -> None:
    import logging

    from models.errors import RouterError
    from router.server import run

    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        run(settings)
    except RouterError as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot bind {settings.host}:{settings.port}: {error.strerror or error}")
