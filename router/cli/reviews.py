"""`agency-router reviews`: list corrections, accept and reject them, in the store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.existing_store import existing_store, stored_policy
from router.cli.keys import JsonOption, StoreOption
from router.cli.names import intent_of, namespace_of
from router.cli.output import UNUSABLE, emit_json, fail, say, store_url, table

if TYPE_CHECKING:
    from models.review import Review, ReviewPage, Verdict
    from router.reviews import Reviews
    from router.stores.open import Store

app = typer.Typer(help="Corrections that callers sent.", no_args_is_help=True)

_STATES = ("waiting", "accepted", "rejected")
IdArgument = Annotated[str, typer.Argument(help="The correction.")]


@app.command("list")
def list_reviews(
    state: Annotated[str, typer.Option(help="waiting, accepted, rejected or any.")] = "waiting",
    namespace: Annotated[str | None, typer.Option(help="Only this namespace.")] = None,
    intent: Annotated[str | None, typer.Option(help="Only where this was read or meant.")] = None,
    caller: Annotated[str | None, typer.Option(help="Only of this caller.")] = None,
    after: Annotated[str, typer.Option(help="The `next` of the page before.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show corrections in the order in which they came."""
    from models.errors import RouterError
    from models.review import ReviewFilter, ReviewState

    if state not in (*_STATES, "any"):
        fail(f"--state {state!r} is none: use waiting, accepted, rejected or any", 2)
    namespace = namespace_of(namespace)
    wanted = ReviewFilter(
        None if namespace is None else frozenset({namespace}),
        None if state == "any" else ReviewState(state),
        intent_of(intent),
        caller,
    )
    try:
        page = asyncio.run(_page(store_url(store), wanted, after, limit))
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if as_json:
        emit_json(page.model_dump(mode="json"))
        return
    columns = ["review_id", "state", "caller", "namespace", "intent", "correct_intent", "n_agree", "text"]
    table(columns, [[_cell(getattr(review, name)) for name in columns] for review in page.reviews])
    more = f"; read on with --after {page.next}" if page.next else ""
    say(f"{page.n_waiting} wait, {page.n_refused} were not kept as too many of their caller waited{more}")


@app.command()
def accept(review_id: IdArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Let a correction become a training example."""
    from models.review import ReviewState

    _decide(review_id, ReviewState.ACCEPTED, store, as_json)


@app.command()
def reject(review_id: IdArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Let a correction teach nothing."""
    from models.review import ReviewState

    _decide(review_id, ReviewState.REJECTED, store, as_json)


def _decide(review_id: str, verdict: Verdict, store: str | None, as_json: bool) -> None:
    from models.errors import RouterError

    try:
        review = asyncio.run(_decided(store_url(store), review_id, verdict))
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json(review.model_dump(mode="json"))
    else:
        say(f"{review.review_id} is {review.state}: {_cell(review.text)!r} means {review.correct_intent!r}.")


async def _page(url: str, wanted: Any, after: str, limit: int) -> ReviewPage:
    from router.permit import OPEN
    from router.stores.open import look_into

    async with look_into(url) as store:
        return await (await _reviews(store)).page(wanted, OPEN, after=after, limit=limit)


async def _decided(url: str, review_id: str, verdict: Verdict) -> Review:
    from router.permit import OPEN

    async with existing_store(url) as store:
        return await (await _reviews(store)).decide(review_id, verdict, OPEN)


async def _reviews(store: Store) -> Reviews:
    from router.clock import SystemClock
    from router.reviews import Reviews, serves

    cards = [stored.card for stored in await store.cards.load_cards()]
    policy = await stored_policy(store)
    return Reviews(store.reviews, lambda namespace, intent: serves(cards, policy, namespace, intent), SystemClock())


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
