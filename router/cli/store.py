"""`agency-router backup` and `agency-router restore`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from router.cli.keys import JsonOption, StoreOption
from router.cli.output import emit_json, fail, say, store_url


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
