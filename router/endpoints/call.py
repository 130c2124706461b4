"""Call: one line of the HTTP contract, from which both its route and its place in the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from router.metrics import Metrics
from router.permit import Grants
from router.running import Parts


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler works with.

    Attributes:
        grants: what the caller may do.
    """

    request: Request
    parts: Parts
    metrics: Metrics
    grants: Grants


Handler = Callable[[Context], Awaitable[Response]]
Schema = type[BaseModel] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A path, query or header parameter, with its JSON Schema."""

    name: str
    where: str
    description: str
    schema: Mapping[str, Any]
    required: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the API.

    Attributes:
        may_lack_body: whether it does something without a body too.
        answers: status → what comes back (a model, a JSON Schema, or None for something that is not JSON).
        headers: name → OpenAPI header object, of those answers that are no problems.
        links: OpenAPI link objects by name, of the same answers: which calls take up what these tell.
        problems: the statuses with which it may refuse, beside those that every call shares.
        route: the path for Starlette where a parameter may hold slashes; None means as in `path`.
        is_open: needs no key.
        needs_cards: answers only once the first cards are in force.
        takes_any_query: ignores query parameters that are not among `parameters`; a page may, elsewhere they are
            refused.
        media_type: of the answer.
    """

    operation_id: str
    method: str
    path: str
    summary: str
    handler: Handler
    answers: Mapping[int, Schema | None]
    body: Schema | None = None
    may_lack_body: bool = False
    parameters: tuple[Parameter, ...] = ()
    headers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    route: str | None = None
    is_open: bool = False
    needs_cards: bool = True
    takes_any_query: bool = False
    media_type: str = "application/json"
    tags: tuple[str, ...] = field(default=("routing",))

    @property
    def query_names(self) -> tuple[str, ...]:
        """The query parameters that it knows."""
        return tuple(parameter.name for parameter in self.parameters if parameter.where == "query")
