"""`agency-router feedback`: past outcomes into a store, and its log of decisions and outcomes out of it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from router.cli.existing_store import existing_store, stored_policy
from router.cli.keys import JsonOption, StoreOption
from router.cli.names import namespace_of
from router.cli.output import UNUSABLE, emit_json, fail, say, store_url
from router.cli.progress import counted, counting

if TYPE_CHECKING:
    from router.past_outcomes import Checked, Taught

app = typer.Typer(help="Past outcomes in, the log of decisions out.", no_args_is_help=True)

_MAX_NAMED = 5
_PAGE = 500


@app.command("import")
def import_outcomes(
    file: Annotated[Path, typer.Argument(help="JSON lines of past outcomes; .gz is unpacked.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Learn from past outcomes, all of a file or none; the same file again changes nothing."""
    from models.errors import RouterError

    url = store_url(store)
    try:
        checked, taught = asyncio.run(_import(url, file))
    except RouterError as error:
        fail(str(error))
    if as_json:
        told: dict[str, Any] = {"file": str(file), "store": url, "sha256": checked.sha256, "n_lines": checked.n_lines}
        n_learned, n_not_charged, unknown, unserved = (0, 0, [], []) if taught is None else taught[1:]
        counts = {"n_learned": n_learned, "n_not_charged": n_not_charged, "unknown_agents": unknown}
        counts["unserved_intents"] = unserved
        emit_json({**told, "is_new": taught is not None, **counts})
    elif taught is None:
        say(f"{file} was imported before: nothing is changed.")
    else:
        _say(file, checked, taught)


def _say(file: Path, checked: Checked, taught: Taught) -> None:
    others = f"{taught.n_not_charged} say nothing of agents"
    say(f"{taught.n_learned} of {checked.n_lines} outcomes of {file} count, {others}.")
    if taught.unknown:
        named = _named(taught.unknown)
        say(f"No card is stored of: {named}. What they did counts once there is one of the same version.")
    if taught.unserved:
        named = _named(taught.unserved)
        say(f"Not served by the agent's card ({len(taught.unserved)}): {named}. What they did counts once it is.")
    say("A service that runs goes by it after its next start.")


def _named(names: Sequence[str]) -> str:
    more = "" if len(names) <= _MAX_NAMED else f" and {len(names) - _MAX_NAMED} more"
    return ", ".join(names[:_MAX_NAMED]) + more


async def _import(url: str, file: Path) -> tuple[Checked, Taught | None]:
    from feedback.learner import Learner
    from router.clock import SystemClock
    from router.past_outcomes import check, past_outcomes, teach

    with counting("checking lines") as told:
        checked = await asyncio.to_thread(check, file, told)
    now_ms = int(SystemClock().now_ms())
    async with existing_store(url) as store:
        if await store.imports.has(checked.sha256):
            return checked, None
        learner = Learner()
        learner.load(*await store.weights.load())
        cards = [stored.card for stored in await store.cards.load_cards()]
        policy = (await stored_policy(store)).learning
        with counting("learning from outcomes", checked.n_lines) as told:
            outcomes = counted(past_outcomes(file), told)
            taught = await asyncio.to_thread(teach, learner, outcomes, policy, cards, now_ms)
        is_new = await store.imports.put(checked.sha256, taught.rows, now_ms)
        return checked, taught if is_new else None


@app.command("export")
def export_log(
    out: Annotated[Path, typer.Argument(help="The file to make.")],
    namespace: Annotated[str | None, typer.Option(help="Only decisions of this namespace.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the decisions that named an agent, each with its outcomes, as JSON lines; the service may run meanwhile."""
    from models.errors import RouterError

    url, namespace = store_url(store), namespace_of(namespace)
    if out.exists() and not force:
        fail(f"{str(out)!r} exists: name another file, or replace it by --force", UNUSABLE)
    try:
        n_decisions = asyncio.run(_export(url, out, namespace))
    except RouterError as error:
        fail(str(error), UNUSABLE)
    except OSError as error:
        fail(f"{str(out)!r} cannot be written: {error.strerror}", UNUSABLE)
    if as_json:
        emit_json({"store": url, "out": str(out), "n_decisions": n_decisions})
    else:
        say(f"{n_decisions} decisions are in {out}.")


async def _export(url: str, out: Path, namespace: str | None) -> int:
    from router.clock import SystemClock
    from router.log_export import line_of
    from router.redaction import Redaction
    from router.stores.feedback_log import LogQuery, open_log
    from router.stores.open import look_into

    now_ms = int(SystemClock().now_ms())
    async with look_into(url) as store:
        rules = (await stored_policy(store)).retention
        redaction = Redaction(rules.utterances, await store.retention.redaction_key())
    n_read = n_written = 0
    after: tuple[int, str] | None = None
    with counting("writing decisions") as told, _written(out) as file:
        async with open_log(url) as log:
            while page := await log.page(LogQuery(namespace=namespace), after, _PAGE):
                lines = [line_of(each, redaction, rules, now_ms) for each in page]
                file.writelines(line for line in lines if line is not None)
                n_read += len(page)
                n_written += len(lines) - lines.count(None)
                told(n_read)
                last = page[-1].decision
                after = (last.happened_at, last.decision_id)
    return n_written


@contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    """A file that is there whole, or as it was; readable by its owner alone."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.absolute().parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
