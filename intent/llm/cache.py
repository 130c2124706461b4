"""AnswerCache: what was asked not long ago need not be asked again."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable

from intent.llm.prompt import MAX_UTTERANCE_CHARS, IntentText, clip, clip_candidate

Key = bytes


def question_key(model_id: str, utterance: str, candidates: Iterable[IntentText]) -> Key:
    """A digest of all that decides the answer: the model, the text, and the candidates with their texts, in any order.

    A changed card makes another key, so that nothing has to be thrown away when cards change.
    """
    shown = sorted((clip_candidate(candidate) for candidate in candidates), key=lambda candidate: candidate.intent)
    parts = [[text.intent, text.description, *text.examples] for text in shown]
    whole = json.dumps([model_id, clip(utterance, MAX_UTTERANCE_CHARS), parts])
    return hashlib.sha256(whole.encode()).digest()


class AnswerCache:
    """Least recently used goes first; nothing is older than its time. Holds digests and intents, no texts."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Key, tuple[str | None, float]] = OrderedDict()

    def __len__(self) -> int:
        """Answers held, those whose time is over included."""
        return len(self._answers)

    def get(self, key: Key, now_ms: float, ttl_ms: float) -> tuple[str | None] | None:
        """(intent or None,) of a question that was answered; None where it was not, or too long ago."""
        found = self._answers.get(key)
        if found is None:
            return None
        intent, at_ms = found
        if now_ms - at_ms >= ttl_ms:
            del self._answers[key]
            return None
        self._answers.move_to_end(key)
        return (intent,)

    def put(self, key: Key, intent: str | None, now_ms: float, max_entries: int) -> None:
        """Keep an answer; None says that no candidate fits."""
        self._answers[key] = (intent, now_ms)
        self._answers.move_to_end(key)
        while len(self._answers) > max_entries:
            self._answers.popitem(last=False)
