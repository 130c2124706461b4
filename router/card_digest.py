"""Digest of a card: what an agent presents with a heartbeat to say which card it runs with."""

from __future__ import annotations

import json
from hashlib import sha256

from models.card import AgentCard


def card_digest(card: AgentCard) -> str:
    """SHA-256, in hex, of the card's fields with sorted names; those that have their default are left out.

    So a field that a later release adds changes no digest, and no agent has to introduce itself again after an upgrade.

    >>> card_digest(AgentCard(agent_id="a")) == card_digest(AgentCard(agent_id="a", weight=100.0))
    True
    """
    fields = card.model_dump(mode="json", exclude_defaults=True)
    return sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()
