"""`/weights`: what was learned, the way back, and the switch that stops it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from starlette.responses import Response

from models.answer import Answer
from models.contract import Contract, Namespace
from models.key import ADMIN, READ
from router.earned import Earned, earned
from router.endpoints.body import parsed, query, read_json
from router.endpoints.call import Call, Context, Parameter
from router.wire import dumps

_AT_ONCE = 32

Version = Annotated[int, Field(ge=0, le=2**53)]

NAMESPACE = Parameter("namespace", "query", "Only this namespace.", TypeAdapter(Namespace).json_schema())


class AgentWeights(Answer):
    """What was learned of one version of an agent.

    Attributes:
        is_demoted: whether it got worse than what was known of it, and has not been cleared since.
        cost_usd: what its calls cost, of late; None where nobody told.
        intents: intent → its quality there.
    """

    namespace: str
    agent_id: str
    version: str
    is_demoted: bool
    cost_usd: float | None
    intents: dict[str, Earned]


class Snapshot(Answer):
    """Weights that can be put in force again (epoch, milliseconds)."""

    version: int
    reason: str
    created_at: int


class Weights(Answer):
    """All that was learned.

    Attributes:
        version: every decision names the one it was made with.
        frozen: why nothing is learned now; None while learning goes on.
        distrusted: callers whose outcomes are not learned from now.
        n_failures: of the learner since the start; decisions went on without it.
        exponents: namespace → those of the merit, as they hold in its policy's `auto`.
        agents: by namespace, id and version.
        snapshots: newest first.
    """

    version: int
    mode: str
    frozen: str | None
    distrusted: list[str]
    n_failures: int
    exponents: dict[str, dict[str, float]]
    agents: list[AgentWeights]
    snapshots: list[Snapshot]


class WeightRollback(Contract):
    """Which weights are to be in force again.

    Attributes:
        version: of the snapshot; None means the newest before what is in force.
    """

    version: Version | None = None


class WeightFreeze(Contract):
    """Whether learning stops.

    Attributes:
        frozen: False lets it go on.
        reason: for those who look later.
    """

    frozen: bool = True
    reason: Annotated[str, Field(min_length=1, max_length=500)] = "by hand"


async def get_weights(context: Context) -> Response:
    """What was learned, by agent and intent; needs `router:read`."""
    context.grants.require(READ)
    namespace = query(context.request, "namespace", Namespace, "")
    return await _answer(context, namespace)


async def roll_back_weights(context: Context) -> Response:
    """Put the weights of a snapshot in force again, as a new version."""
    context.grants.require(ADMIN)
    value = await read_json(context.request, context.parts["settings"].max_body_bytes, if_empty=b"{}")
    wanted = parsed(WeightRollback, value)
    await context.parts["live"].keeper.roll_back(wanted.version)
    return await _answer(context, "")


async def freeze_weights(context: Context) -> Response:
    """Stop learning, or let it go on; outcomes are stored all the same."""
    context.grants.require(ADMIN)
    value = await read_json(context.request, context.parts["settings"].max_body_bytes, if_empty=b"{}")
    wanted = parsed(WeightFreeze, value)
    keeper = context.parts["live"].keeper
    await (keeper.freeze(wanted.reason) if wanted.frozen else keeper.thaw())
    return await _answer(context, "")


async def _answer(context: Context, namespace: str) -> Response:
    live, snapshot = context.parts["live"], context.parts["registry"].snapshot
    learning, policy = live.learning, snapshot.policy
    learner = learning.learner
    kept = await live.keeper.snapshots()
    by_agent: dict[tuple[str, str, str], dict[str, Earned]] = {}
    for number, entry in enumerate(snapshot.entries):
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)  # there may be thousands: requests come in between
        if entry.flaw is None and namespace in ("", entry.agent[0]):
            found = earned(learner, entry, policy.learning)
            by_agent.setdefault(entry.agent, {})[entry.capability.intent] = found
    agents = [
        AgentWeights(
            namespace=agent[0],
            agent_id=agent[1],
            version=agent[2],
            is_demoted=learner.is_demoted(agent),
            cost_usd=learner.cost_of(agent),
            intents=intents,
        )
        for agent, intents in by_agent.items()
    ]
    return Response(
        dumps(
            Weights(
                version=learner.version,
                mode=policy.learning.mode,
                frozen=learner.frozen,
                distrusted=learning.watch.distrusted,
                n_failures=learning.n_failures,
                exponents={name: learning.exponents(name, policy) for name in sorted({agent[0] for agent in by_agent})},
                agents=agents,
                snapshots=[Snapshot(version=k.version, reason=k.reason, created_at=k.created_at) for k in kept],
            )
        ),
        media_type="application/json",
    )


_BODY: dict[str, Any] = {"answers": {200: Weights}, "tags": ("weights",)}

CALLS = (
    Call(
        operation_id="get_weights",
        method="GET",
        path="/weights",
        summary="What was learned",
        handler=get_weights,
        parameters=(NAMESPACE,),
        problems=(403, 422),
        **_BODY,
    ),
    Call(
        operation_id="roll_back_weights",
        method="POST",
        path="/weights/rollback",
        summary="Put earlier weights in force again",
        handler=roll_back_weights,
        body=WeightRollback.model_json_schema(),
        may_lack_body=True,
        problems=(400, 403, 404, 413, 422),
        **_BODY,
    ),
    Call(
        operation_id="freeze_weights",
        method="POST",
        path="/weights/freeze",
        summary="Stop learning, or let it go on",
        handler=freeze_weights,
        body=WeightFreeze.model_json_schema(),
        may_lack_body=True,
        problems=(400, 403, 413, 422),
        **_BODY,
    ),
)
