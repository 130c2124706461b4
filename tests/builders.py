"""Cards, requests and snapshots for tests: plain functions, every field can be set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from intent.dummy_embedder import DummyEmbedder
from models.card import AgentCard, Capability
from models.policy import NamespacePolicy, Policy
from models.ports import Embedded, Embedder
from models.request import RouteRequest
from router.assemble import Generations, assemble, texts_of
from router.snapshot import Snapshot

START_MS = 1_700_000_000_000.0


@dataclass
class FakeClock:
    """A clock that stands still until it is moved."""

    ms: float = START_MS

    def now_ms(self) -> float:
        return self.ms

    def monotonic_ms(self) -> float:
        return self.ms

    def advance(self, ms: float) -> None:
        self.ms += ms


def capability(intent: str, examples: Iterable[str] = (), **fields: Any) -> Capability:
    """A capability that takes and gives plain text, so that it is routable under the shipped policy."""
    schemas = {"input_schema": "text", "output_schema": "text"}
    return Capability(intent=intent, examples=list(examples), **{**schemas, **fields})


def card(agent_id: str, *capabilities: Capability, **fields: Any) -> AgentCard:
    """A card; one that names no capability serves an intent of its own name with one example."""
    own = capabilities or (capability(agent_id, [f"please ask {agent_id}"]),)
    defaults = {"version": "1.0.0", "endpoint": f"http://{agent_id}.internal/invoke"}
    return AgentCard(agent_id=agent_id, capabilities=list(own), **{**defaults, **fields})


def policy_of(**defaults: Any) -> Policy:
    """A policy with these fields of `defaults`."""
    return Policy(defaults=NamespacePolicy(**defaults))


def request(utterance: str | None = None, **fields: Any) -> RouteRequest:
    """A request of a sentence, or of what else the fields say."""
    return RouteRequest(utterance=utterance, **fields)


def vectors_of(texts: Iterable[str], embedder: Embedder) -> Mapping[str, Embedded]:
    """Text → vector, as `assemble` wants them."""
    return {text: embedder.embed(text) for text in texts}


def snapshot_of(
    cards: Iterable[AgentCard],
    policy: Policy | None = None,
    embedder: Embedder | None = None,
    generations: Generations = Generations(cards=1, index=1, policy=0),  # noqa: B008 - frozen
) -> Snapshot:
    """A snapshot of these cards; None stands for the shipped policy and the dummy encoder."""
    known = list(cards)
    encoder = DummyEmbedder() if embedder is None else embedder
    vectors = vectors_of(texts_of(known), encoder)
    return assemble(known, policy or Policy(), vectors, encoder.encoder_id, encoder.dim, generations)
