from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from feedback.clusters import MAX_FAILURES, FailureReport, cluster_failures
from feedback.failure import Failure, FailureStage
from feedback.proposed_fix import FixKind
from intent.dummy_embedder import DummyEmbedder

DAY_MS = 86_400_000


def failure(number: int, **fields: Any) -> Failure:
    given: dict[str, Any] = {"stage": FailureStage.AGENT, "status": "failed", "intent": "order"}
    given |= {"utterance": f"words of kind {number}"}
    given |= {"attempt": 1, "agent": "order_bot", "version": "1.0.0", "charged": "agent", "error": "HTTP500"}
    return Failure(f"d{number:04}", f"t{number:04}", number * 1000, "default", **(given | fields))


def scattered(n: int, first: int = 0) -> list[Failure]:
    return [
        failure(
            first + number, agent=f"agent{number}", error=f"E{number}", utterance=f"{number * 7919} odd", intent=None
        )
        for number in range(n)
    ]


def vectors_of(failures: list[Failure]) -> NDArray[np.float32]:
    embedder, dim = DummyEmbedder(), DummyEmbedder().dim
    rows = [
        np.zeros(dim, dtype="<f4")
        if each.utterance is None
        else np.frombuffer(embedder.embed(each.utterance).vector, "<f4")
        for each in failures
    ]
    return np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32)


def clustered(failures: list[Failure], min_size: int | None = None) -> FailureReport:
    return cluster_failures(failures, vectors_of(failures), {}, from_ms=0, until_ms=14 * DAY_MS - 1, min_size=min_size)


def two_causes() -> list[Failure]:
    return [
        *(failure(number) for number in range(20)),
        *(failure(20 + number, stage=FailureStage.SCHEMA, status="schema_mismatch", agent="b") for number in range(12)),
        *scattered(9, 32),
    ]


def test_nothing_failed() -> None:
    report = clustered([])

    assert (report.n_failures, report.clusters, report.n_rest, report.labels) == (0, (), 0, ())


def test_one_failure_is_the_rest() -> None:
    report = clustered([failure(1)])

    assert (report.clusters, report.n_rest, report.labels) == ((), 1, (-1,))
    assert [each.decision_id for each in report.rest] == ["d0001"]


def test_what_has_nothing_in_common_is_the_rest() -> None:
    report = clustered(scattered(40))

    assert (report.clusters, report.n_rest) == ((), 40)


def test_one_cause_alone_is_one_cluster() -> None:
    report = clustered([failure(number) for number in range(30)])

    assert [cluster.size for cluster in report.clusters] == [30]
    assert report.clusters[0].share == 1.0


def test_causes_are_told_from_each_other_and_from_the_rest() -> None:
    report = clustered(two_causes())

    assert report.labels == (0,) * 20 + (1,) * 12 + (-1,) * 9
    assert [cluster.stage for cluster in report.clusters] == [FailureStage.AGENT, FailureStage.SCHEMA]
    assert [cluster.fix.kind for cluster in report.clusters] == [FixKind.SICK_AGENT, FixKind.BAD_OUTPUT]


def test_a_cluster_tells_when_where_and_examples() -> None:
    cluster = clustered(two_causes()).clusters[0]

    assert (cluster.first_seen, cluster.last_seen) == (0, 19_000)
    assert cluster.agents == (("default/order_bot@1.0.0", 20),)
    assert cluster.errors == (("HTTP500", 20),)
    assert [each.trace_id for each in cluster.examples] == ["t0019", "t0018", "t0017", "t0016", "t0015"]
    assert (cluster.trend.n_recent, cluster.trend.n_before, cluster.trend.change) == (0, 20, "gone")


def test_the_order_of_the_failures_makes_no_difference() -> None:
    given = two_causes()
    shuffled = [given[place] for place in np.random.default_rng(3).permutation(len(given))]
    one, other = clustered(given), clustered(shuffled)

    assert one.clusters == other.clusters
    labels = {each.decision_id: label for each, label in zip(given, one.labels, strict=True)}
    assert other.labels == tuple(labels[each.decision_id] for each in shuffled)


def test_failures_without_text_are_clustered_by_the_rest_of_what_is_known() -> None:
    report = clustered([each._replace(utterance=None) for each in two_causes()])

    assert [cluster.size for cluster in report.clusters] == [20, 12]
    assert [cluster.name for cluster in report.clusters] == ["HTTP500 at order_bot", "b off its schema"]


def test_topics_out_of_scope_are_told_by_their_words() -> None:
    def asked(first: int, text: str) -> list[Failure]:
        given: dict[str, Any] = {"agent": "", "version": "", "attempt": 0, "charged": "", "error": "out_of_scope"}
        return [
            failure(first + n, stage=FailureStage.READING, intent=None, utterance=f"{text} {n % 4}", **given)
            for n in range(10)
        ]

    report = clustered([*asked(0, "solar panel roof permit"), *asked(10, "translate birthday poem")])

    assert report.labels == (0,) * 10 + (1,) * 10
    assert "panel roof permit" in report.clusters[0].name
    assert [cluster.fix.kind for cluster in report.clusters] == [FixKind.UNCOVERED_TOPIC] * 2


def test_fewer_than_the_least_size_are_no_cluster() -> None:
    assert [cluster.size for cluster in clustered(two_causes(), min_size=15).clusters] == [20]
    assert clustered(two_causes(), min_size=25).clusters == ()


def test_equal_names_in_two_namespaces_are_two_agents() -> None:
    here = [failure(number) for number in range(10)]
    there = [failure(10 + number)._replace(namespace="other") for number in range(10)]

    assert [cluster.size for cluster in clustered([*here, *there]).clusters] == [10, 10]


def test_too_many_failures_and_missing_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match=r"1 failures with 0 vectors; at most 20000"):
        cluster_failures([failure(1)], np.zeros((0, 4), dtype=np.float32), {}, from_ms=0, until_ms=1)
    many = [failure(1)] * (MAX_FAILURES + 1)
    with pytest.raises(ValueError, match="20001 failures"):
        cluster_failures(many, np.zeros((len(many), 1), dtype=np.float32), {}, from_ms=0, until_ms=1)
