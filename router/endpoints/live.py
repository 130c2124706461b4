"""Live state over HTTP: heartbeats, the health of an agent, breakers."""

from __future__ import annotations

from starlette.responses import Response

from models.answer import Answer
from models.card import AgentCard
from models.contract import AgentId, Namespace, SemanticVersion
from models.errors import ConflictError, ForbiddenError, NotFoundError
from models.heartbeat import Heartbeat
from models.key import HEARTBEAT, READ
from router.endpoints.agents import AGENT_ID, NAMESPACE, VERSION
from router.endpoints.body import checked, parsed, query, read_json
from router.endpoints.call import Call, Context
from router.live.breaker_state import BreakerView, TargetKey
from router.numbers import plain


class ProbeView(Answer):
    """One interface probe; `age_ms` is how long ago it ended."""

    result: str
    latency_ms: float
    age_ms: float


class LayerScores(Answer):
    """Scores of the layers, 0..1; null for one without any figure."""

    heartbeat: float | None
    probe: float | None
    business: float | None


class Measured(Answer):
    """Outcomes of the window that are charged to the agent."""

    n_outcomes: int
    error_rate: float | None
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None


class AgentHealth(Answer):
    """What is known of an agent now.

    Attributes:
        state: unknown, healthy, suspect or down.
        reason: why it is down: silent, or digest (its card was replaced and it has not presented the new one).
        score: 0..1.
        warmup: the part of its share that it gets.
        beat_age_ms: since its last heartbeat; null before the first.
        n_missed: heartbeats.
        in_flight: places that are taken.
        timeout_ms: suggested timeout.
    """

    agent_id: str
    namespace: str
    version: str
    digest: str
    state: str
    reason: str | None
    score: float
    layers: LayerScores
    warmup: float
    beat_age_ms: float | None
    n_missed: int
    reported: Heartbeat | None
    probes: list[ProbeView]
    measured: Measured
    in_flight: int
    max_inflight: int
    timeout_ms: int
    ejected: list[str]


class BreakerEntry(Answer):
    """A breaker between a caller and an agent, or before a dependency.

    Attributes:
        caller: null for a dependency's.
        dependency: null for one between a caller and an agent.
        n_calls: in its window.
        since_ms: how long it has been in this state; null where it never changed.
        next_change_ms: in how long an open one turns half open.
    """

    caller: str | None = None
    agent_id: str | None = None
    version: str | None = None
    dependency: str | None = None
    namespace: str
    state: str
    reason: str | None
    n_calls: int
    n_failures: int
    since_ms: float | None
    next_change_ms: float | None


class BreakerList(Answer):
    """Those first that are not closed; what is not listed is closed and had no calls lately."""

    breakers: list[BreakerEntry]


async def post_heartbeat(context: Context) -> Response:
    """A sign of life; it is refused where its digest is not that of the card in force."""
    context.grants.require(HEARTBEAT)
    value = plain(await read_json(context.request, context.parts["settings"].max_body_bytes))
    beat = parsed(Heartbeat, value)
    card = _card(context, beat.version)
    if not (context.grants.speaks_as(card.agent_id) and context.grants.reaches(card.namespace)):
        raise ForbiddenError(f"this key may not speak as {card.agent_id!r} in namespace {card.namespace!r}")
    live, clock = context.parts["live"].live, context.parts["clock"]
    policy = context.parts["registry"].snapshot.policy.of(card.namespace)
    if not live.health.beat(card.key, beat, card.heartbeat_s, clock.monotonic_ms(), policy.health):
        in_force = context.parts["registry"].snapshot.digest_of[card.key]
        raise ConflictError(f"the digest is not that of the card in force, {in_force}: load the card again")
    context.parts["live"].beats.note(card.key, beat.digest)
    return _json(_health(context, card))


async def get_health(context: Context) -> Response:
    """The health of an agent with all of its parts; without `version` that of the newest."""
    context.grants.require(READ)
    version = query(context.request, "version", SemanticVersion)
    return _json(_health(context, _card(context, version)))


async def list_breakers(context: Context) -> Response:
    """All breakers that had calls lately or are not closed."""
    context.grants.require(READ)
    now_ms = context.parts["clock"].monotonic_ms()
    views = context.parts["live"].live.breakers.listed(now_ms)
    return _json(BreakerList(breakers=[_entry(view, now_ms) for view in views]))


def _card(context: Context, version: str | None) -> AgentCard:
    agent_id = checked("agent_id", context.request.path_params["agent_id"], AgentId)
    namespace = query(context.request, "namespace", Namespace, "default")
    cards = [
        card
        for card in context.parts["registry"].snapshot.cards
        if (card.namespace, card.agent_id) == (namespace, agent_id) and version in (None, card.version)
    ]
    if not cards:
        wanted = f" in version {version}" if version else ""
        raise NotFoundError(f"there is no agent {agent_id!r} in namespace {namespace!r}{wanted}")
    return cards[-1]  # they are in the order of their versions


def _health(context: Context, card: AgentCard) -> AgentHealth:
    live, now_ms = context.parts["live"].live, context.parts["clock"].monotonic_ms()
    snapshot = context.parts["registry"].snapshot
    policy = snapshot.policy.of(card.namespace)
    view = live.health.view(card.key, card, now_ms, policy.health)
    measured = view.measured
    return AgentHealth(
        agent_id=card.agent_id,
        namespace=card.namespace,
        version=card.version,
        digest=snapshot.digest_of[card.key],
        state=view.vitals.state,
        reason=view.vitals.reason,
        score=view.vitals.score,
        layers=LayerScores(**view.layers._asdict()),
        warmup=view.vitals.warmup,
        beat_age_ms=view.beat_age_ms,
        n_missed=view.n_missed,
        reported=view.reported,
        probes=[ProbeView(**probe._asdict()) for probe in view.probes],
        measured=Measured(
            n_outcomes=measured.n_outcomes,
            error_rate=measured.error_rate,
            mean_ms=measured.mean_ms,
            p50_ms=measured.p50_ms,
            p95_ms=measured.p95_ms,
        ),
        in_flight=live.leases.in_flight(card.key),
        max_inflight=card.max_inflight,
        timeout_ms=view.timeout_ms,
        ejected=[each.group[1] for each in live.outliers.listed(now_ms) if each.agent == card.key],
    )


def _entry(view: BreakerView, now_ms: float) -> BreakerEntry:
    key = view.key
    where: dict[str, str] = (
        {"caller": key.caller, "namespace": key.target[0], "agent_id": key.target[1], "version": key.target[2]}
        if isinstance(key, TargetKey)
        else {"dependency": key.dependency, "namespace": key.namespace}
    )
    return BreakerEntry(
        **where,
        state=view.state,
        reason=view.reason,
        n_calls=view.n_calls,
        n_failures=view.n_failures,
        since_ms=None if view.since_ms is None else now_ms - view.since_ms,
        next_change_ms=None if view.next_change_ms is None else view.next_change_ms - now_ms,
    )


def _json(answer: Answer) -> Response:
    return Response(answer.model_dump_json(), media_type="application/json")


CALLS = (
    Call(
        operation_id="post_heartbeat",
        method="POST",
        path="/agents/{agent_id}/heartbeat",
        summary="A sign of life of an agent",
        handler=post_heartbeat,
        body=Heartbeat,
        answers={200: AgentHealth},
        parameters=(AGENT_ID, NAMESPACE),
        problems=(400, 403, 404, 409, 413, 422),
        tags=("live",),
    ),
    Call(
        operation_id="get_health",
        method="GET",
        path="/agents/{agent_id}/health",
        summary="The health of an agent, with its parts",
        handler=get_health,
        answers={200: AgentHealth},
        parameters=(AGENT_ID, NAMESPACE, VERSION),
        problems=(403, 404, 422),
        tags=("live",),
    ),
    Call(
        operation_id="list_breakers",
        method="GET",
        path="/breakers",
        summary="All breakers, those first that are not closed",
        handler=list_breakers,
        answers={200: BreakerList},
        problems=(403,),
        tags=("live",),
    ),
)
