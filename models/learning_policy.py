"""The parts of a policy that govern learning, exploration, and how long what was recorded is kept."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from models.contract import Contract

Share = Annotated[float, Field(ge=0, le=1)]
Evidence = Annotated[float, Field(ge=0, le=1_000_000)]
Days = Annotated[float, Field(gt=0, le=36_500)]


LearningMode = Literal["observe", "exploit", "explore"]
"""What posteriors are used for."""


class RewardPolicy(Contract):
    """How an outcome becomes a reward, 0..1.

    Attributes:
        succeeded: what an outcome of that status is worth where nobody judged its quality; so do the next ones.
        quality_weight: how much a given quality counts beside the status.
        slow_after: latency by the slice of the plan from which on a success is worth less.
        slow_penalty: what is taken off a success that took the whole slice.
    """

    succeeded: Share = 1.0
    low_confidence: Share = 0.5
    schema_mismatch: Share = 0.1
    failed: Share = 0.0
    timed_out: Share = 0.0
    unreachable: Share = 0.0
    quality_weight: Share = 1.0
    slow_after: Share = 0.5
    slow_penalty: Share = 0.0


class DriftPolicy(Contract):
    """When an agent that does worse than what is known of it is demoted (one-sided CUSUM, Page 1954).

    Attributes:
        slack: k, in standard deviations of one outcome.
        threshold: h; the sum from which on there is an alarm.
        keep: so many outcomes of evidence are kept at an alarm.
        decay: of a demoted agent's evidence with each request that is routed in its namespace.
        clear_after: outcomes without alarm after which it is demoted no longer.
    """

    enabled: bool = True
    slack: Annotated[float, Field(ge=0, le=10)] = 0.25
    threshold: Annotated[float, Field(gt=0, le=10_000)] = 25.0
    keep: Evidence = 20.0
    decay: Annotated[float, Field(gt=0, le=1)] = 0.999
    clear_after: Annotated[int, Field(ge=1, le=1_000_000)] = 50


class FreezePolicy(Contract):
    """When learning stops by itself, as outcomes look wrong.

    Attributes:
        rate_drop: frozen where the share of decisions with an outcome falls by more than this part of what it was.
        odd_share: a caller is not learned from where more than this share of its outcomes contradict what it told
            before, or come before the attempt that they follow.
        window: so many decisions, or outcomes of a caller, make a window.
    """

    enabled: bool = True
    rate_drop: Annotated[float, Field(gt=0, le=1)] = 0.5
    odd_share: Annotated[float, Field(gt=0, le=1)] = 0.2
    window: Annotated[int, Field(ge=20, le=1_000_000)] = 500


class LearningPolicy(Contract):
    """How outcomes change routing.

    Attributes:
        mode: `observe` keeps posteriors and uses declared quality; `exploit` uses posterior means; `explore` draws
            quality from the posterior.
        reward: from outcome to reward.
        prior: n0: a declared quality counts as so many outcomes of an agent's intent, and no more.
        agent_prior: n_g: the same for the agent over all its intents.
        intent_prior: the same for an intent over all its agents.
        temperature: 1 draws from the posterior as it is; less draws nearer to its mean.
        floor: eps: share of the decisions that explore is spread evenly over all candidates.
        inherit: share of its predecessor's evidence with which a new version of an agent begins.
        caller_share: what a caller tells of an agent's intent counts for others up to this share of all that is told of
            it, or as far as another caller has told as much. In its own decisions all of it counts.
        caller_free: so many of a caller's outcomes count for others in any case.
        exponents: whether exponents of the merit are learned; those of the policy are where they begin.
        heads: whether the success heads of the model in force are blended into the posteriors.
        max_rise: most by which an agent's share of an intent may rise within an hour; None limits nothing.
        drift: detection of agents that got worse.
        freeze: when learning stops by itself.
        snapshot_every: outcomes between two snapshots of the weights.
    """

    mode: LearningMode = "exploit"
    reward: RewardPolicy = RewardPolicy()
    prior: Annotated[float, Field(gt=0, le=10)] = 10.0
    agent_prior: Annotated[float, Field(gt=0, le=1000)] = 10.0
    intent_prior: Annotated[float, Field(gt=0, le=1000)] = 5.0
    temperature: Annotated[float, Field(gt=0, le=2)] = 0.5
    floor: Annotated[float, Field(ge=0, le=0.5)] = 0.02
    inherit: Share = 0.5
    caller_share: Annotated[float, Field(gt=0, le=1)] = 0.1
    caller_free: Evidence = 0.0
    exponents: bool = True
    heads: bool = True
    max_rise: Annotated[float, Field(gt=0, le=1)] | None = None
    drift: DriftPolicy = DriftPolicy()
    freeze: FreezePolicy = FreezePolicy()
    snapshot_every: Annotated[int, Field(ge=1, le=1_000_000)] = 500


class RiskPolicy(Contract):
    """Which risk classes of intents may be explored, and in which modes.

    Attributes:
        low: `floor` of the learning policy also in mode `exploit`; `explore` only in that mode; `none` never. So do
            the next ones for their classes.
    """

    low: Literal["none", "explore", "always"] = "always"
    normal: Literal["none", "explore", "always"] = "explore"
    high: Literal["none"] = "none"


class RetentionPolicy(Contract):
    """What is kept of requests, and for how long.

    Attributes:
        utterances: `full`; `redacted`, with entities masked; `digest` keeps no text.
        decisions_days: age at which records of decisions are dropped, their seals stay; None keeps them.
        outcomes_days: the same of outcomes.
        events_days: the same of audit events.
        generations_days: the same of cards, policies, classifiers and weights that no kept decision needs.
    """

    utterances: Literal["full", "redacted", "digest"] = "full"
    decisions_days: Days | None = 90.0
    outcomes_days: Days | None = 400.0
    events_days: Days | None = 90.0
    generations_days: Days | None = 90.0
