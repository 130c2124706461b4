"""Where the errors of the openai client and of its transport become ours, all of them, in one place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from models.language_model import (
    LanguageModelError,
    ModelBusyError,
    ModelFailedError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnreachableError,
)

_CODE = re.compile(r"[\w.-]{1,64}")


def translate(error: Exception, now_ms: float) -> LanguageModelError:
    """Our error for a foreign one.

    The message names the class, the HTTP status and the server's error code, never its words: servers quote keys and
    texts there.

    Args:
        error: raised by a call of the openai client, or while its answer was read.
        now_ms: wall clock, for a Retry-After that names a date.
    """
    import openai

    name = type(error).__name__
    if isinstance(error, openai.APIStatusError):
        return _of_status(error.status_code, error.response.headers, error.code, now_ms)
    # the transport's own classes (httpx in openai 1 and 2, httpx2 in 3) come through raw while the body is read
    if isinstance(error, TimeoutError | openai.APITimeoutError) or "Timeout" in name:
        return ModelTimeoutError(f"the language model did not answer in time ({name})")
    if isinstance(error, openai.OpenAIError) and not isinstance(error, openai.APIConnectionError):
        return ModelFailedError(f"the language model gave no answer that the client can read ({name})")
    # raw, or wrapped by openai; nothing was sent, so nothing was spent
    n_tokens = 0 if "ConnectError" in (name, type(error.__cause__).__name__) else None
    said = f"the language model's server could not be reached, or went away ({name})"
    return ModelUnreachableError(said, n_tokens=n_tokens)


def _of_status(status: int, headers: Mapping[str, str], code: object, now_ms: float) -> LanguageModelError:
    named = f", {code}" if isinstance(code, str) and _CODE.fullmatch(code) else ""
    said = f"the language model's server answered with status {status}{named}"
    retry = retry_after_ms(headers, now_ms)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return ModelTimeoutError(said)
    if status == HTTPStatus.TOO_MANY_REQUESTS or (status >= 500 and retry is not None):
        return ModelBusyError(said, retry_after_ms=retry)
    return (ModelFailedError if status >= 500 else ModelRefusedError)(said, status=status)


def retry_after_ms(headers: Mapping[str, str], now_ms: float) -> float | None:
    """For how long a server wants to be left alone, in milliseconds, never negative; None where it does not say.

    Reads `retry-after-ms` and `retry-after` (RFC 9110, 10.2.3: seconds or a date).

    >>> retry_after_ms({"retry-after": "1.5"}, 0.0)
    1500.0
    >>> retry_after_ms({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 4000.0)
    6000.0
    """
    for name, ms in (("retry-after-ms", 1.0), ("retry-after", 1000.0)):
        text = headers.get(name, "")
        try:
            wait_ms = float(text) * ms
        except ValueError:
            continue
        if math.isfinite(wait_ms):
            return max(0.0, wait_ms)
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000 - now_ms)
    except (TypeError, ValueError, OverflowError):
        return None
