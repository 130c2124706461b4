"""Asker: in whose name a request comes, as live state tells callers apart."""

from __future__ import annotations

from typing import NamedTuple


class Asker(NamedTuple):
    """Who asks.

    Attributes:
        caller: `caller.agent_id`, else the name of the key; "" where there is neither.
        namespace: of the request.
        is_retry: a marked retry (SPEC R8): it passes the token buckets of dependencies.
        n_tokens: what the call is taken to use until its outcome says so.
    """

    caller: str
    namespace: str
    is_retry: bool = False
    n_tokens: int = 0
