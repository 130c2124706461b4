"""The parts of a policy that govern live state: health, breakers, ejection, leases, quotas, the degrade queue."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from models.contract import AgentId, Contract, Label, Namespace

Milliseconds = Annotated[int, Field(ge=0, le=86_400_000)]
Window = Annotated[int, Field(ge=1, le=86_400_000)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Factor = Annotated[float, Field(ge=0, le=1000)]


class HealthPolicy(Contract):
    """How an agent's signs of life become one score (SPEC R2).

    Attributes:
        heartbeat: weight of the heartbeat layer in the score; those of layers without any figure count for nothing.
        probe: weight of the interface probe.
        business: weight of the figures from outcomes or heartbeats.
        suspect_after: missed heartbeats from which an agent is suspect.
        down_after: missed heartbeats from which it is down and gets nothing.
        suspect_score: the heartbeat layer's score of a suspect agent.
        window_ms: how far back outcomes count.
        min_outcomes: with fewer in the window neither health nor timeouts follow them.
    """

    heartbeat: Factor = 0.4
    probe: Factor = 0.3
    business: Factor = 0.3
    suspect_after: Annotated[float, Field(ge=1, le=1000)] = 1.5
    down_after: Annotated[float, Field(ge=1, le=1000)] = 3.0
    suspect_score: Share = 0.5
    window_ms: Window = 300_000
    min_outcomes: Count = 20


class BreakerPolicy(Contract):
    """When calls to a failing target stop, and how they begin again (SPEC R9).

    Attributes:
        failure_share: over this share of failures in the window it opens.
        window_ms: how far back calls count.
        min_calls: with fewer calls in the window it stays closed.
        failure_threshold: so many failures in a row open it too; None leaves that out.
        open_ms: how long it stays open.
        open_growth: factor on that for each time that it opened again out of half-open.
        max_open_ms: the longest that growth leads to.
        jitter: the time is multiplied by 1 ± up to this share.
        half_open_max_calls: probes admitted in each interval.
        half_open_interval_ms: length of that interval.
        successes_to_close: successful probes that close it.
    """

    enabled: bool = True
    failure_share: Annotated[float, Field(gt=0, le=1)] = 0.4
    window_ms: Window = 120_000
    min_calls: Count = 10
    failure_threshold: Count | None = None
    open_ms: Window = 30_000
    open_growth: Annotated[float, Field(ge=1, le=10)] = 1.0
    max_open_ms: Window = 600_000
    jitter: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    half_open_max_calls: Annotated[int, Field(ge=1, le=1000)] = 1
    half_open_interval_ms: Window = 10_000
    successes_to_close: Annotated[int, Field(ge=1, le=1000)] = 1


class DependencyPolicy(BreakerPolicy):
    """The same for a dependency that several agents share (SPEC A13).

    Attributes:
        min_agents: failures of fewer agents do not open it, unless an outcome names the dependency.
        retries_per_s: rate of the token bucket that marked retries pass.
        retry_burst: its size.
    """

    failure_share: Annotated[float, Field(gt=0, le=1)] = 0.2
    min_calls: Count = 20
    min_agents: Count = 2
    retries_per_s: Annotated[float, Field(ge=0, le=1_000_000)] = 5.0
    retry_burst: Annotated[int, Field(ge=0, le=1_000_000)] = 20


class EjectionPolicy(Contract):
    """When an agent that does worse than its peers of the same intent is left out for a while.

    Attributes:
        consecutive_failures: so many in a row eject.
        window_ms: how far back calls count.
        min_calls: with fewer calls in the window an agent is neither judged nor a peer.
        success_gap: ejected where its success rate lies more than this below the median of its peers.
        latency_factor: ejected where its mean latency is more than this many times the median of its peers.
        base_ms: how long; as often again for each time before.
        max_ms: the longest.
        max_ejected_share: of the agents of an intent at most this share is ejected, the new one included.
        panic_share: if less than this share is left able, ejections count for nothing.
    """

    enabled: bool = True
    consecutive_failures: Count = 5
    window_ms: Window = 60_000
    min_calls: Count = 20
    success_gap: Share = 0.3
    latency_factor: Annotated[float, Field(gt=1, le=1000)] = 3.0
    base_ms: Window = 30_000
    max_ms: Window = 300_000
    max_ejected_share: Share = 0.5
    panic_share: Share = 0.3


class LeasePolicy(Contract):
    """How long a place at an agent is kept for a decision.

    Attributes:
        grace_ms: after the last attempt of the plan should have ended.
    """

    grace_ms: Milliseconds = 10_000


class PoisonPolicy(Contract):
    """When a request that fails everywhere is taken to be the cause itself.

    Attributes:
        agents: failing on so many different agents makes a request poison.
        ttl_ms: for how long it is refused.
    """

    agents: Annotated[int, Field(ge=2, le=100)] = 2
    ttl_ms: Window = 600_000


class SessionPolicy(Contract):
    """What is remembered of a session.

    Attributes:
        ttl_ms: how long its bare answer goes back to the agent that asked, and its failures count; 0 leaves both out.
        human_after: so many failures of agents in a row hand it over to people, where an agent declares how
            (`fallback.human`, SPEC R11).
    """

    ttl_ms: Milliseconds = 900_000
    human_after: Count = 3


class QueuePolicy(Contract):
    """The degrade queue.

    Attributes:
        max_tickets: of a namespace; more get a fallback.
        ttl_ms: after that a ticket expires.
        claim_ms: how long a claimed ticket is kept for who claimed it.
        max_claims: claims without a settlement after which a ticket is given up.
    """

    max_tickets: Count = 10_000
    ttl_ms: Window = 3_600_000
    claim_ms: Window = 60_000
    max_claims: Annotated[int, Field(ge=1, le=1000)] = 5


class Quota(Contract):
    """At most so many calls, or tokens, in any window.

    Attributes:
        caller: whose calls; None means each caller by itself, where `per_caller`, else all of them together.
        agent: to which agent; None means each agent by itself, where `per_agent`, else all of them together.
        namespace: of the request; None means any.
        over: what a request over the quota gets, where it is an agent's and no other can take it: a ticket, a degraded
            answer, or (only where it tells callers apart) 429.
    """

    caller: Label | None = None
    per_caller: bool = False
    agent: AgentId | None = None
    per_agent: bool = False
    namespace: Namespace | None = None
    window_ms: Window = 3_600_000
    max_calls: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    max_tokens: Annotated[int, Field(ge=0, le=1_000_000_000_000)] | None = None
    over: Literal["queue", "degrade", "reject"] = "degrade"

    @model_validator(mode="after")
    def _limits_something(self) -> Quota:
        if self.max_calls is None and self.max_tokens is None:
            raise ValueError("a quota needs 'max_calls' or 'max_tokens'")
        if not (self.is_of_caller or self.is_of_agent):
            raise ValueError("a quota needs one of 'caller', 'per_caller', 'agent', 'per_agent'")
        if self.over == "reject" and not self.is_of_caller:
            raise ValueError("'over: reject' is for quotas of callers: 'caller' or 'per_caller'")
        return self

    @property
    def is_of_caller(self) -> bool:
        """Whether it tells callers apart."""
        return self.per_caller or self.caller is not None

    @property
    def is_of_agent(self) -> bool:
        """Whether it tells agents apart."""
        return self.per_agent or self.agent is not None
