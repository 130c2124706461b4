"""A log with six planted causes of failure, and whether failure clusters find them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import orjson

from feedback.clusters import FailureReport
from feedback.proposed_fix import FixKind
from intent.vector_cache import VectorCache
from models.card import AgentCard, Capability
from models.events import DecisionRow, OutcomeRow
from models.ports import Embedder
from router.failure_log import FailureLog, read_failures
from router.failures import failure_report
from router.stores.failed import open_failed
from router.stores.open import open_store

START_MS = 1_700_000_000_000
SPAN_MS = 14 * 86_400_000
N_OF_EACH = (30, 60)
N_SUCCESSES = 1500
N_SCATTERED = 40
NOISE = 0.1
"""Share of a cause's failures that tell no error, and of those that say something else; a third as many keep no
text."""

_THINGS = ("shoes", "laptop", "coffee machine", "jacket", "headphones", "bookshelf", "lamp", "tent", "phone case")
_CITIES = ("Leeds", "Porto", "Ghent", "Turin", "Lyon", "Graz", "Malmo", "Brno")
_OPENINGS = ("", "hello, ", "please help: ", "hi there, ", "sorry to bother you, ", "quick question: ")

TEXTS: Mapping[str, tuple[str, ...]] = {
    "pickup_code": (
        "the parcel locker does not open for my {thing}",
        "what is the pin of the parcel locker in {city}",
        "I stand at the parcel locker and the door stays shut",
        "parcel locker in {city} asks for a pin I never got",
        "the pin for the parcel locker is rejected",
        "how do I open the parcel locker with my {thing} in it",
    ),
    "refund_request": (
        "I want my money back for the {thing}",
        "please refund the {thing} I bought",
        "give me my money back, the {thing} is broken",
        "I would like a refund for the {thing}",
        "refund my {thing}, it never worked",
    ),
    "order_status": ("where is my order of a {thing}", "has the {thing} been shipped yet", "when does my order arrive"),
    "cancel_order": ("cancel my order of the {thing}", "I no longer want the {thing}, stop the order"),
    "address_change": ("send the {thing} to my new address in {city}", "I moved to {city}, change my address"),
    "invoice_copy": ("I need the invoice for the {thing}", "send me a copy of the bill for my {thing}"),
    "gift_card": ("how much is left on my gift card", "my gift card for the {thing} has no balance"),
    "loyalty_points": ("how many points did the {thing} bring me", "show my loyalty points"),
    "warranty_claim": ("the {thing} broke within the warranty", "claim the guarantee of my {thing}"),
    "translate_text": ("translate the manual of the {thing}", "put this leaflet of {city} into English"),
    "store_hours": ("when does the shop in {city} open", "is the {city} store open on Sunday"),
}
SERVED: Mapping[str, tuple[str, ...]] = {
    "order_bot": ("order_status", "cancel_order", "address_change"),
    "order_desk": ("order_status", "cancel_order", "address_change"),
    "invoice_bot": ("invoice_copy",),
    "gift_bot": ("gift_card",),
    "points_bot": ("loyalty_points",),
    "warranty_bot": ("warranty_claim",),
    "translator": ("translate_text",),
    "shop_bot": ("store_hours", "pickup_code"),
    "refund_bot": ("refund_status", "refund_request"),
}
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "pickup_code": ("send my collection number again", "which number do I show at the counter"),
    "refund_request": ("I want a refund", "I want my money back for the jacket", "please refund the lamp"),
    "refund_status": ("is my refund through", "I want my money back for the lamp", "refund for my laptop"),
    "store_hours": ("when does the shop open", "what are your opening hours"),
}


class Planted(NamedTuple):
    """A cause.

    Attributes:
        names: fields of the proposed fix that must hold these values.
        of: (intent read, agent, utterances' intent) of one of its failures, drawn.
        outcome: fields of its outcomes.
    """

    kind: FixKind
    names: Mapping[str, str]
    of: Callable[[np.random.Generator], tuple[str, str, str]]
    outcome: Mapping[str, Any]
    charged: str = "agent"
    slice_ms: int = 2000
    usual_ms: int = 2000


def _drawn(*choices: tuple[str, str, str]) -> Callable[[np.random.Generator], tuple[str, str, str]]:
    return lambda rng: choices[int(rng.integers(len(choices)))]


CAUSES: Mapping[str, Planted] = {
    "missing_example": Planted(
        FixKind.MISSING_EXAMPLE,
        {"intent": "pickup_code", "other_intent": "store_hours"},
        _drawn(("store_hours", "shop_bot", "pickup_code")),
        {"status": "rejected", "correct_intent": "pickup_code"},
        "caller",
    ),
    "shadowed_card": Planted(
        FixKind.SHADOWED_CARD,
        {"intent": "refund_request", "other_intent": "refund_status"},
        _drawn(("refund_status", "refund_bot", "refund_request")),
        {"status": "low_confidence", "correct_intent": "refund_request"},
    ),
    "sick_agent": Planted(
        FixKind.SICK_AGENT,
        {"agent": "order_bot"},
        _drawn(*((intent, "order_bot", intent) for intent in SERVED["order_bot"])),
        {"status": "failed", "error": {"class": "HTTP500", "fingerprint": "e-500"}},
    ),
    "dependency": Planted(
        FixKind.DEPENDENCY,
        {"dependency": "payments-db"},
        _drawn(*((SERVED[agent][0], agent, SERVED[agent][0]) for agent in ("invoice_bot", "gift_bot", "points_bot"))),
        {"status": "failed", "error": {"class": "OperationalError", "dependency": "payments-db"}},
        "dependency",
    ),
    "tight_deadline": Planted(
        FixKind.TIGHT_DEADLINE,
        {"agent": "warranty_bot"},
        _drawn(("warranty_claim", "warranty_bot", "warranty_claim")),
        {"status": "timed_out", "latency_ms": 600.0},
        "router",
        600,
        1800,
    ),
    "bad_output": Planted(
        FixKind.BAD_OUTPUT,
        {"agent": "translator"},
        _drawn(("translate_text", "translator", "translate_text")),
        {"status": "schema_mismatch", "error": {"class": "ValidationError"}},
    ),
}


class PlantedLog(NamedTuple):
    """Rows of a store; `truth` has the cause by decision id, and nothing of failures of no cause."""

    decisions: Sequence[DecisionRow]
    outcomes: Sequence[OutcomeRow]
    truth: Mapping[str, str]


def planted_log(seed: int) -> PlantedLog:
    """Six causes within two weeks of traffic, with noise."""
    rng = np.random.default_rng(seed)
    made: list[tuple[DecisionRow, OutcomeRow]] = []
    truth: dict[str, str] = {}

    def add(intent: str, agent: str, utterance: str | None, outcome: Mapping[str, Any], **told: Any) -> str:
        decision_id = f"d{seed}-{len(made)}"
        made.append(_rows(decision_id, intent, agent, utterance, outcome, int(rng.integers(SPAN_MS)), **told))
        return decision_id

    for name, cause in CAUSES.items():
        for _ in range(int(rng.integers(*N_OF_EACH))):
            intent, agent, said = cause.of(rng)
            outcome = {**cause.outcome}
            # what a dependency's failure is known by is its name, so that stays
            if rng.random() < NOISE and name != "dependency":
                outcome.pop("error", None)
            utterance: str | None = _text(rng, said if rng.random() > NOISE else _any(rng, TEXTS))
            if rng.random() < NOISE / 3:
                utterance = None
            told = {"charged": cause.charged, "slice_ms": cause.slice_ms, "usual_ms": cause.usual_ms}
            truth[add(intent, agent, utterance, outcome, **told)] = name
    for _ in range(N_SCATTERED):
        agent = _any(rng, SERVED)
        status = ("failed", "unreachable", "timed_out", "schema_mismatch")[int(rng.integers(4))]
        odd = f"E{rng.integers(1000)}"
        intent = SERVED[agent][int(rng.integers(len(SERVED[agent])))]
        add(
            intent, agent, _text(rng, _any(rng, TEXTS)), {"status": status, "error": {"class": odd, "fingerprint": odd}}
        )
    for _ in range(N_SUCCESSES):
        agent = _any(rng, SERVED)
        intent = SERVED[agent][int(rng.integers(len(SERVED[agent])))]
        latency_ms = float(rng.uniform(0.4, 0.9) * (1800 if agent == "warranty_bot" else 1000))
        add(intent, agent, _text(rng, _any(rng, TEXTS)), {"status": "succeeded", "latency_ms": latency_ms})
    return PlantedLog([each for each, _ in made], [each for _, each in made], truth)


def _any(rng: np.random.Generator, names: Mapping[str, object]) -> str:
    return list(names)[int(rng.integers(len(names)))]


def _text(rng: np.random.Generator, intent: str) -> str:
    forms = TEXTS[intent]
    form = forms[int(rng.integers(len(forms)))]
    opening = _OPENINGS[int(rng.integers(len(_OPENINGS)))]
    return opening + form.format(
        thing=_THINGS[int(rng.integers(len(_THINGS)))], city=_CITIES[int(rng.integers(len(_CITIES)))]
    )


def _rows(
    decision_id: str,
    intent: str,
    agent: str,
    utterance: str | None,
    outcome: Mapping[str, Any],
    after_ms: int,
    charged: str = "agent",
    slice_ms: int = 2000,
    usual_ms: int = 2000,
) -> tuple[DecisionRow, OutcomeRow]:
    at_ms = START_MS + after_ms
    target = {"agent_id": agent, "namespace": "default", "version": "1.0.0", "intent": intent}
    decision = DecisionRow(
        decision_id=decision_id,
        trace_id=f"t-{decision_id}",
        caller="",
        namespace="default",
        action="invoke",
        reason="selected",
        intent=intent,
        agent_id=agent,
        request=_json({"utterance": utterance}),
        answer=_json({"plan": [{"target": target, "timeout_ms": slice_ms}]}),
        inputs=_json({"timeouts_ms": {f"default/{agent}/1.0.0": usual_ms}}),
        happened_at=at_ms,
    )
    body = _json({"decision_id": decision_id, **outcome})
    return decision, OutcomeRow(decision_id, 1, None, "", body, charged, at_ms)


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def planted_cards() -> list[AgentCard]:
    """The agents of the log; texts of `pickup_code` lack what is asked, those of two refund intents overlap."""
    return [
        AgentCard(
            agent_id=agent,
            version="1.0.0",
            capabilities=[
                Capability(
                    intent=intent,
                    examples=list(
                        EXAMPLES.get(intent) or (form.format(thing="kettle", city="Rome") for form in TEXTS[intent])
                    ),
                )
                for intent in intents
            ],
        )
        for agent, intents in SERVED.items()
    ]


class Found(NamedTuple):
    """How clusters compare with what was planted.

    Attributes:
        adjusted_rand: over all failures, those of no cause as one group, as is the rest (Hubert and Arabie, 1985).
        named: causes of which the largest cluster of its failures names kind and culprit.
    """

    adjusted_rand: float
    named: frozenset[str]
    report: FailureReport


def planted_failures(seed: int, embedder: Embedder) -> Found:
    """Make the log in a store of its own, cluster it as the command does, and compare."""
    made = planted_log(seed)
    log = asyncio.run(_stored(made))
    return compared(made.truth, log, failure_report(log, planted_cards(), VectorCache(embedder).of))


async def _stored(made: PlantedLog) -> FailureLog:
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'log.db'}"
        async with open_store(url) as store:
            await store.records.append([*made.decisions, *made.outcomes])
        async with open_failed(url) as failed:
            return await read_failures(failed)


def compared(truth: Mapping[str, str], log: FailureLog, report: FailureReport) -> Found:
    """The agreement of the clusters with the causes, and which causes their fixes name."""
    from sklearn.metrics import adjusted_rand_score

    causes = [truth.get(failure.decision_id, "") for failure in log.failures]
    named = set()
    for name, cause in CAUSES.items():
        labels = [label for label, other in zip(report.labels, causes, strict=True) if other == name]
        most = max(sorted(set(labels)), key=labels.count)
        fix = report.clusters[most].fix if most >= 0 else None
        if fix and fix.kind is cause.kind and all(getattr(fix, key) == value for key, value in cause.names.items()):
            named.add(name)
    return Found(float(adjusted_rand_score(causes, report.labels)), frozenset(named), report)
