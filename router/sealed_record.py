"""SealedRecord: a decision's record, read again, with what its sections say of whether they were altered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from intent.normalize import normalize
from models.errors import MalformedBodyError
from models.events import DecisionRow
from models.reading import Alternative, Certainty, Reading
from models.request import RouteRequest
from router.permit import Grants
from router.sealed_inputs import BASE, FORMAT, OF_SECTIONS
from router.seals import section_digest
from router.wire import loads


class UnreadableError(Exception):
    """A record that holds no sealed inputs of this release; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class SealedRecord:
    """A record and the inputs in it.

    Attributes:
        request: as it was understood, or what is kept of it.
        inputs: as `router.sealed_inputs` wrote them.
    """

    row: DecisionRow
    request: RouteRequest
    inputs: Mapping[str, Any]

    @classmethod
    def of(cls, row: DecisionRow) -> SealedRecord:
        """Read a record.

        Raises:
            UnreadableError: it has none, or cannot be read.
        """
        try:
            inputs = orjson.loads(row.inputs)
            said = loads(row.request.encode())
            if not isinstance(inputs, dict) or "digests" not in inputs:
                raise UnreadableError("its inputs are not sealed: it is of an earlier release, or was imported")
            if inputs.get("format") != FORMAT:
                raise UnreadableError(f"its inputs are of format {inputs.get('format')}, this release reads {FORMAT}")
            return cls(row, RouteRequest.model_validate(said), inputs)
        except (orjson.JSONDecodeError, MalformedBodyError, ValidationError, AttributeError, TypeError) as error:
            raise UnreadableError(f"its request or inputs cannot be read: {_first_line(error)}") from None

    @property
    def live(self) -> dict[str, Any]:
        """What others gave to the decision, in the order in which it was sealed."""
        return {name: value for name, value in self.inputs.items() if name not in (*BASE, *OF_SECTIONS)}

    @property
    def is_partial(self) -> bool:
        """Whether there were more agents than are sealed."""
        return "n_contenders" in self.inputs or "n_left_out" in self.inputs

    @property
    def grants(self) -> Grants:
        """What its caller might."""
        held = self.inputs["grants"]
        sets = (None if held[name] is None else frozenset(held[name]) for name in _GRANTS)
        return Grants(self.row.caller, *sets)

    @property
    def reading(self) -> Reading | None:
        """What intake gave; None where nothing was read, or not in time."""
        sealed = self.inputs["reading"]
        return None if sealed is None else reading_of(sealed, normalize(self.request.utterance or ""))

    def altered(self) -> list[str]:
        """The sections that are not as they were sealed, in the order of a replay's parts."""
        inputs, digests = self.inputs, self.inputs["digests"]
        found = {
            "request": section_digest(
                self.row.request.encode(),
                orjson.dumps({name: value for name, value in inputs.items() if name in BASE}),
            ),
            "reading": section_digest(orjson.dumps(inputs.get("reading"))),
            "weights": section_digest(orjson.dumps(inputs.get("blend")), orjson.dumps(inputs.get("learned"))),
            "live": section_digest(orjson.dumps(self.live)),
            "draws": section_digest(str(inputs.get("seed")).encode(), orjson.dumps(inputs.get("propensities"))),
        }
        return [name for name, digest in found.items() if digests.get(name) != digest]


def is_of_before_seals(row: DecisionRow, first_sealed_at: int | None) -> bool:
    """Whether a record without a seal never had one; else it has lost it, or was slipped in.

    Args:
        row: a record that has none.
        first_sealed_at: when the first decision was made that has one (epoch, milliseconds); None where none has.
    """
    if first_sealed_at is not None and row.happened_at >= first_sealed_at:
        return False
    try:
        inputs = orjson.loads(row.inputs)
    except orjson.JSONDecodeError:
        return True
    # what lists the digests of its sections was written together with a seal
    return not (isinstance(inputs, dict) and "digests" in inputs)


_GRANTS = ("permissions", "namespaces", "agent_ids")


def reading_of(sealed: Mapping[str, Any], text: str) -> Reading:
    """A reading as it was sealed; an empty vector stands for one that is not known.

    Its further parts have records of their own, and come without texts.
    """
    return Reading(
        text=text,
        language=sealed["language"],
        certainty=Certainty(sealed["certainty"]),
        intent=sealed["intent"],
        confidence=sealed["confidence"],
        source=sealed["source"],
        alternatives=tuple(Alternative(*other) for other in sealed["alternatives"]),
        preference=sealed["preference"],
        degraded=tuple(sealed["degraded"]),
        vector=b"" if sealed.get("vector") else None,
        parts=tuple(reading_of(part, "") for part in sealed.get("parts", ())),
    )


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
