"""Gathering: the rows of a run, out of cards, files and a store."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from intent.examples import OUT_OF_SCOPE, read_numbered
from intent.multi import MultiExample
from intent.normalize import has_words, normalize
from intent.vector_cache import Progress, silent
from models.card import AgentCard
from models.errors import ModelError
from router.assemble import capability_texts
from router.card_files import read_card_files
from router.retraining.job import Job
from router.retraining.log_rows import read_log
from router.retraining.plan import Plan, planned
from router.retraining.rows import Row, Source
from router.retraining.success_rows import SuccessRows, read_success_rows
from router.stores.training_log import open_training_log


async def gather(job: Job, *, made_at: int, progress: Progress = silent) -> tuple[Plan, SuccessRows]:
    """What a run is about, and how well agents did.

    Args:
        job: names the sources.
        made_at: now (epoch, milliseconds).
        progress: told of the decisions read.

    Raises:
        StoreError: there is no such store, or it cannot be read.
        CardError: a card cannot be used.
        ModelError: a file cannot be used, or there is nothing to learn.
    """
    given, digests = read_numbered(job.examples)
    pinned, golden_digests = read_numbered([] if job.golden is None else [job.golden])
    async with open_training_log(job.log) as log:
        if job.cards:
            files = read_card_files(job.cards)
            used: Sequence[AgentCard] = files.cards
            digests |= {str(path): sha256(path.read_bytes()).hexdigest() for path in files.files}
        else:
            used = [stored.card for stored in await log.cards()]
            digests["cards"] = sha256("\n".join(card.model_dump_json() for card in used).encode()).hexdigest()
        card_rows = rows_of_cards(used)
        rows, multi = _rows(given)
        intents = {row.intent for row in (*card_rows, *rows)} | {name for each in multi for name in each.intents}
        intents -= {OUT_OF_SCOPE}
        if len({row.intent for row in card_rows}) < 2:
            where = "the files of --cards" if job.cards else f"the cards of {job.log!r}"
            raise ModelError(f"{where} have fewer than 2 intents: name others with --cards")
        found = await read_log(log, intents, seed=job.seed, progress=progress)
        outcomes = await read_success_rows(log, {"/".join(card.key) for card in used}, progress=progress)
    if not found.n_read and not job.examples:
        raise ModelError(
            f"{job.log!r} holds no settled decision and no accepted correction: there is nothing to learn from it"
        )
    golden_rows, several = _rows(pinned)
    if several:
        raise ModelError(f"{job.golden}: pinned rows mean one intent each, {several[0].text!r} means several")
    plan = planned(
        card_rows,
        rows,
        found.corrections,
        found.outcomes,
        golden_rows,
        made_at=made_at,
        multi=multi,
        left_out=found.left_out,
        data=digests | golden_digests | {"log": _digest_of([*found.corrections, *found.outcomes])},
    )
    return plan, outcomes


def rows_of_cards(cards: Sequence[AgentCard]) -> list[Row]:
    """Examples and descriptions of all enabled cards, each text and intent once."""
    found = dict.fromkeys(
        (text, capability.intent)
        for card in cards
        if card.enabled
        for capability in card.capabilities
        for text in capability_texts(capability)
        if has_words(text)
    )
    return [Row("card", text, intent, Source.CARDS) for text, intent in found]


def _rows(numbered: Sequence[tuple[str, MultiExample]]) -> tuple[list[Row], list[MultiExample]]:
    """(rows of one intent or none, texts of several)."""
    rows, multi = [], []
    for place, (text, intents) in numbered:
        normal = normalize(text)
        if not has_words(normal):
            continue
        if len(intents) > 1:
            multi.append(MultiExample(text, intents))
        else:
            rows.append(Row(place, normal, intents[0] if intents else OUT_OF_SCOPE, Source.EXAMPLES))
    return rows, multi


def _digest_of(rows: Sequence[Row]) -> str:
    """Of the rows, their order apart."""
    return sha256("\n".join(sorted(map(repr, rows))).encode("utf-8", "replace")).hexdigest()
