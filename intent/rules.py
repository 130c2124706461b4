"""Rules: the operator's patterns over utterances, compiled once, matched in linear time (RE2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import re2

from models.policy import Rule
from models.request import Preference

_OPTIONS = re2.Options()
_OPTIONS.case_sensitive = False
_OPTIONS.log_errors = False


def compile_pattern(pattern: str) -> Any:
    """A compiled pattern. Raises ValueError with RE2's own words where it is none."""
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise ValueError(reason.decode() if isinstance(reason, bytes) else str(reason)) from None


class Rules:
    """A policy's rules, in their order; the first that matches wins."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = [(rule, compile_pattern(rule.pattern)) for rule in rules]

    def preference(self, text: str, namespace: str) -> Preference | None:
        """What the sentence itself asks for; None where no rule matches.

        Args:
            text: the normalized utterance.
            namespace: where the request is made.
        """
        for rule, pattern in self._rules:
            if (rule.namespace is None or rule.namespace == namespace) and pattern.search(text):
                return rule.preference
        return None
