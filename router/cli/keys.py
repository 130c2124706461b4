"""`agency-router keys`: make, list and revoke the callers' keys."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.output import UNUSABLE, emit_json, fail, say, store_url, table

if TYPE_CHECKING:
    from pydantic import ValidationError

    from models.key import Key

app = typer.Typer(help="The callers' keys.", no_args_is_help=True)

StoreOption = Annotated[
    str | None,
    typer.Option("--store", envvar="AGENCY_ROUTER_STORE", help="Store URL, such as sqlite:///relative.db."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_RIGHT = {
    "name": ("NAME", "1 to 128 characters, no control characters among them and no blank at either end"),
    "permissions": ("--permission", "1 to 128 visible ASCII characters without spaces, such as user:erase"),
    "namespaces": ("--namespace", "letters, digits, '.', '_', '-' in parts divided by '/', such as prod/commerce"),
    "callers": ("--caller", "an agent id: 1 to 128 letters, digits, '.', '_', ':', '@', '-', such as order-agent"),
}


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is called.")],
    permission: Annotated[list[str] | None, typer.Option(help="What its bearer may; none means nothing.")] = None,
    namespace: Annotated[list[str] | None, typer.Option(help="Where it may route; none means anywhere.")] = None,
    caller: Annotated[list[str] | None, typer.Option(help="Agent ids it may speak as; none means any.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key and print it, once; it cannot be shown again."""
    from pydantic import ValidationError

    from models.errors import RouterError
    from router.clock import SystemClock
    from router.keys import create_key

    try:
        key, token = create_key(name, permission or (), namespace or None, caller or None, int(SystemClock().now_ms()))
        asyncio.run(_add(store_url(store), key))
    except ValidationError as error:
        fail(_explain(error), 2)
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json({"key": token, **_shown(key)})
    else:
        print(token)
        say(f"This is the key {name!r}. It is not stored and cannot be shown again: Authorization: Bearer <key>")


@app.command("list")
def list_keys(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show all keys, revoked ones included, without their secrets."""
    from models.errors import RouterError

    try:
        keys = [_shown(key) for key in asyncio.run(_load(store_url(store)))]
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if as_json:
        emit_json({"keys": keys})
    else:
        columns = ["name", "key_id", "permissions", "namespaces", "callers", "created_at", "revoked_at"]
        table(columns, [[_cell(column, key[column]) for column in columns] for key in keys])


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(help="The key's name.")], store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Make a key invalid, for good; its name becomes free."""
    from models.errors import RouterError
    from router.clock import SystemClock

    url, now_ms = store_url(store), int(SystemClock().now_ms())
    try:
        is_revoked = asyncio.run(_revoke(url, name, now_ms))
    except RouterError as error:
        fail(str(error))
    if not is_revoked:
        fail(f"{url!r} holds no valid key named {name!r}: see `agency-router keys list`")
    if as_json:
        emit_json({"name": name, "revoked_at": now_ms})
    else:
        say(f"The key {name!r} is revoked.")


async def _add(url: str, key: Key) -> None:
    from router.stores.open import open_store

    async with open_store(url) as store:
        await store.keys.add_key(key)


async def _load(url: str) -> list[Key]:
    from router.stores.open import look_into

    async with look_into(url) as store:
        return list(await store.keys.load_keys())


async def _revoke(url: str, name: str, at_ms: int) -> bool:
    from router.stores.open import open_store

    async with open_store(url) as store:
        return await store.keys.revoke_key(name, at_ms)


def _shown(key: Key) -> dict[str, Any]:
    return {
        "name": key.name,
        "key_id": key.key_id,
        "permissions": sorted(key.permissions),
        "namespaces": None if key.namespaces is None else sorted(key.namespaces),
        "callers": None if key.callers is None else sorted(key.callers),
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }


def _cell(column: str, value: Any) -> str:
    from datetime import UTC, datetime

    if value is None:
        return "any" if column in ("namespaces", "callers") else ""
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, int):
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="seconds")
    return str(value)


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        option, right = _RIGHT[str(problem["loc"][0])]
        if option == "--permission" and problem["type"] == "value_error":
            lines.append(f"{option}: {problem['ctx']['error']}")
        else:
            lines.append(f"{option} {problem['input']!r} is not valid: {right}")
    return "\n".join(lines)
