"""`agency-router backup` and `restore`: copies of a store; `agency-router store migrate`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.keys import JsonOption, StoreOption
from router.cli.output import emit_json, fail, say, store_url

if TYPE_CHECKING:
    from router.store_copies import CopiedModels

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
    out: Annotated[Path, typer.Argument(help="The file to make; promoted models go to the folder <OUT>.models.")],
    store: StoreOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a consistent copy of the store to a file; the service may run meanwhile."""
    from models.errors import RouterError
    from router.store_copies import back_up

    url = store_url(store)
    try:
        copied = asyncio.run(back_up(url, out, is_forced=force))
        n_bytes = out.stat().st_size
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json({"store": url, "out": str(out), "n_bytes": n_bytes, **_told(copied)})
    else:
        say(f"{url} is copied to {out} ({n_bytes} bytes).")
        if copied.digests:
            say(f"{len(copied.digests)} promoted model(s) are copied to {copied.folder}: keep it with the file.")
        _say_missing(copied)


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `backup` made; its models are in <FILE>.models.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace the store by a backup; the service must not run."""
    from models.errors import RouterError
    from router.store_copies import put_back

    url = store_url(store)
    try:
        copied = asyncio.run(put_back(file, url))
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json({"store": url, "file": str(file), **_told(copied)})
    else:
        say(f"{url} is restored from {file}.")
        if copied.digests:
            say(f"{len(copied.digests)} promoted model(s) are in {copied.folder}.")
        _say_missing(copied)


def _told(copied: CopiedModels) -> dict[str, Any]:
    found, missing = list(copied.digests), list(copied.missing)
    return {"models": {"folder": str(copied.folder) if found else None, "digests": found, "missing": missing}}


def _say_missing(copied: CopiedModels) -> None:
    for digest in copied.missing:
        say(f"warning: the promoted model {digest} is missing: promote its folder again, or roll it back")
