"""`agency-router subjects`: what a store keeps of a caller or a session, and its erasure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.existing_store import existing_store, stored_policy
from router.cli.keys import JsonOption, StoreOption
from router.cli.output import UNUSABLE, emit_json, fail, say, store_url

if TYPE_CHECKING:
    from models.subject import Erased
    from router.stores.open import Store
    from router.subjects import Subjects

app = typer.Typer(help="What is kept of callers and sessions.", no_args_is_help=True)

_MAX_DECISIONS = 10_000
_JOURNAL_ROWS, _JOURNAL_WAIT_MS = 10_000, 10


def _named(name: str) -> str:
    # no name is what stands where no key was used, so it would be everything
    if not name.strip():
        fail("NAME: must not be empty; name a session, a key or an agent id that asked", 2)
    return name


NameArgument = Annotated[
    str, typer.Argument(help="A session id, the name of a key, or an agent id that asked.", callback=_named)
]


@app.command()
def export(
    name: NameArgument,
    after: Annotated[str, typer.Option(help="The `next` of an export that was cut.")] = "",
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print all that is kept of a caller or a session, as one JSON object, up to 10000 decisions."""
    from models.errors import RouterError

    try:
        found = asyncio.run(_export(store_url(store), name, after))
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if as_json or found["decisions"] or found["usage"] or found["evidence"]:
        emit_json(found)
        if found["next"] is not None:
            say(f"there is more: go on with --after {found['next']}")
    else:
        fail(f"nothing is kept of {name!r} in {store_url(store)}", UNUSABLE)


@app.command()
def erase(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, it is only told what there is.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase all that is kept of a caller or a session; the service should not run: it has some of it in memory."""
    from models.errors import RouterError

    url = store_url(store)
    if not yes:
        fail(f"this cannot be taken back: look with `agency-router subjects export {name}`, then add --yes", 2)
    try:
        erased = asyncio.run(_erase(url, name))
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json({"subject": name, "store": url, "complete": True, "erased": erased._asdict()})
        return
    told = ", ".join(f"{n} {kind}" for kind, n in erased._asdict().items() if n)
    say(f"Erased of {name!r}: {told or 'nothing, there was none'}.")
    say("A service that runs has some of it in memory: use DELETE /subjects there, or start it anew.")


async def _export(url: str, name: str, after: str) -> dict[str, Any]:
    import orjson

    from router.permit import OPEN
    from router.stores.open import look_into

    async with look_into(url) as store, _subjects(store) as subjects:
        found = await subjects.export(name, OPEN, after=after)
        while found["next"] is not None and len(found["decisions"]) < _MAX_DECISIONS:
            page = await subjects.export(name, OPEN, after=found["next"])
            found["decisions"] += page["decisions"]
            found["next"] = page["next"]
        plain: dict[str, Any] = orjson.loads(orjson.dumps(found))
        return plain


async def _erase(url: str, name: str) -> Erased:
    from models.subject import Erased
    from router.permit import OPEN

    async with existing_store(url) as store, _subjects(store) as subjects:
        total, is_done = Erased(), False
        while not is_done:
            erased, is_done = await subjects.erase(name, OPEN)
            total = total.plus(erased)
        return total


@asynccontextmanager
async def _subjects(store: Store) -> AsyncIterator[Subjects]:
    from feedback.learner import Learner
    from router.clock import SystemClock
    from router.journal import Journal
    from router.subjects import Subjects

    learner = Learner()
    learner.load(*await store.weights.load())
    rules = (await stored_policy(store)).learning
    journal = Journal(store.records, max_rows=_JOURNAL_ROWS, batch=_JOURNAL_ROWS, wait_ms=_JOURNAL_WAIT_MS)
    yield Subjects(store.subjects, store.weights, learner, rules, SystemClock(), journal, None)
    await journal.aclose()
