"""Repeats: a request that comes again under its `Idempotency-Key` gets the decision that it got before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, NamedTuple

from models.decision import RouteDecision
from models.errors import ConflictError, OverloadedError, StoreError
from models.events import RepeatRow
from models.ports import Clock, RecordStore
from router.journal import Journal
from router.live.fingerprint import canonical

KEPT_MS = 24 * 3_600_000
"""How long a key stands for its decision."""

FORGET_S = 3600.0
"""How often keys are looked for whose time is over."""

WAIT_MS = 10_000.0
"""The longest that a request waits for its twin, or for the store."""

Decide = Callable[[], Awaitable[tuple[RouteDecision, bytes]]]


class _Running(NamedTuple):
    body_sha256: str
    answer: asyncio.Future[bytes]


class Repeats:
    """Keys are a caller's own: two callers may use the same one.

    The decision is stored before it is answered, so it holds after a restart too.
    """

    def __init__(
        self,
        journal: Journal,
        store: RecordStore,
        clock: Clock,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._journal = journal
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._running: dict[tuple[str, str], _Running] = {}

    async def once(self, caller: str, key: str, body: Any, decide: Decide) -> tuple[bytes, bool]:
        """The answer under a key, and whether it is that of an earlier request.

        Args:
            caller: name of the presented key.
            key: the `Idempotency-Key`.
            body: the request's JSON value.
            decide: makes the decision where there is none.

        Raises:
            ConflictError: the key came with another body before.
            OverloadedError: the first request under the key takes too long.
            StoreError: the store does not take the decision.
        """
        place, digest = (caller, key), sha256(canonical(body)).hexdigest()
        running = self._running.get(place)
        if running is not None:
            _check(running.body_sha256, digest, key)
            return await self._joined(running), True
        # noted before the first wait: of requests at the same instant only one decides
        answer = asyncio.get_running_loop().create_future()
        self._running[place] = _Running(digest, answer)
        try:
            body_text, is_repeat = await self._first(place, digest, decide)
        except BaseException as error:
            _fail(answer, error)
            raise
        finally:
            del self._running[place]
        answer.set_result(body_text)
        return body_text, is_repeat

    async def run(self) -> None:
        """Forget keys whose time is over, until cancelled."""
        while True:
            await self._store.forget_repeats(int(self._clock.now_ms()) - KEPT_MS)
            await self._sleep(FORGET_S)

    async def _joined(self, running: _Running) -> bytes:
        try:
            async with asyncio.timeout(WAIT_MS / 1000):
                return await asyncio.shield(running.answer)
        except TimeoutError:
            raise OverloadedError("the first request under this Idempotency-Key is still being decided", 1000) from None

    async def _first(self, place: tuple[str, str], digest: str, decide: Decide) -> tuple[bytes, bool]:
        known = await self._journal.repeat(*place)
        now_ms = int(self._clock.now_ms())
        if known is not None and known.created_at > now_ms - KEPT_MS:
            _check(known.body_sha256, digest, place[1])
            row = await self._journal.decision(known.decision_id)
            if row is None:
                raise StoreError(f"the decision of the Idempotency-Key {place[1]!r} is gone: use another key")
            return row.answer.encode(), True
        if known is not None:  # else it would keep its place from the new one
            await self._store.forget_repeats(now_ms - KEPT_MS + 1)
        decision, text = await decide()
        self._journal.put([RepeatRow(*place, digest, decision.decision_id, now_ms)])
        await self._journal.stored(WAIT_MS)
        return text, False


def _check(known: str, digest: str, key: str) -> None:
    if known != digest:
        raise ConflictError(f"the Idempotency-Key {key!r} came with another body before: use another key")


def _fail(answer: asyncio.Future[bytes], error: BaseException) -> None:
    """Those who wait for it get the same error; nobody has to wait for it."""
    if isinstance(error, Exception):
        answer.set_exception(error)
        answer.exception()
    else:
        answer.set_exception(OverloadedError("the first request under this Idempotency-Key was given up", 1000))
        answer.exception()
