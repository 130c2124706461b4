"""What live state is kept by."""

from __future__ import annotations

AgentKey = tuple[str, str, str]
"""(namespace, agent_id, version): the key of a card."""

CallId = tuple[str, int]
"""(decision_id, attempt): the call that an outcome tells of."""
