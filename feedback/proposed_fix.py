"""ProposedFix: what would end a cluster of failures, as far as the log tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from statistics import median
from typing import NamedTuple

from feedback.attribution import FULL_SLICE, Party
from feedback.failure import Failure, FailureStage, Traffic

MOST = 0.6
"""A share of a cluster's failures that speaks for the whole."""

NEAR = 0.45
"""A text with this cosine to an example of an intent is covered by the intent."""

_SICK_RATE = 0.1
_ONE_INTENT = 0.8
_MIN_CALLS = 3
_PEER_SHARE = 0.5

TrafficByIntent = Mapping[tuple[str, str, str], Traffic]
"""By (namespace, agent, intent)."""


class FixKind(StrEnum):
    """What is to be mended."""

    MISSING_EXAMPLE = "missing_example"
    SHADOWED_CARD = "shadowed_card"
    SICK_AGENT = "sick_agent"
    WEAK_CAPABILITY = "weak_capability"
    DEPENDENCY = "dependency"
    TIGHT_DEADLINE = "tight_deadline"
    BAD_OUTPUT = "bad_output"
    POISON_REQUEST = "poison_request"
    UNCOVERED_TOPIC = "uncovered_topic"
    PERMISSION = "permission"
    NO_ROOM = "no_room"
    UNCLEAR = "unclear"


class ProposedFix(NamedTuple):
    """What to do about a cluster.

    Attributes:
        text: what to do, in one sentence.
        reason: what speaks for it, with numbers.
        intent: whose texts are to change, or which is failed at; None where it is not about one.
        other_intent: the intent whose texts take away what belongs to `intent`.
        agent: to be looked after.
        dependency: that failed.
    """

    kind: FixKind
    text: str
    reason: str
    intent: str | None = None
    other_intent: str | None = None
    agent: str | None = None
    dependency: str | None = None


def proposed_fix(members: Sequence[Failure], phrases: Sequence[str], traffic: TrafficByIntent) -> ProposedFix:
    """What the failures of a cluster have in common, as something to do.

    Args:
        members: at least one.
        phrases: typical of them.
        traffic: how the agents did in all, failures or not; empty where that is not known.
    """
    stage, share = top(failure.stage for failure in members)
    if share < MOST:
        return _unclear(f"{share:.0%} of them failed at one stage, {stage}")
    if stage == FailureStage.READING:
        return _reading(members, phrases)
    if stage == FailureStage.DEPENDENCY:
        return _dependency(members)
    if stage == FailureStage.REQUEST:
        return _request(members)
    if stage == FailureStage.DEADLINE:
        return _deadline(members, traffic)
    if stage == FailureStage.SCHEMA:
        return _bad_output(members)
    if stage == FailureStage.AGENT:
        return _agent(members, traffic)
    return _nobody(members, stage)


def top(values: Iterable[str]) -> tuple[str, float]:
    """The most frequent value and its share; of equally frequent ones the least.

    >>> top(["b", "a", "b", "c"])
    ('b', 0.5)
    """
    counts = Counter(values)
    value = min(counts, key=lambda value: (-counts[value], value))
    return value, counts[value] / counts.total()


def _reading(members: Sequence[Failure], phrases: Sequence[str]) -> ProposedFix:
    pairs = [(failure.intent, failure.meant) for failure in members if failure.intent and failure.meant]
    told = ", ".join(f'"{phrase}"' for phrase in phrases) or "these texts"
    if len(pairs) < MOST * len(members):
        text = f"No intent covers {told}: add a capability or examples for it, or leave it out of scope."
        return ProposedFix(FixKind.UNCOVERED_TOPIC, text, f"{len(members)} requests alike were read as out of scope")
    meant, share = top(meant for _, meant in pairs)
    if share < MOST:
        return _unclear(f"no intent is named by most of the corrections; '{meant}' by {share:.0%}")
    read, _ = top(read for read, to in pairs if to == meant)
    n = sum(to == meant for _, to in pairs)
    reason = f"{n} corrections say '{meant}' where '{read}' was read"
    near = [failure.near_meant for failure in members if failure.near_meant is not None]
    other = [failure.near_read for failure in members if failure.near_read is not None]
    if near and other and median(near) >= NEAR:
        text = f"Texts of '{read}' shadow '{meant}': part the two where they overlap, at {told}."
        reason += f"; '{meant}' has examples like it (cosine {median(near):.2f}), '{read}' too ({median(other):.2f})"
        return ProposedFix(FixKind.SHADOWED_CARD, text, reason, meant, read)
    if near:
        reason += f"; no example of '{meant}' is like it (cosine {median(near):.2f})"
    text = f"Give '{meant}' examples of {told}."
    return ProposedFix(FixKind.MISSING_EXAMPLE, text, reason, meant, read)


def _request(members: Sequence[Failure]) -> ProposedFix:
    agents = {failure.agent for failure in members} - {""}
    text = "These requests fail wherever they are sent: look at what they hold, and reject them where they come from."
    reason = f"{len(members)} failures at {len(agents)} agents were charged to the request"
    if not agents:
        reason = f"{len(members)} requests were turned away, as the same ones had failed on several agents"
    return ProposedFix(FixKind.POISON_REQUEST, text, reason)


def _dependency(members: Sequence[Failure]) -> ProposedFix:
    named = [failure.dependency for failure in members if failure.dependency]
    if not named:
        return _unclear("a dependency is charged that no error names")
    name, share = top(named)
    agents = len({failure.agent for failure in members if failure.dependency == name})
    text = f"Look after the dependency '{name}', not after the agents that need it."
    reason = f"{share:.0%} of the errors that name a dependency name it, at {agents} agents"
    return ProposedFix(FixKind.DEPENDENCY, text, reason, dependency=name)


def _deadline(members: Sequence[Failure], traffic: TrafficByIntent) -> ProposedFix:
    agent, agent_share = top(failure.agent for failure in members)
    slices = [failure.slice_ms for failure in members if failure.slice_ms is not None]
    if not slices:
        reason = f"{len(members)} deadlines were over before any agent could be called"
        return ProposedFix(FixKind.TIGHT_DEADLINE, "Ask earlier, or allow more time.", reason)
    slice_ms = median(slices)
    party, share = top(failure.charged for failure in members)
    whose = agent if agent_share >= MOST else None
    if party == Party.CALLER and share >= MOST:
        waited = [failure.latency_ms for failure in members if failure.latency_ms is not None]
        text = "Let callers wait as long as the plan says, or send a shorter deadline."
        reason = (
            f"calls were given up after {median(waited):.0f} ms of {slice_ms:.0f} ms" if waited else "given up early"
        )
        return ProposedFix(FixKind.TIGHT_DEADLINE, text, reason, agent=whose)
    usual_ms = _usual_ms(members, traffic)
    is_short = usual_ms is not None and slice_ms < FULL_SLICE * usual_ms
    if is_short or (party == Party.ROUTER and share >= MOST):
        text = f"Allow more time{f' for {agent}' if whose else ''}: a longer deadline, or fewer attempts in it."
        reason = f"slices of {slice_ms:.0f} ms"
        reason += "" if usual_ms is None else f" where {usual_ms:.0f} ms are usual"
        return ProposedFix(FixKind.TIGHT_DEADLINE, text, reason, agent=whose)
    return _agent(members, traffic)


def _usual_ms(members: Sequence[Failure], traffic: TrafficByIntent) -> float | None:
    """The time that the agents should have had: what was suggested when the plan was made, or what successes took."""
    usual = []
    for failure in members:
        told = traffic.get((failure.namespace, failure.agent, failure.intent or ""))
        known = [ms for ms in (failure.usual_ms, told.p90_ms if told else None) if ms is not None]
        if known:
            usual.append(max(known))
    return median(usual) if usual else None


def _bad_output(members: Sequence[Failure]) -> ProposedFix:
    agent, share = top(failure.agent for failure in members)
    if share < MOST:
        intent, _ = top(failure.intent or "" for failure in members)
        text = f"Look at the output schema of '{intent}': several agents do not keep it."
        return ProposedFix(FixKind.BAD_OUTPUT, text, f"'{agent}' gave {share:.0%} of them", intent)
    text = f"Mend the output of '{agent}', or the output schema on its card."
    return ProposedFix(FixKind.BAD_OUTPUT, text, f"{share:.0%} of the answers off the schema are its", agent=agent)


def _agent(members: Sequence[Failure], traffic: TrafficByIntent) -> ProposedFix:
    who, share = top(f"{failure.namespace}\0{failure.agent}" for failure in members)
    namespace, agent = who.split("\0")
    if share < MOST:
        return _unclear(f"no agent has most of them; '{agent}' has {share:.0%}")
    own = [each.intent or "" for each in members if each.agent == agent]
    served = [each for (space, name, _), each in traffic.items() if (space, name) == (namespace, agent)]
    peers = [
        each
        for (space, name, intent), each in traffic.items()
        if space == namespace and name != agent and intent in set(own)
    ]
    rate, peer_rate = _rate(served), _rate(peers)
    if rate is not None and peer_rate is not None and peer_rate > _PEER_SHARE * rate:
        reason = f"'{agent}' fails {rate:.0%} of its calls, its peers {peer_rate:.0%} at the same intents"
        return _unclear(reason)
    error, error_share = top(each.error or each.status for each in members)
    if error_share < MOST and rate is not None and rate < _SICK_RATE:
        return _unclear(
            f"'{agent}' fails {rate:.0%} of its calls, and with many errors; '{error}' is {error_share:.0%}"
        )
    said = "" if rate is None else f", {rate:.0%} of its calls"
    said += "" if peer_rate is None else f"; its peers fail {peer_rate:.0%}"
    intent, intent_share = top(own)
    if intent_share >= _ONE_INTENT and sum(each.n_calls >= _MIN_CALLS for each in served) > 1:
        text = f"Mend what '{agent}' does for '{intent}', or take that off its card."
        return ProposedFix(FixKind.WEAK_CAPABILITY, text, f"it fails at one of its intents{said}", intent, agent=agent)
    text = f"Look after the agent '{agent}', or disable it."
    return ProposedFix(FixKind.SICK_AGENT, text, f"it fails at {len(set(own))} intent(s){said}", agent=agent)


def _rate(traffic: Iterable[Traffic]) -> float | None:
    each = list(traffic)
    n_calls = sum(one.n_calls for one in each)
    return sum(one.n_failed for one in each) / n_calls if n_calls else None


def _nobody(members: Sequence[Failure], stage: str) -> ProposedFix:
    intent, _ = top(failure.intent or "" for failure in members)
    reason, share = top(failure.error or "" for failure in members)
    if stage == FailureStage.PERMISSION:
        text = f"Give those callers what '{intent}' needs, or let them not ask for it."
        return ProposedFix(FixKind.PERMISSION, text, f"{len(members)} requests were not permitted", intent or None)
    if reason == "no_capable_agent":
        text = f"No agent can take '{intent}' as it was asked for: add one, or look at versions and payloads."
        return ProposedFix(FixKind.UNCOVERED_TOPIC, text, f"{share:.0%} of them found no capable agent", intent or None)
    text = f"Make room for '{intent}': more agents or higher limits, or mend those that are down."
    return ProposedFix(FixKind.NO_ROOM, text, f"{share:.0%} of them ended with '{reason}'", intent or None)


def _unclear(reason: str) -> ProposedFix:
    return ProposedFix(FixKind.UNCLEAR, "Look at the example traces: no single cause stands out.", reason)
