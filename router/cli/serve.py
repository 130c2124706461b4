"""`agency-router serve`: the service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from router.cli.output import fail
from router.cli.settings import settings_of

if TYPE_CHECKING:
    from models.settings import Settings


def serve(
    cards: Annotated[
        list[Path] | None,
        typer.Option(help="Card file or folder; may be given several times. None: the stored set, or the example set."),
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="Policy file.")] = None,
    model: Annotated[Path | None, typer.Option(help="Folder of trained classifiers (agency-router train).")] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to bind; beyond loopback every call needs a key. [default: 127.0.0.1]")
    ] = None,
    port: Annotated[int | None, typer.Option(help="TCP port; 0 takes a free one. [default: 8080]")] = None,
    store: Annotated[str | None, typer.Option(help="Store URL. [default: sqlite:///agency-router.db]")] = None,
) -> None:
    """Run the service until it is told to stop."""
    given = tuple(cards) if cards else None
    _run(settings_of(cards=given, policy=policy, model=model, host=host, port=port, store=store))


def _run(settings: Settings) -> None:
    import logging

    from models.errors import RouterError
    from router.server import run

    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # below that the last two write down what they are given, utterances among it
    for name in ("alembic", "aiosqlite", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        run(settings)
    except RouterError as error:
        fail(str(error))
