"""Clusters of failures: those that look alike, with a name and what would end them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.cluster_names import typical_phrases
from feedback.failure import Failure, FailureStage
from feedback.failure_distance import coordinates
from feedback.failure_trend import Trend, trend_of
from feedback.proposed_fix import ProposedFix, TrafficByIntent, proposed_fix, top

MAX_FAILURES = 20_000
"""The newest ones are clustered; memory and time (quadratic) are bounded by it."""

SAME = 0.55
"""Groups nearer than this are one: less than another agent or error makes, a cosine of 0.7 where texts tell."""

FAR = 0.7
"""A failure that is farther than this from all groups is of no cluster."""

ELSEWHERE = 2.0
"""A distance at which nothing is alike; larger than most within a stage."""

_MIN_SIZE = 5
_ONE_IN = 400
_N_NEIGHBOURS = 5
_N_EXAMPLES = 5
_N_LISTED = 10


class Example(NamedTuple):
    """A failure to look at; `utterance` is None where it is not kept."""

    trace_id: str
    decision_id: str
    at_ms: int
    utterance: str | None


class Counted(NamedTuple):
    """A value and how many failures of the cluster have it."""

    value: str
    n: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """Failures alike.

    Attributes:
        phrases: typical of their utterances; empty where there are none, or they have nothing in common.
        size: how many there are.
        share: of all failures that were clustered, 0..1.
        first_seen: epoch, milliseconds; so is `last_seen`.
        agents: "namespace/agent@version", the most frequent first; so are `errors` and `intents`.
        examples: the newest.
    """

    name: str
    phrases: tuple[str, ...]
    stage: FailureStage
    size: int
    share: float
    first_seen: int
    last_seen: int
    trend: Trend
    agents: tuple[Counted, ...]
    errors: tuple[Counted, ...]
    intents: tuple[Counted, ...]
    examples: tuple[Example, ...]
    fix: ProposedFix


@dataclass(frozen=True, slots=True)
class FailureReport:
    """All failures of a time.

    Attributes:
        n_failures: that were clustered.
        from_ms: when the log begins (epoch); 0 where it is empty. So is `until_ms`, when it ends.
        clusters: the largest first.
        n_rest: failures like too few others to be a cluster.
        rest: examples of them, the newest.
        labels: of each failure, in the order given, the place of its cluster; -1 for the rest.
    """

    n_failures: int
    from_ms: int
    until_ms: int
    clusters: tuple[Cluster, ...]
    n_rest: int
    rest: tuple[Example, ...]
    labels: tuple[int, ...]


def cluster_failures(
    failures: Sequence[Failure],
    vectors: NDArray[np.float32],
    traffic: TrafficByIntent,
    *,
    from_ms: int,
    until_ms: int,
    min_size: int | None = None,
) -> FailureReport:
    """Find the causes of failures by their density, with HDBSCAN (Campello, Moulavi and Sander, 2013).

    Groups nearer than `SAME` are one (Malzer and Baum, 2020): in place of the clusters within a group that DBSCAN*
    finds at this distance stands the group. Nothing is drawn at random, and the order of the failures makes no
    difference.

    Args:
        failures: in any order; at most `MAX_FAILURES`.
        vectors: (n, dim) float32, unit length, of their utterances; all zero where there is none.
        traffic: how the agents did in all; empty where that is not known.
        from_ms: when the log begins (epoch).
        until_ms: when it ends.
        min_size: fewer failures are no cluster, at least 2; None takes 5, or one in 400 where that is more.

    Raises:
        ValueError: there are more failures than that, or as many vectors do not come with them.
    """
    n = len(failures)
    if n > MAX_FAILURES or len(vectors) != n:
        raise ValueError(
            f"{n} failures with {len(vectors)} vectors; at most {MAX_FAILURES} with one each are clustered"
        )
    least = max(_MIN_SIZE, n // _ONE_IN) if min_size is None else max(2, min_size)
    order = sorted(range(n), key=lambda number: _order(failures[number]))
    ordered = [failures[number] for number in order]
    found = _labels(ordered, vectors[order], least)
    groups: dict[int, list[Failure]] = {}
    for failure, label in zip(ordered, found, strict=True):
        groups.setdefault(label, []).append(failure)
    rest = groups.pop(-1, [])
    by_size = sorted(groups, key=lambda label: (-len(groups[label]), _order(groups[label][0])))
    phrases = typical_phrases([_texts(groups[label]) for label in by_size], _texts(rest))
    clusters = [
        _cluster(groups[label], said, traffic, n, (from_ms, until_ms))
        for label, said in zip(by_size, phrases, strict=True)
    ]
    place = {label: number for number, label in enumerate(by_size)} | {-1: -1}
    labels = dict(zip(order, (place[label] for label in found), strict=True))
    return FailureReport(
        n, from_ms, until_ms, tuple(clusters), len(rest), _examples(rest), tuple(labels[number] for number in range(n))
    )


def _labels(failures: Sequence[Failure], vectors: NDArray[np.float32], min_size: int) -> list[int]:
    """By failure the number of its cluster; -1 for none."""
    labels = np.full(len(failures), -1)
    for stage in FailureStage:
        rows = np.array([row for row, failure in enumerate(failures) if failure.stage is stage], dtype=np.intp)
        if len(rows) >= min_size:
            points = coordinates([failures[row] for row in rows], vectors[rows])
            found = np.array(_dense(points, min_size))
            labels[rows] = np.where(found < 0, -1, found + labels.max() + 1)
    return [int(label) for label in labels]


def _dense(points: NDArray[np.float64], min_size: int) -> list[int]:
    """By point the number of its cluster; -1 for none."""
    from sklearn.cluster import HDBSCAN

    n = len(points)
    # HDBSCAN never takes all for one cluster; beside something far off it can
    beside = np.zeros((min_size + 1, points.shape[1] + 1))
    beside[:, -1] = ELSEWHERE + 0.01 * np.arange(min_size + 1)
    spread = np.vstack([np.hstack([points, np.zeros((n, 1))]), beside])
    model = HDBSCAN(min_size, min_samples=min(_N_NEIGHBOURS, min_size), copy=True).fit(spread)
    groups = model.dbscan_clustering(SAME, min_cluster_size=min_size).tolist()
    # HDBSCAN counts what falls off a cluster on its way among its members, however far it is
    near = model.dbscan_clustering(FAR, min_cluster_size=min_size).tolist()
    joined = _joined(model.labels_.tolist(), groups)
    kept = [label if other >= 0 else -1 for label, other in zip(joined[:n], near[:n], strict=True)]
    number = {label: place for place, label in enumerate(sorted(set(kept) - {-1}))} | {-1: -1}
    return [number[label] for label in kept]


def _joined(clusters: Sequence[int], groups: Sequence[int]) -> list[int]:
    """Clusters and groups that share a member are one; what is in neither is noise.

    >>> _joined([0, 1, -1, 2, 2, -1], [0, 0, 0, -1, -1, -1])
    [1, 1, 1, 2, 2, -1]
    """
    # of the clusters that a group has in common, each names the next
    same: dict[int, int] = {}

    def last(label: int) -> int:
        while label in same:
            label = same[label]
        return label

    # groups are told from clusters by their sign
    for cluster, group in zip(clusters, groups, strict=True):
        if cluster >= 0 and group >= 0 and last(cluster) != last(-2 - group):
            same[last(-2 - group)] = last(cluster)
    return [
        last(cluster) if cluster >= 0 else last(-2 - group) if group >= 0 else -1
        for cluster, group in zip(clusters, groups, strict=True)
    ]


def _cluster(
    members: Sequence[Failure], phrases: tuple[str, ...], traffic: TrafficByIntent, n_all: int, span: tuple[int, int]
) -> Cluster:
    stage = FailureStage(top(failure.stage for failure in members)[0])
    what = _what(members, stage)
    return Cluster(
        name=f"{what}: {', '.join(phrases)}" if phrases else what,
        phrases=phrases,
        stage=stage,
        size=len(members),
        share=len(members) / n_all,
        first_seen=members[0].at_ms,
        last_seen=members[-1].at_ms,
        trend=trend_of([failure.at_ms for failure in members], *span),
        agents=_counted([f"{each.namespace}/{each.agent}@{each.version}" for each in members if each.agent]),
        errors=_counted([each.error or each.status for each in members]),
        intents=_counted([each.intent for each in members if each.intent]),
        examples=_examples(members),
        fix=proposed_fix(members, phrases, traffic),
    )


def _what(members: Sequence[Failure], stage: FailureStage) -> str:
    agent, error = top(each.agent for each in members)[0], top(each.error or each.status for each in members)[0]
    intent = top(each.intent or "" for each in members)[0] or "nothing"
    if stage is FailureStage.READING:
        meant = top(each.meant or "" for each in members)[0]
        return f"read as {intent}, {meant} was meant" if meant else "out of scope"
    return {
        FailureStage.REQUEST: "fails everywhere",
        FailureStage.PERMISSION: f"{intent} not permitted",
        FailureStage.ELIGIBILITY: f"{error} for {intent}",
        FailureStage.DEADLINE: f"{agent or intent} out of time",
        FailureStage.DEPENDENCY: f"{top(each.dependency or '' for each in members)[0] or 'a dependency'} fails",
        FailureStage.AGENT: f"{error} at {agent}",
        FailureStage.SCHEMA: f"{agent} off its schema",
    }[stage]


def _counted(values: Sequence[str]) -> tuple[Counted, ...]:
    counts = Counter(values)
    return tuple(Counted(value, counts[value]) for value in sorted(counts, key=lambda each: (-counts[each], each)))[
        :_N_LISTED
    ]


def _examples(members: Sequence[Failure]) -> tuple[Example, ...]:
    """The newest, first such as say something else than those before."""
    newest = list(reversed(members))
    told: dict[str | None, Failure] = {}
    for failure in newest:
        told.setdefault(failure.utterance, failure)
    first = list(told.values())[:_N_EXAMPLES]
    more = [failure for failure in newest if all(failure is not other for other in first)]
    shown = (first + more[: _N_EXAMPLES - len(first)]) if len(first) < _N_EXAMPLES else first
    return tuple(Example(each.trace_id, each.decision_id, each.at_ms, each.utterance) for each in shown)


def _texts(failures: Sequence[Failure]) -> list[str]:
    return [failure.utterance for failure in failures if failure.utterance]


def _order(failure: Failure) -> tuple[int, str, int]:
    return failure.at_ms, failure.decision_id, failure.attempt
