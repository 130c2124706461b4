"""The error tree. Foreign errors are turned into one of these where they cross our border.

RouterError
├── ConfigError              a file or setting the operator wrote
│   ├── CardError            an agent card
│   ├── PolicyError          a policy file
│   └── ModelError           a folder of trained classifiers, or the examples they are to be trained on
├── EncoderError             the encoder's files are missing, altered or unusable
├── StoreError               the store cannot be opened, read or written
└── RequestError             what a caller may meet; the HTTP edge maps each class to one status
    ├── MalformedBodyError   not JSON, or JSON that we refuse (NaN, duplicate keys, lone surrogates)
    ├── BodyTooLargeError
    ├── InvalidRequestError  well-formed JSON with wrong fields, each one named
    ├── InvalidPayloadError  the payload fits no permitted capability's input schema
    ├── UnauthenticatedError no key, or a wrong one
    ├── ForbiddenError       the key does not grant what was asked
    ├── NotFoundError
    ├── ErasedError          it was there, and was erased or had reached its age
    ├── MethodNotAllowedError
    ├── ConflictError
    ├── PreconditionFailedError  `If-Match` names something else than what there is
    ├── OverloadedError      too many requests at once; carries retry_after_ms
    ├── QuotaExceededError   the caller's own quota is used up; carries retry_after_ms
    └── NotReadyError        the first cards are still being embedded; carries retry_after_ms
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing that is wrong with an input.

    Attributes:
        path: where, as a dotted path (`agents[2].capabilities[0].intent`); "" is the input as a whole.
        message: what is wrong and what would be right.
        line: the line in the source text, counted from 1; None where there is no text.
    """

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        """`line 3, agents[2].quality: message`."""
        place = ", ".join(part for part in (f"line {self.line}" if self.line else "", self.path) if part)
        return f"{place}: {self.message}" if place else self.message


class RouterError(Exception):
    """The root of the tree.

    Attributes:
        code: stable name of the class of error, for programs.
        problems: the single things that are wrong; may be empty.
    """

    code = "internal"

    def __init__(self, message: str, problems: Iterable[FieldProblem] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.problems = tuple(problems)

    def __str__(self) -> str:
        """The message, then each problem on a line of its own."""
        return "\n".join([self.message, *(f"  {problem}" for problem in self.problems)])


class ConfigError(RouterError):
    """A file or setting the operator wrote is not usable."""

    code = "config_invalid"


class CardError(ConfigError):
    """An agent card is not usable."""

    code = "card_invalid"


class PolicyError(ConfigError):
    """A policy is not usable."""

    code = "policy_invalid"


class ModelError(ConfigError):
    """Trained classifiers, or the examples they are to be trained on, are not usable."""

    code = "model_invalid"


class EncoderError(RouterError):
    """The encoder's files are missing, altered or unusable."""

    code = "encoder_unusable"


class StoreError(RouterError):
    """The store cannot be opened, read or written."""

    code = "store_unusable"


class RequestError(RouterError):
    """What a caller may meet."""

    code = "bad_request"


class MalformedBodyError(RequestError):
    """The body is not JSON, or JSON that is refused."""

    code = "malformed_json"


class BodyTooLargeError(RequestError):
    """The body is larger than `max_body_bytes`."""

    code = "body_too_large"


class InvalidRequestError(RequestError):
    """Well-formed JSON with wrong fields."""

    code = "invalid_request"


class InvalidPayloadError(RequestError):
    """The payload fits no permitted capability's input schema."""

    code = "invalid_payload"


class UnauthenticatedError(RequestError):
    """No key where one is needed, or one that is not known."""

    code = "unauthenticated"


class ForbiddenError(RequestError):
    """The key does not grant what was asked."""

    code = "forbidden"


class NotFoundError(RequestError):
    """There is no such thing, or none that this caller may see."""

    code = "not_found"


class ErasedError(RequestError):
    """It was there, and was erased or dropped at its age; nothing of it is left but its seal."""

    code = "erased"


class MethodNotAllowedError(RequestError):
    """The path exists, the method does not."""

    code = "method_not_allowed"


class ConflictError(RequestError):
    """The state of the thing does not allow the call."""

    code = "conflict"


class PreconditionFailedError(RequestError):
    """What the caller took for granted about the thing that it changes is not so."""

    code = "precondition_failed"


class OverloadedError(RequestError):
    """Too many requests at once.

    Attributes:
        retry_after_ms: after how long another try is worth while, in milliseconds.
    """

    code = "overloaded"

    def __init__(self, message: str, retry_after_ms: int) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class QuotaExceededError(OverloadedError):
    """The caller's own quota is used up."""

    code = "quota_exceeded"


class NotReadyError(OverloadedError):
    """The service has just started and cannot decide yet."""

    code = "not_ready"
