"""`agency-router backup` and `restore`: copies of a store; `agency-router store migrate`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from router.cli.keys import JsonOption, StoreOption
from router.cli.output import emit_json, fail, say, store_url

app = typer.Typer(help="The store.", no_args_is_help=True)


@app.callback()
def store() -> None:
    """The store."""


@app.command()
def migrate(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Bring the store to the schema of this release; a service of an older one must not run."""
    from models.errors import RouterError
    from router.clock import SystemClock
    from router.stores.opened import migrated

    url = store_url(store)
    try:
        before, after = migrated(url, int(SystemClock().now_ms()))
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json({"store": url, "before": before, "after": after})
    elif before == after:
        say(f"{url} has the schema {after!r} already.")
    else:
        say(f"{url} is brought from the schema {before!r} to {after!r}.")


def backup(
    out: Annotated[Path, typer.Argument(help="The file to make.")],
    store: StoreOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a consistent copy of the store to a file; the service may run meanwhile."""
    from models.errors import RouterError
    from router.stores import backup as copies

    url = store_url(store)
    try:
        asyncio.run(copies.backup(url, out, is_forced=force))
        n_bytes = out.stat().st_size
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json({"store": url, "out": str(out), "n_bytes": n_bytes})
    else:
        say(f"{url} is copied to {out} ({n_bytes} bytes).")


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `backup` made.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace the store by a backup; the service must not run."""
    from models.errors import RouterError
    from router.stores import backup as copies

    url = store_url(store)
    try:
        asyncio.run(copies.restore(file, url))
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json({"store": url, "file": str(file)})
    else:
        say(f"{url} is restored from {file}.")
