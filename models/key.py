"""Key: a caller's credential and what it grants."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from models.contract import AgentId, Contract, Namespace, Permission

ADMIN = "router:admin"
"""Permission to change cards, policy and weights, and to read everything."""

READ = "router:read"
"""Permission to read all cards, decisions, traces and events."""

HEARTBEAT = "router:heartbeat"
"""Permission to send heartbeats of the agents that the key may speak as."""

QUEUE = "router:queue"
"""Permission to claim and settle tickets of the degrade queue."""

REVIEW = "router:review"
"""Permission to see corrections, and to accept and reject them."""

OWN_PREFIX = "router:"
"""How the router's own permissions begin; what begins otherwise is for cards and policies to say."""

OWN_PERMISSIONS = (ADMIN, READ, HEARTBEAT, QUEUE, REVIEW)
"""All that begin with `OWN_PREFIX` and mean something."""


class Key(Contract):
    """A stored key; the secret itself is never stored.

    Attributes:
        key_id: public part of the token, by which it is found.
        secret_sha256: digest of the secret part (hex). 256 random bits need no slow hash.
        namespaces: where it may route; None means anywhere.
        callers: agent ids as which it may speak; None means any.
        created_at: epoch, milliseconds.
        revoked_at: epoch, milliseconds; None while it is valid.
    """

    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    name: Annotated[str, Field(min_length=1, max_length=128)]
    secret_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    permissions: frozenset[Permission] = frozenset()
    namespaces: frozenset[Namespace] | None = None
    callers: frozenset[AgentId] | None = None
    created_at: int
    revoked_at: int | None = None
