"""Caps: no caller has more weight in training than the rest of what is known of an intent allows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from router.retraining.kept import MOST_OF_CALLER
from router.retraining.rows import Row

CORRECTION_SHARE = 0.5
"""Accepted corrections of one caller weigh at most this share of an intent's own texts: of the one that they name, and
of the one that they take a text from."""

OUTCOME_SHARE = 0.25
"""The same of the texts of outcomes, for the intent that was routed by."""

ALL_OUTCOMES_SHARE = 1.0
"""The same of all callers together."""

_LEAST_ALLOWED = 1.0
"""So much is allowed in any case: one correction counts in full, however few texts its intent has."""


def newest_of_callers(corrections: Sequence[Row]) -> tuple[list[Row], int]:
    """(the corrections that count, how many do not).

    Of a text only the one that was accepted last counts, and of one caller and intent the last `MOST_OF_CALLER`.

    Args:
        corrections: in the order in which they were accepted.
    """
    texts: set[str] = set()
    of_caller: Counter[tuple[str, str]] = Counter()
    found = []
    for row in reversed(corrections):
        of_caller[row.caller, row.intent] += row.key not in texts
        if row.key not in texts and of_caller[row.caller, row.intent] <= MOST_OF_CALLER:
            found.append(row)
        texts.add(row.key)
    return found[::-1], len(corrections) - len(found)


def capped_corrections(rows: Sequence[Row], known: Mapping[str, float]) -> list[Row]:
    """The corrections with weights under their caps.

    Args:
        rows: that count.
        known: intent → texts of the operator's own; an intent that is missing has none.
    """
    by_meant = _capped(rows, lambda row: (row.caller, row.intent), _allowed(rows, known, CORRECTION_SHARE, _meant))
    by_read = _capped(rows, lambda row: (row.caller, row.read), _allowed(rows, known, CORRECTION_SHARE, _read))
    return [
        one if one.weight <= other.weight or row.read is None else other
        for row, one, other in zip(rows, by_meant, by_read, strict=True)
    ]


def capped_outcomes(rows: Sequence[Row], known: Mapping[str, float]) -> list[Row]:
    """The weak positives with weights under their caps; the arguments are those of `capped_corrections`."""
    capped = _capped(rows, lambda row: (row.caller, row.intent), _allowed(rows, known, OUTCOME_SHARE, _meant))
    return _capped(capped, _meant, _allowed(rows, known, ALL_OUTCOMES_SHARE, _meant))


def _meant(row: Row) -> str:
    return row.intent


def _read(row: Row) -> str:
    return row.read or ""


def _allowed(
    rows: Iterable[Row], known: Mapping[str, float], share: float, intent_of: Callable[[Row], str]
) -> dict[str, float]:
    return {intent: max(_LEAST_ALLOWED, share * known.get(intent, 0.0)) for intent in map(intent_of, rows)}


def _capped(rows: Sequence[Row], group_of: Callable[[Row], Hashable], allowed: Mapping[str, float]) -> list[Row]:
    """Rows of a group, which is an intent or ends in one, scaled so that they weigh together what its intent allows."""
    totals: dict[Hashable, float] = defaultdict(float)
    for row in rows:
        totals[group_of(row)] += row.weight
    found = []
    for row in rows:
        group = group_of(row)
        intent = (group[-1] if isinstance(group, tuple) else group) or ""
        found.append(row._replace(weight=row.weight * min(1.0, allowed[str(intent)] / totals[group])))
    return found
