"""Permit: who may be considered at all. Checked before anything is ranked, counted or explained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from models.errors import ForbiddenError
from models.key import ADMIN, HEARTBEAT, QUEUE, READ, REVIEW, Key
from models.policy import Policy
from models.request import RouteRequest
from router.snapshot import Entry, Snapshot

_IN_ADMIN = frozenset({READ, QUEUE, HEARTBEAT, REVIEW})


@dataclass(frozen=True, slots=True)
class Grants:
    """What the presenter of a request may do.

    Attributes:
        caller: name of the key; "" while keys are off.
        permissions: None means all (keys are off).
        namespaces: where it may route; None means anywhere.
        agent_ids: as whom it may speak; None means as any.
    """

    caller: str
    permissions: frozenset[str] | None
    namespaces: frozenset[str] | None = None
    agent_ids: frozenset[str] | None = None

    @classmethod
    def of(cls, key: Key) -> Grants:
        """What a key grants."""
        return cls(key.name, key.permissions, key.namespaces, key.callers)

    def has(self, permission: str) -> bool:
        """Whether one permission is granted."""
        return self.permissions is None or permission in self.permissions

    def require(self, permission: str) -> None:
        """Raises ForbiddenError without this permission (`router:admin` includes those to read and to work)."""
        if not (self.has(permission) or (permission in _IN_ADMIN and self.has(ADMIN))):
            raise ForbiddenError(f"this call needs a key with the permission {permission!r}")

    def reaches(self, namespace: str) -> bool:
        """Whether it may route in a namespace."""
        return self.namespaces is None or namespace in self.namespaces

    def speaks_as(self, agent_id: str) -> bool:
        """Whether it may speak as this agent."""
        return self.agent_ids is None or agent_id in self.agent_ids

    def is_own(self, caller: str) -> bool:
        """Whether what the key of that name asked for is its own; what was asked without a key is nobody's."""
        return self.caller == caller and bool(caller)

    def check(self, request: RouteRequest) -> None:
        """Raises ForbiddenError where the key does not cover the request's namespace or its caller's id."""
        if not self.reaches(request.namespace):
            raise ForbiddenError(f"this key does not reach namespace {request.namespace!r}")
        choice = request.caller_choice
        if choice is not None and choice.namespace is not None and not self.reaches(choice.namespace):
            raise ForbiddenError(f"this key does not reach namespace {choice.namespace!r} of the caller's choice")
        speaker = request.caller.agent_id
        if speaker is not None and not self.speaks_as(speaker):
            raise ForbiddenError(f"this key may not speak as {speaker!r}: use one of its own caller ids")


OPEN = Grants(caller="", permissions=None)
"""Keys are off: on loopback, before the first key was made."""


def namespaces_of(request: RouteRequest, policy: Policy, grants: Grants) -> tuple[str, ...]:
    """The namespaces a request is routed in: its own, then those it may cross to, by name.

    A crossing needs all three: the request asks for it, the policy of its namespace allows it, the key reaches it.
    """
    if request.cross_namespace is False:
        return (request.namespace,)
    allowed = policy.of(request.namespace).cross_namespaces
    asked = allowed if request.cross_namespace is True else request.cross_namespace
    crossed = {name for name in asked if name in allowed and name != request.namespace and grants.reaches(name)}
    return (request.namespace, *sorted(crossed))


def permits(entry: Entry, request: RouteRequest, grants: Grants) -> bool:
    """Whether this request may reach this capability: every condition, not an overlap."""
    card = entry.card
    if entry.reserved:
        return False
    if grants.permissions is not None and not entry.required <= grants.permissions:
        return False
    if card.allowed_sources is not None and request.caller.agent_id not in card.allowed_sources:
        return False
    return card.allowed_callers is None or not grants.caller or grants.caller in card.allowed_callers


def permitted(entries: Iterable[Entry], request: RouteRequest, grants: Grants) -> list[Entry]:
    """Those of `entries` that the request may reach."""
    return [entry for entry in entries if permits(entry, request, grants)]


def labelled(entries: Iterable[Entry], request: RouteRequest) -> list[Entry]:
    """Those whose labels fit the request's environment and tenant; what it does not name restricts nothing."""
    if request.environment is None and request.tenant is None:
        return list(entries)
    wanted = {"environment": request.environment, "tenant": request.tenant}
    return [
        entry
        for entry in entries
        if all(value is None or entry.card.labels.get(name) == value for name, value in wanted.items())
    ]


def permitted_of(
    snapshot: Snapshot, namespaces: tuple[str, ...], intent: str, request: RouteRequest, grants: Grants
) -> list[Entry]:
    """The routable capabilities of an intent that this request may reach and whose labels fit it."""
    return permitted(labelled(snapshot.routable(namespaces, intent), request), request, grants)
