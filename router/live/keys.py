"""What live state is kept by, beside the keys of cards."""

from __future__ import annotations

CallId = tuple[str, int]
"""(decision_id, attempt): the call that an outcome tells of."""
