"""Clarify: the question to ask where an utterance may mean several intents."""

from __future__ import annotations

from models.reading import Alternative, Reading
from router.case import Case
from router.permit import permitted_of
from router.snapshot import Entry

N_OPTIONS = 5


def options(case: Case, reading: Reading) -> list[Entry]:
    """One capability for each intent of the reading that is plausible and within this caller's reach, best first."""
    if reading.intent is None:
        return []
    least = min(case.policy.confidence.plausible, reading.confidence)
    found: list[Entry] = []
    for alternative in (Alternative(reading.intent, reading.confidence), *reading.alternatives):
        reachable = permitted_of(case.snapshot, case.namespaces, alternative.intent, case.request, case.grants)
        if reachable and alternative.confidence >= least:
            found.append(reachable[0])
    return found[:N_OPTIONS]


def question(found: list[Entry]) -> str:
    """What to ask: to confirm the one option, or to pick one of several."""
    names = [entry.capability.description or entry.capability.intent for entry in found]
    if len(names) == 1:
        return f"Do you mean this: {names[0]}"
    return "Which of these do you mean? " + " ".join(f"({place}) {name}" for place, name in enumerate(names, start=1))
