"""Keys of callers: tokens, and the ring that knows them without asking the store."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping

from pydantic import field_validator

from models.errors import RouterError
from models.key import OWN_PERMISSIONS, OWN_PREFIX, Key
from models.ports import Clock, KeyStore
from router.clock import SystemClock
from router.field_problems import closest

log = logging.getLogger(__name__)

_TOKEN = re.compile(r"ar_([0-9a-f]{16})_([0-9a-f]{64})")
_NOBODY = "0" * 64
"""A digest that no secret is known to have, compared where there is no key to compare with."""


class _NewKey(Key):
    """A key as it may be made today; those that are stored already stay as they are."""

    @field_validator("name")
    @classmethod
    def _can_be_typed(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip():
            raise ValueError("1 to 128 characters, no control characters among them and no blank at either end")
        return name

    @field_validator("permissions")
    @classmethod
    def _own_ones_are_known(cls, permissions: frozenset[str]) -> frozenset[str]:
        for each in sorted(permissions):
            if each.startswith(OWN_PREFIX) and each not in OWN_PERMISSIONS:
                meant = closest(
                    each.removeprefix(OWN_PREFIX), [name.removeprefix(OWN_PREFIX) for name in OWN_PERMISSIONS]
                )
                asked = "known" if meant is None else f"did you mean {OWN_PREFIX}{meant}? Known"
                known = ", ".join(OWN_PERMISSIONS)
                raise ValueError(f"{each!r} is no permission of the router; {asked} are {known}")
        return permissions


def create_key(
    name: str,
    permissions: Iterable[str],
    namespaces: Iterable[str] | None,
    callers: Iterable[str] | None,
    now_ms: int,
) -> tuple[Key, str]:
    """Make a key with its token `ar_<key id>_<secret>`, which is told once and never stored.

    Args:
        name: what people call it.
        permissions: what its bearer may.
        namespaces: where it may route; None means anywhere.
        callers: agent ids as which it may speak; None means any.
        now_ms: epoch, milliseconds.

    Raises:
        ValidationError: pydantic's, where a field has a form that `Key` refuses, the name holds what cannot be typed,
            or a permission begins with `router:` and is none of the router's.
    """
    key_id, secret = secrets.token_hex(8), secrets.token_hex(32)
    made = _NewKey(
        key_id=key_id,
        name=name,
        secret_sha256=_digest(secret),
        permissions=frozenset(permissions),
        namespaces=None if namespaces is None else frozenset(namespaces),
        callers=None if callers is None else frozenset(callers),
        created_at=now_ms,
    )
    return Key(**dict(made)), f"ar_{key_id}_{secret}"


class KeyRing:
    """The stored keys as a snapshot in memory, swapped whole.

    Args:
        refresh_ms: how often `run` reads the store; a revoked key is refused after that long at the latest.
        forced_ms: `authenticate_fresh` reads the store at most once in that time.
        clock: measures `forced_ms`; None takes the system's.
        sleep: waits that many seconds; tests pass one that does not.
    """

    def __init__(
        self,
        *,
        refresh_ms: int = 250,
        forced_ms: int = 100,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._refresh_ms = refresh_ms
        self._forced_ms = forced_ms
        self._clock = clock or SystemClock()
        self._keys: Mapping[str, Key] | None = None
        self._sleep = sleep
        self._coming: asyncio.Task[None] | None = None
        self._forced_at: float | None = None
        self._is_failing = False

    @property
    def enforced(self) -> bool:
        """Whether callers must present a key: once the store holds any, revoked ones included.

        Whoever made keys wanted the door shut, so revoking the last one does not open it. Before the store was first
        read, nobody knows, and it is shut.
        """
        return self._keys is None or bool(self._keys)

    async def refresh(self, store: KeyStore) -> None:
        """Read the store.

        Raises:
            StoreError: where that fails; the old ring stays.
        """
        self._keys = {key.key_id: key for key in await store.load_keys()}

    async def run(self, store: KeyStore) -> None:
        """Read the store every `refresh_ms`, until cancelled; an error is logged and the old ring stays."""
        while True:
            await self._try_refresh(store)
            await asyncio.sleep(self._refresh_ms / 1000)

    def authenticate(self, token: str) -> Key | None:
        """The valid key of a token; None for anything else, in the time that a valid one takes."""
        parsed = _TOKEN.fullmatch(token)
        key_id, secret = parsed.groups() if parsed else ("", _NOBODY)
        key = (self._keys or {}).get(key_id)
        is_equal = hmac.compare_digest(key.secret_sha256 if key else _NOBODY, _digest(secret))
        return key if key is not None and is_equal and key.revoked_at is None else None

    async def authenticate_fresh(self, token: str, store: KeyStore) -> Key | None:
        """Like `authenticate`, but reads the store before it refuses an id that it does not know.

        So a key works as soon as it was made. Guessing ids costs the store one read in `forced_ms`, no more: those
        who come in between wait for the next one, which serves them all.
        """
        if self._may_be_new(token):
            if self._coming is None:
                self._coming = asyncio.create_task(self._force(store))
            await asyncio.shield(self._coming)
        return self.authenticate(token)

    async def _force(self, store: KeyStore) -> None:
        if self._forced_at is not None:
            wait_ms = self._forced_at + self._forced_ms - self._clock.monotonic_ms()
            if wait_ms > 0:
                await self._sleep(wait_ms / 1000)
        # Who comes from now on may hold a key made after this read began: the next read is theirs.
        self._coming = None
        self._forced_at = self._clock.monotonic_ms()
        await self._try_refresh(store)

    def _may_be_new(self, token: str) -> bool:
        parsed = _TOKEN.fullmatch(token)
        return parsed is not None and parsed.group(1) not in (self._keys or {})

    async def _try_refresh(self, store: KeyStore) -> None:
        try:
            await self.refresh(store)
        except RouterError as error:
            if not self._is_failing:
                log.error("keys cannot be read, those known before stay in force: %s", error)
            self._is_failing = True
        else:
            if self._is_failing:
                log.warning("keys are read again")
            self._is_failing = False


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()
