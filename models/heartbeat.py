"""Heartbeat: what an agent says of itself, every `heartbeat_s` of its card."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from models.contract import Contract, SemanticVersion

Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Duration = Annotated[float, Field(ge=0, le=86_400_000)]
Share = Annotated[float, Field(ge=0, le=1)]


class Heartbeat(Contract):
    """A sign of life, with the business figures of the last five minutes where the agent knows them.

    Attributes:
        digest: of the card that the agent runs with, as `GET /agents/{agent_id}` tells it.
        version: which version of the agent this is; None where only one is registered.
        load: share of its capacity in use.
        queue_depth: requests that wait at the agent.
        error_rate: share of its calls that failed.
    """

    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    version: SemanticVersion | None = None
    load: Share | None = None
    queue_depth: Count | None = None
    mean_latency_ms: Duration | None = None
    p95_latency_ms: Duration | None = None
    error_rate: Share | None = None
