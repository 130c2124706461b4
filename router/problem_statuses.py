"""The HTTP status of each class of error: one table."""

from __future__ import annotations

from models.errors import (
    BodyTooLargeError,
    CardError,
    ConfigError,
    ConflictError,
    ErasedError,
    ForbiddenError,
    InvalidPayloadError,
    InvalidRequestError,
    MalformedBodyError,
    MethodNotAllowedError,
    NotFoundError,
    NotReadyError,
    OverloadedError,
    PolicyError,
    PreconditionFailedError,
    QuotaExceededError,
    RouterError,
    StoreError,
    UnauthenticatedError,
)

STATUS: dict[type[RouterError], int] = {
    MalformedBodyError: 400,
    UnauthenticatedError: 401,
    ForbiddenError: 403,
    NotFoundError: 404,
    MethodNotAllowedError: 405,
    ConflictError: 409,
    ErasedError: 410,
    PreconditionFailedError: 412,
    BodyTooLargeError: 413,
    InvalidRequestError: 422,
    InvalidPayloadError: 422,
    CardError: 422,
    PolicyError: 422,
    ConfigError: 422,
    OverloadedError: 429,
    QuotaExceededError: 429,
    NotReadyError: 503,
    StoreError: 503,
}


def status_of(error: RouterError) -> int:
    """The HTTP status of an error: that of its nearest class in `STATUS`, else 500."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
