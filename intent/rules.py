"""Rules: the operator's patterns over utterances, compiled once, matched in linear time (RE2)."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from intent.normalize import match_form, normalize
from models.policy import Rule
from models.reading import Alternative
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
    """A policy's rules; of those that match the one of the highest priority counts, then the first."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        ordered = sorted(rules, key=lambda rule: -rule.priority)
        self._rules = [_Compiled.of(rule) for rule in ordered]

    def preference(self, text: str, namespace: str) -> Preference | None:
        """What the sentence itself asks for; None where no rule says.

        Args:
            text: the normalized utterance.
            namespace: where the request is made.
        """
        rule = self._first(text, namespace, lambda rule: rule.preference is not None)
        return None if rule is None else rule.preference

    def intent(self, text: str, namespace: str, among: Container[str]) -> Alternative | None:
        """The intent that a rule gives the sentence, if it is one of `among`; None where no rule says."""
        rule = self._first(text, namespace, lambda rule: rule.intent in among)
        return None if rule is None or rule.intent is None else Alternative(rule.intent, rule.confidence)

    def _first(self, text: str, namespace: str, counts: Callable[[Rule], bool]) -> Rule | None:
        form: str | None = None
        for each in self._rules:
            rule = each.rule
            if rule.namespace not in (None, namespace) or not counts(rule):
                continue
            if each.pattern is not None and each.pattern.search(text):
                return rule
            if each.keywords is not None:
                form = match_form(text) if form is None else form
                if each.keywords.search(form):
                    return rule
        return None


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A rule ready to be matched: its pattern with the text, its keywords with the text's matching form."""

    rule: Rule
    pattern: Any | None
    keywords: Any | None

    @classmethod
    def of(cls, rule: Rule) -> _Compiled:
        pattern = None if rule.pattern is None else compile_pattern(rule.pattern)
        keywords = keywords_pattern(rule.keywords)
        return cls(rule, pattern, None if keywords is None else compile_pattern(keywords))


def keywords_pattern(keywords: Sequence[str]) -> str | None:
    """Keywords as one pattern over matching forms; None where they hold nothing to look for.

    >>> keywords_pattern(["in depth", "Ｃ++"])
    '\\\\bin depth\\\\b|\\\\bc\\\\+\\\\+'
    """
    forms = [match_form(normalize(keyword)) for keyword in keywords]
    return "|".join(_keyword(form) for form in forms if form) or None


def _keyword(keyword: str) -> str:
    before = r"\b" if keyword[0].isascii() and keyword[0].isalnum() else ""
    after = r"\b" if keyword[-1].isascii() and keyword[-1].isalnum() else ""
    return before + str(re2.escape(keyword)).replace("\\ ", " ") + after
