"""Problems: errors as application/problem+json (RFC 9457), each class with one status."""

from __future__ import annotations

from http import HTTPStatus
from math import ceil
from typing import Any

import orjson
from starlette.responses import Response

from models.errors import OverloadedError, RouterError, UnauthenticatedError
from router.problem_statuses import status_of

MEDIA_TYPE = "application/problem+json"


def problem_of(error: RouterError) -> dict[str, Any]:
    """The members of the problem document."""
    status = status_of(error)
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": error.code,
        "detail": error.message,
        "errors": [{"path": problem.path, "message": problem.message} for problem in error.problems],
    }


def response_of(error: RouterError, headers: dict[str, str] | None = None) -> Response:
    """The answer to a request that ended with `error`."""
    all_headers = dict(headers or {})
    if isinstance(error, UnauthenticatedError):
        all_headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, OverloadedError):
        all_headers["Retry-After"] = str(max(1, ceil(error.retry_after_ms / 1000)))
    return Response(orjson.dumps(problem_of(error)), status_of(error), all_headers, MEDIA_TYPE)
