"""`/agents`: the cards that are in force."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from models.card import AgentCard, AgentKey
from models.contract import AgentId, Contract, Namespace, SemanticVersion
from models.errors import CardError, FieldProblem, InvalidRequestError, NotFoundError
from models.key import ADMIN, READ
from router.card_schemas import check_card
from router.earned import Earned, earned
from router.endpoints.body import checked, parsed, query, read_json
from router.endpoints.call import Call, Context, Parameter
from router.numbers import plain
from router.snapshot import Entry, Snapshot


class AgentView(Contract):
    """A card with what routing makes of it.

    Attributes:
        digest: of the card as it was registered; the agent's heartbeats carry it.
        routable: the intents it can be given.
        flaws: intent → why it is not routable.
        earned: intent → what is known of its quality there; only where one agent is asked for.
    """

    card: AgentCard
    digest: str
    routable: list[str]
    flaws: dict[str, str]
    earned: dict[str, Earned] = {}


class AgentList(Contract):
    """Agents, ordered by namespace, id and version."""

    agents: list[AgentView]


class DeletedAgents(Contract):
    """The versions that went."""

    agent_id: str
    namespace: str
    versions: list[str]


AGENT_ID = Parameter("agent_id", "path", "The agent.", TypeAdapter(AgentId).json_schema(), required=True)
NAMESPACE = Parameter(
    "namespace", "query", "Its namespace; `default` if not given.", TypeAdapter(Namespace).json_schema()
)
ANY_NAMESPACE = Parameter("namespace", "query", "Only this namespace.", TypeAdapter(Namespace).json_schema())
VERSION = Parameter("version", "query", "Only this version.", TypeAdapter(SemanticVersion).json_schema())


async def list_agents(context: Context) -> Response:
    """All cards, disabled ones included."""
    context.grants.require(READ)
    namespace = query(context.request, "namespace", Namespace)
    snapshot = context.parts["registry"].snapshot
    cards = [card for card in snapshot.cards if namespace in (None, card.namespace)]
    return _json(AgentList(agents=_views(snapshot, cards)))


async def get_agent(context: Context) -> Response:
    """The live versions of one agent."""
    context.grants.require(READ)
    agent_id, namespace = _named(context)
    version = query(context.request, "version", SemanticVersion)
    snapshot = context.parts["registry"].snapshot
    cards = [
        card
        for card in snapshot.cards
        if (card.namespace, card.agent_id) == (namespace, agent_id) and version in (None, card.version)
    ]
    if not cards:
        raise NotFoundError(f"there is no agent {agent_id!r} in namespace {namespace!r}")
    learner, rules = context.parts["live"].learning.learner, snapshot.policy.learning
    entries = _entries_of(snapshot)
    views = [
        view.model_copy(
            update={
                "earned": {
                    entry.capability.intent: earned(learner, entry, rules)
                    for entry in entries.get(view.card.key, ())
                    if entry.flaw is None
                }
            }
        )
        for view in _views(snapshot, cards)
    ]
    return _json(AgentList(agents=views))


async def put_agent(context: Context) -> Response:
    """Register a card, or replace the one of the same namespace, agent and version; durable once answered."""
    context.grants.require(ADMIN)
    agent_id, namespace = _named(context)
    value = plain(await read_json(context.request, context.parts["settings"].max_body_bytes))
    if isinstance(value, dict):
        named = "namespace" in context.request.query_params
        value = {"agent_id": agent_id, **({"namespace": namespace} if named else {}), **value}
    card = parsed(AgentCard, value)
    _check_name(card, agent_id, namespace if "namespace" in context.request.query_params else card.namespace)
    _check_schemas(card)
    is_new = await context.parts["registry"].put(card)
    view = _views(context.parts["registry"].snapshot, [card])[0]
    return _json(view, 201 if is_new else 200)


async def delete_agent(context: Context) -> Response:
    """Forget an agent: one version, or all of them."""
    context.grants.require(ADMIN)
    agent_id, namespace = _named(context)
    version = query(context.request, "version", SemanticVersion)
    gone = await context.parts["registry"].delete(namespace, agent_id, version)
    return _json(DeletedAgents(agent_id=agent_id, namespace=namespace, versions=[key[2] for key in gone]))


def _named(context: Context) -> tuple[str, str]:
    agent_id = checked("agent_id", context.request.path_params["agent_id"], AgentId)
    return agent_id, query(context.request, "namespace", Namespace, "default")


def _check_name(card: AgentCard, agent_id: str, namespace: str) -> None:
    for name, in_card, in_address in (("agent_id", card.agent_id, agent_id), ("namespace", card.namespace, namespace)):
        if in_card != in_address:
            message = f"is {in_card!r} in the card and {in_address!r} in the address"
            raise InvalidRequestError(f"{name}: {message}", [FieldProblem(name, message)])


def _check_schemas(card: AgentCard) -> None:
    problems = check_card(card)
    if problems:
        raise CardError(str(problems[0]), problems)


def _entries_of(snapshot: Snapshot) -> dict[AgentKey, list[Entry]]:
    entries: dict[AgentKey, list[Entry]] = {}
    for entry in snapshot.entries:
        entries.setdefault(entry.card.key, []).append(entry)
    return entries


def _views(snapshot: Snapshot, cards: list[AgentCard]) -> list[AgentView]:
    entries = _entries_of(snapshot)
    return [_view(card, snapshot.digest_of[card.key], entries.get(card.key, [])) for card in cards]


def _view(card: AgentCard, digest: str, entries: list[Entry]) -> AgentView:
    return AgentView.model_construct(
        card=card,
        digest=digest,
        routable=[entry.capability.intent for entry in entries if entry.flaw is None],
        flaws={entry.capability.intent: entry.flaw for entry in entries if entry.flaw is not None},
    )


def _json(answer: Contract, status: int = 200) -> Response:
    return Response(answer.model_dump_json(), status, media_type="application/json")


def _card_body() -> dict[str, Any]:
    """An AgentCard whose name stands in the address."""
    return {"$ref": "#/components/schemas/AgentCardBody"}


CALLS = (
    Call(
        operation_id="list_agents",
        method="GET",
        path="/agents",
        summary="All cards",
        handler=list_agents,
        answers={200: AgentList},
        parameters=(ANY_NAMESPACE,),
        problems=(403, 422),
        tags=("agents",),
    ),
    Call(
        operation_id="get_agent",
        method="GET",
        path="/agents/{agent_id}",
        summary="The versions of one agent",
        handler=get_agent,
        answers={200: AgentList},
        parameters=(AGENT_ID, NAMESPACE, VERSION),
        problems=(403, 404, 422),
        tags=("agents",),
    ),
    Call(
        operation_id="put_agent",
        method="PUT",
        path="/agents/{agent_id}",
        summary="Register or replace a card",
        handler=put_agent,
        body=_card_body(),
        answers={200: AgentView, 201: AgentView},
        parameters=(AGENT_ID, NAMESPACE),
        problems=(400, 403, 413, 422),
        tags=("agents",),
    ),
    Call(
        operation_id="delete_agent",
        method="DELETE",
        path="/agents/{agent_id}",
        summary="Forget an agent",
        handler=delete_agent,
        answers={200: DeletedAgents},
        parameters=(AGENT_ID, NAMESPACE, VERSION),
        problems=(403, 404, 409, 422),
        tags=("agents",),
    ),
)
