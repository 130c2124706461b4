"""Logged: a recorded decision read back with all that it was made from, so that it can be made anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from feedback.attribution import FAILURES, Charge, Party
from feedback.log_entry import LogEntry, LoggedOutcome, Option
from models.card import AgentKey
from models.decision import Reason
from models.events import DecisionRow, OutcomeRow
from models.outcome import Outcome
from models.request import Preference
from router.learned import Learned
from router.scorer import Blend, Contender, clamped, order, score
from router.success import heads_of

Rewarder = Callable[[Outcome, Charge, float], float | None]
"""(outcome, who it is charged to, slice of the plan in milliseconds) → reward."""


class Logged(NamedTuple):
    """A recorded decision and what it was made from.

    Attributes:
        entry: what it came to.
        contenders: as they were scored, in the order in which they came, which is that of `learned` too.
        propensities: of the contenders, in their order.
        chosen: place of the chosen one among the contenders.
        learned: what was known of the contenders; None where nothing was.
        blend: of the formula.
        seed: of the draws.
        is_wish: whether it was the request's or the session's wish, which outranks the formula.
        asked: the preference that the request named; None where it named none.
        said: the preference that the sentence told; None where it told none.
        permissions: of the caller; None means all.
        policy: digest of the policy that decided; None where the record does not say.
    """

    entry: LogEntry
    contenders: tuple[Contender, ...]
    propensities: tuple[float, ...]
    chosen: int
    learned: Learned | None
    blend: Blend
    seed: int
    is_wish: bool
    asked: Preference | None
    said: Preference | None
    permissions: frozenset[str] | None
    policy: str | None


class OlderFormatError(ValueError):
    """A record of before records held all that a decision is made from."""


def read_record(row: DecisionRow, outcomes: Sequence[OutcomeRow], reward: Rewarder) -> Logged:
    """A record read back.

    Args:
        row: of a decision that named an agent.
        outcomes: of its attempts, of each the newest, by attempt.
        reward: how an outcome becomes a reward.

    Raises:
        OlderFormatError: it lacks what is needed.
        ValueError, TypeError, LookupError, AttributeError: it is not as this release writes records.
    """
    inputs = orjson.loads(row.inputs)
    if "contenders" not in inputs or inputs.get("propensities") is None:
        raise OlderFormatError(row.decision_id)
    request, answer = orjson.loads(row.request), orjson.loads(row.answer)
    reading = inputs.get("reading") or {}
    similarity = float(inputs.get("similarity", answer["intent"]["confidence"]))
    contenders = tuple([_contender(each, similarity) for each in inputs["contenders"]])
    propensities = tuple([float(each) for each in inputs["propensities"]])
    if len(propensities) != len(contenders):
        raise ValueError(f"{len(propensities)} propensities, {len(contenders)} contenders")
    target, wish = answer["target"], request.get("target_agent")
    permissions = (inputs.get("grants") or {}).get("permissions")
    told = Logged(
        entry=_entry(row, request, answer),
        contenders=contenders,
        propensities=propensities,
        chosen=[each.key for each in contenders].index(_agent(target)),
        learned=_learned(inputs.get("learned"), len(contenders)),
        blend=Blend(*map(float, inputs["blend"])),
        seed=int(inputs["seed"]),
        is_wish=row.reason == Reason.STICKY_SESSION or (wish is not None and wish == target["agent_id"]),
        asked=request.get("preference"),
        said=reading.get("preference"),
        permissions=None if permissions is None else frozenset(permissions),
        policy=(inputs.get("digests") or {}).get("policy"),
    )
    return told._replace(entry=_completed(told, request, answer, outcomes, reward))


def _contender(sealed: Sequence[Any], similarity: float) -> Contender:
    agent, quality, cost, health, load, share_weight, latency_ms = sealed
    # a namespace may hold slashes, the other two may not
    namespace, agent_id, version = agent.rsplit("/", 2)
    return Contender(
        agent_id=agent_id,
        namespace=namespace,
        version=version,
        similarity=similarity,
        quality=float(quality),
        health=float(health),
        load=float(load),
        cost=float(cost),
        latency_ms=float(latency_ms),
        share_weight=float(share_weight),
    )


def _learned(sealed: Mapping[str, Any] | None, n_contenders: int) -> Learned | None:
    if sealed is None:
        return None
    alpha, beta = tuple(map(float, sealed["alpha"])), tuple(map(float, sealed["beta"]))
    if not len(alpha) == len(beta) == n_contenders:
        raise ValueError(f"{len(alpha)} alpha, {len(beta)} beta, {n_contenders} contenders")
    heads = heads_of(sealed)
    if heads is not None and {len(each) for each in heads} != {n_contenders}:
        raise ValueError(f"heads do not tell of {n_contenders} contenders")
    return Learned(
        mode=sealed["mode"],
        alpha=alpha,
        beta=beta,
        floor=float(sealed["floor"]),
        temperature=float(sealed["temperature"]),
        version=int(sealed["version"]),
        heads=heads,
    )


def _entry(row: DecisionRow, request: Mapping[str, Any], answer: Mapping[str, Any]) -> LogEntry:
    """What the record says by itself."""
    return LogEntry(
        decision_id=row.decision_id,
        trace_id=row.trace_id,
        at_ms=row.happened_at,
        namespace=row.namespace,
        caller=row.asker or row.caller,
        session_id=row.session_id,
        utterance=request.get("utterance"),
        language=answer.get("language"),
        intent=answer["intent"]["name"],
        intents=_intents(answer["intent"]),
        options=(),
        chosen=0,
        preference="auto",
        mode="",
        weights=int(answer["generations"]["weights"]),
    )


def _completed(
    told: Logged,
    request: Mapping[str, Any],
    answer: Mapping[str, Any],
    outcomes: Sequence[OutcomeRow],
    reward: Rewarder,
) -> LogEntry:
    """The entry with its options, best first, and with what came of the choice."""
    options, learned = _options(told), told.learned
    choice = _caller_choice(request.get("caller_choice"), told)
    chosen = told.contenders[told.chosen].key
    # an attempt beyond the plan is none of this decision's
    plan = answer["plan"]
    known = [each for each in outcomes if each.attempt <= (len(plan) if choice is None else 1)]
    return replace(
        told.entry,
        options=options,
        chosen=[option.agent for option in options].index(chosen),
        preference=next((each for each in (told.asked, told.said) if each not in (None, "auto")), "auto"),
        mode="" if learned is None else learned.mode,
        weights=told.entry.weights if learned is None else learned.version,
        caller_choice=choice,
        outcomes=tuple([_outcome(each, plan, choice, reward) for each in known]),
    )


def _options(told: Logged) -> tuple[Option, ...]:
    shares = {each.key: share for each, share in zip(told.contenders, told.propensities, strict=True)}
    return tuple(
        [
            Option(
                agent=each.key,
                similarity=clamped(each.similarity),
                quality=clamped(each.quality),
                health=clamped(each.health),
                load=clamped(each.load),
                cost=each.cost,
                latency_ms=each.latency_ms,
                share_weight=each.share_weight,
                propensity=shares[each.key],
            )
            for each in (scored.contender for scored in order(score(told.contenders, told.blend)))
        ]
    )


def _intents(intent: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    read = (intent, *intent.get("alternatives", ()))
    return tuple([(each["name"], float(each["confidence"])) for each in read])


def _agent(target: Mapping[str, Any]) -> AgentKey:
    return (target["namespace"], target["agent_id"], target["version"])


def _caller_choice(choice: Mapping[str, Any] | None, told: Logged) -> AgentKey | None:
    """The agent that the caller called; where it names no version, that of the contender, "" where it is none."""
    if choice is None:
        return None
    agent = (choice.get("namespace") or told.entry.namespace, choice["agent_id"])
    version = choice.get("version")
    if version is None:
        served = (each.version for each in told.contenders if (each.namespace, each.agent_id) == agent)
        version = next(served, "")
    return (*agent, version)


def _outcome(
    row: OutcomeRow, plan: Sequence[Mapping[str, Any]], choice: AgentKey | None, reward: Rewarder
) -> LoggedOutcome:
    if choice is None:
        step = plan[row.attempt - 1]
        agent, slice_ms = _agent(step["target"]), float(step["timeout_ms"])
    else:
        # how long a caller waits for an agent of its own choice is not known
        agent, slice_ms = choice, 0.0
    outcome = Outcome.model_validate_json(row.body)
    party = Party(row.charged)
    # as `charge` does: only an end without failure is the agent's merit
    failed = party is not Party.AGENT or outcome.status in FAILURES
    return LoggedOutcome(
        attempt=row.attempt,
        agent=agent,
        outcome=outcome,
        charged=row.charged,
        reward=reward(outcome, Charge(party, failed), slice_ms),
        at_ms=row.received_at,
    )
