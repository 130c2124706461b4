"""`/promotion`: how far new classifiers have come, and the way back."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from models.answer import Answer
from models.contract import Contract
from models.key import ADMIN, READ
from models.promotion import Promotion
from router.endpoints.body import parsed, read_json
from router.endpoints.call import Call, Context
from router.promotion_steps import Steps, change_rows, watch_figures
from router.wire import dumps

MAX_PROMOTIONS = 100
"""So many are listed, the newest."""


class ShadowFigures(Answer):
    """What candidates in the shadow have read.

    Attributes:
        n_stored: of the present candidate, by this and other processes; 0 without one.
        n_read: by this process since its start; so are the next ones.
        n_waiting: decisions that it has not read yet.
        n_dropped: those that came while too many waited.
        n_failed: those that it could not read.
    """

    n_stored: int
    n_read: int
    n_waiting: int
    n_dropped: int
    n_failed: int


class WatchFigures(Answer):
    """The outcomes of a canary, or of one that became full.

    Attributes:
        n_outcomes: decisions that count, since it had an effect.
        n_since_full: the same since it is full.
        mean: of their rewards; None while there are none.
        mean_before: of the classifiers before.
        level: the sum of the watch; above `threshold` it is rolled back.
        has_alarm: whether it was above, so that it is about to be rolled back.
    """

    promotion_id: int
    n_outcomes: int
    n_since_full: int
    mean: float | None
    mean_before: float
    level: float
    threshold: float
    has_alarm: bool


class Promotions(Answer):
    """What is on its way, and what is in force.

    Attributes:
        full: whose classifiers are in force; None where they are those of the cards, or of the settings.
        candidate: in the stage `shadow` or `canary`; None where none is.
        shadow: what candidates in the shadow have read.
        watch: how the one that is watched does; None where none is.
        promotions: the newest 100, newest first.
    """

    full: Promotion | None
    candidate: Promotion | None
    shadow: ShadowFigures
    watch: WatchFigures | None
    promotions: list[Promotion]


class PromotionRollback(Contract):
    """Taking back the newest promotion that has an effect.

    Attributes:
        reason: for those who look later.
    """

    reason: Annotated[str, Field(min_length=1, max_length=500)] = "by hand"


async def get_promotion(context: Context) -> Response:
    """How far new classifiers have come; needs `router:read`."""
    context.grants.require(READ)
    return await _answer(context)


async def roll_back_promotion(context: Context) -> Response:
    """End the candidate; where there is none, put the classifiers before those in force again."""
    context.grants.require(ADMIN)
    parts = context.parts
    value = await read_json(context.request, parts["settings"].max_body_bytes, if_empty=b"{}")
    wanted = parsed(PromotionRollback, value)
    promotion, clock, caller = parts["promotion"], parts["clock"], context.grants.caller
    steps = Steps(
        parts["store"].promotions,
        promotion.models,
        parts["pool"].embedder.encoder_id,
        parts["registry"].snapshot.policy.learning.reward,
        clock,
        caller or "api",
        promotion.follower.limits,
    )
    changes = await steps.roll_back(wanted.reason)
    new_id = promotion.new_id
    parts["journal"].put(change_rows(changes, new_id(), new_id()[16:], int(clock.now_ms()), caller))
    await promotion.follower.take_up()
    return await _answer(context)


async def _answer(context: Context) -> Response:
    promotion, store = context.parts["promotion"], context.parts["store"].promotions
    await promotion.follower.take_up()
    now, shadow, seen = promotion.follower.now, promotion.shadow, promotion.follower.watch
    known = await store.load()
    watch = None
    if seen is not None:
        watch = WatchFigures.of(promotion_id=seen.promotion_id, **watch_figures(seen.seen))
    body = Promotions.of(
        full=now.full,
        candidate=now.candidate,
        shadow=ShadowFigures.of(
            n_stored=0 if now.candidate is None else await store.n_shadows(now.candidate.promotion_id),
            n_read=shadow.n_read,
            n_waiting=shadow.n_waiting,
            n_dropped=shadow.n_dropped,
            n_failed=shadow.n_failed,
        ),
        watch=watch,
        promotions=list(reversed(known))[:MAX_PROMOTIONS],
    )
    return Response(dumps(body), media_type="application/json")


CALLS = (
    Call(
        operation_id="get_promotion",
        method="GET",
        path="/promotion",
        summary="How far new classifiers have come",
        handler=get_promotion,
        answers={200: Promotions},
        problems=(403,),
        tags=("promotion",),
    ),
    Call(
        operation_id="roll_back_promotion",
        method="POST",
        path="/promotion/rollback",
        summary="End the candidate, or put the classifiers before in force again",
        handler=roll_back_promotion,
        body=PromotionRollback.model_json_schema(),
        may_lack_body=True,
        answers={200: Promotions},
        problems=(400, 403, 409, 413, 422),
        tags=("promotion",),
    ),
)
