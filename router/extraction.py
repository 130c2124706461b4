"""Extraction: the entities of an utterance, under the names that the chosen capability has for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

from intent.entities.find import find_entities
from intent.entities.properties import Property
from intent.entities.slots import fill_properties
from models.decision import EntityValue
from models.entity import Found


def find(utterance: str, now_ms: float, zone: tzinfo, language: str) -> list[Found]:
    """What has a value of its own in an utterance.

    Args:
        utterance: as it came, so that the words are the caller's own.
        now_ms: epoch, milliseconds; words such as "yesterday" are understood from there.
        zone: the time zone they are understood in.
        language: BCP 47 primary tag of the utterance.
    """
    return find_entities(utterance, now=datetime.fromtimestamp(now_ms / 1000, zone), language=language)


def named(found: Sequence[Found], properties: Sequence[Property], utterance: str) -> dict[str, EntityValue]:
    """Name → entity; one that no property asks for stands under its kind.

    Args:
        found: of `find`, in the same utterance.
        properties: of the chosen capability's input schema; none where nothing was chosen.
        utterance: for the words that a schema itself names.
    """
    if not found and not properties:
        return {}
    return {
        name: EntityValue.of(value=slot.value, text=slot.text, kind=slot.kind, unit=slot.unit, resolved=slot.resolved)
        for name, slot in fill_properties(found, properties, utterance).items()
    }
