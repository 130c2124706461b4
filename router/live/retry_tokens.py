"""RetryTokens: token buckets that marked retries pass, one for each shared dependency (SPEC A13)."""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from typing import NamedTuple

from models.live_policy import DependencyPolicy
from router.live.breaker_state import DependencyKey

_ROUNDING = 1e-6
"""What a token may lack: rounding, so that a token is there when `wait_ms` said that it would be."""


class _Bucket(NamedTuple):
    n_tokens: float
    at_ms: float
    full_ms: float


class RetryTokens:
    """Buckets of `retry_burst` tokens, filled again by `retries_per_s`.

    A bucket begins full, and a full one is not kept. At most `max_buckets` are; at the bound goes the one that was
    asked last the longest time ago, and begins full again.

    >>> tokens, policy = RetryTokens(), DependencyPolicy(retries_per_s=2, retry_burst=1)
    >>> key = DependencyKey("crm", "default")
    >>> tokens.take(key, 0, policy), tokens.take(key, 0, policy), tokens.wait_ms(key, 100, policy)
    (True, False, 400.0)
    """

    def __init__(self, max_buckets: int = 10_000) -> None:
        if max_buckets < 1:
            raise ValueError(f"needs max_buckets >= 1, got {max_buckets}")
        self._max_buckets = max_buckets
        self._buckets: OrderedDict[DependencyKey, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: DependencyKey, now_ms: float, policy: DependencyPolicy) -> bool:
        """Take a token for one retry; False where there is none."""
        n_tokens = self._count(key, now_ms, policy)
        if n_tokens < 1 - _ROUNDING:
            return False
        rate = policy.retries_per_s
        full_ms = now_ms + (policy.retry_burst - n_tokens + 1) / rate * 1000 if rate else inf
        self._buckets[key] = _Bucket(n_tokens - 1, now_ms, full_ms)
        self._buckets.move_to_end(key)
        self._sweep(now_ms)
        return True

    def wait_ms(self, key: DependencyKey, now_ms: float, policy: DependencyPolicy) -> float | None:
        """How long until a token is there, 0 where one is; None where none ever will be."""
        missing = 1 - self._count(key, now_ms, policy)
        if missing <= _ROUNDING:
            return 0.0
        if policy.retries_per_s == 0 or policy.retry_burst == 0:
            return None
        return missing / policy.retries_per_s * 1000

    def _count(self, key: DependencyKey, now_ms: float, policy: DependencyPolicy) -> float:
        bucket = self._buckets.get(key)
        if bucket is None:
            return policy.retry_burst
        return min(policy.retry_burst, bucket.n_tokens + (now_ms - bucket.at_ms) / 1000 * policy.retries_per_s)

    def _sweep(self, now_ms: float) -> None:
        oldest, bucket = next(iter(self._buckets.items()))
        if len(self._buckets) > self._max_buckets or bucket.full_ms <= now_ms:
            del self._buckets[oldest]
