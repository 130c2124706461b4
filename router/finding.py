"""Finding: one thing the linter has to say about the cards."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from models.card import AgentCard


class Severity(StrEnum):
    """How bad it is: an error cannot be meant, a warning costs something, an info is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


RANK = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        code: stable name of the kind of finding.
        where: `namespace/agent_id@version`, or the namespace where it concerns several agents.
        message: what is wrong and what would be right.
        agent_id: None where it concerns several agents.
        intent: None where it concerns the agent as a whole.
        utterances: the texts that show it.
    """

    code: str
    severity: Severity
    where: str
    message: str
    agent_id: str | None = None
    intent: str | None = None
    utterances: tuple[str, ...] = ()


def place_of(card: AgentCard) -> str:
    """How findings name a card."""
    return f"{card.namespace}/{card.agent_id}@{card.version}"


def order_of(finding: Finding) -> tuple[int, str, str, str, str]:
    """Sort key: the worst first, then by place."""
    return (RANK[finding.severity], finding.where, finding.intent or "", finding.code, finding.message)
