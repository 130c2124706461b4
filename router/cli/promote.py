"""`agency-router promote` and `agency-router rollback`: new classifiers on their way into force, and back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.existing_store import existing_store, stored_policy
from router.cli.keys import JsonOption, StoreOption
from router.cli.output import UNKNOWN, UNUSABLE, emit_json, fail, say, store_url, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.promotion import Change, Promotion
    from router.promotion_steps import Steps, Told
    from router.stores.open import Store


def promote(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the model, as `retrain` writes it.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move a model one stage on (shadow, canary, full), if all evidence for it is there; else say what is missing."""
    from models.errors import ConflictError, RouterError

    try:
        told = asyncio.run(_promote(store_url(store), folder.absolute()))
    except ConflictError as error:
        fail(str(error), UNKNOWN)
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if as_json:
        emit_json(told_as_json(told))
    else:
        _tell(told)
    if told.move.is_refused:
        raise typer.Exit(UNKNOWN)


def rollback(
    store: StoreOption = None,
    reason: Annotated[str, typer.Option(help="For those who look later.")] = "by hand",
    as_json: JsonOption = False,
) -> None:
    """End the candidate; where there is none, put the classifiers before those in force again."""
    from models.errors import ConflictError, RouterError

    try:
        changes = asyncio.run(_roll_back(store_url(store), reason))
    except ConflictError as error:
        fail(str(error), UNKNOWN)
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if as_json:
        emit_json({"changes": [_change_as_json(change) for change in changes]})
        return
    for change in changes:
        now = change.after
        say(f"promotion {now.promotion_id} of {now.folder}: {change.before.stage} -> {now.stage}")
    say("A running service follows within seconds.")


async def _promote(url: str, folder: Path) -> Told:
    async with existing_store(url) as store:
        steps = await _steps(store, url)
        told = await steps.promote(folder)
        await _write_down(store, told.changes)
    return told


async def _roll_back(url: str, reason: str) -> Sequence[Change]:
    async with existing_store(url) as store:
        changes = await (await _steps(store, url)).roll_back(reason)
        await _write_down(store, changes)
    return changes


async def _steps(store: Store, url: str) -> Steps:
    from models.settings import Settings
    from router.clock import SystemClock
    from router.promotion_files import models_folder
    from router.promotion_steps import Steps
    from router.reading_parts import encoder_of

    encoder_id = await store.promotions.encoder_id()
    if encoder_id is None:  # nothing was decided yet: the one that the service would take
        encoder_id = (await asyncio.to_thread(encoder_of, Settings())).encoder_id
    reward = (await stored_policy(store)).learning.reward
    return Steps(store.promotions, models_folder(url), encoder_id, reward, SystemClock(), "command line")


async def _write_down(store: Store, changes: Sequence[Change]) -> None:
    from router.clock import SystemClock
    from router.promotion_steps import change_rows
    from router.random_ids import random_ids

    if changes:
        clock = SystemClock()
        new_id = random_ids(clock).new
        await store.records.append(change_rows(changes, new_id(), new_id()[16:], int(clock.now_ms()), ""))


def told_as_json(told: Told) -> dict[str, Any]:
    """What `promote` prints: the stages, every piece of evidence, the figures, and the promotion."""
    return {
        "moved": not told.move.is_refused,
        "before": told.move.before,
        "stage": told.move.after,
        "checks": [check._asdict() for check in told.move.checks],
        "figures": told.figures,
        "promotion": None if told.promotion is None else _as_json(told.promotion),
    }


def _as_json(promotion: Promotion) -> dict[str, Any]:
    return promotion.model_dump(mode="json")


def _change_as_json(change: Change) -> dict[str, Any]:
    return {"before": change.before.stage, "promotion": _as_json(change.after)}


def _tell(told: Told) -> None:
    table(
        ["evidence", "", "found", "what to do"],
        [[check.name, "yes" if check.is_met else "no", check.told, check.fix] for check in told.move.checks],
    )
    before, after = told.move.before or "none", told.move.after or "none"
    if told.move.is_refused:
        say(f"refused, not enough evidence: it stays in the stage {before}")
    else:
        say(f"{before} -> {after}; a running service follows within seconds")
