from __future__ import annotations

import doctest
import inspect
from typing import Any

import httpx
import httpx2
import openai
import pytest

from intent.llm import errors
from intent.llm.errors import retry_after_ms, translate
from models.language_model import LanguageModelError
from tests.builders import START_MS


def family(kind: type[Exception]) -> set[type[Exception]]:
    """A class and all that come from it."""
    return {kind, *(below for child in kind.__subclasses__() for below in family(child))}


def foreign_errors() -> list[Exception]:
    """One of every class of error of openai and of its transports."""
    response = httpx2.Response(418, request=httpx2.Request("POST", "http://x"))
    status_error: dict[str, Any] = {"response": response, "body": {"message": "secret"}}
    kinds = family(openai.OpenAIError)
    for module in (httpx, httpx2):
        kinds |= {kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, Exception)}
    found: list[Exception] = []
    for kind in kinds:
        if issubclass(kind, openai.APIStatusError):
            named = {"message": "secret"} if "message" in inspect.signature(kind).parameters else {}
            found.append(kind(**{**status_error, **named}))
        else:
            # their constructors differ widely, and only the class counts
            found.append(kind.__new__(kind, "secret"))
    return found


OTHERS = (OSError("x"), ValueError("x"), TimeoutError(), RuntimeError("x"), UnicodeDecodeError("utf-8", b"", 0, 1, "x"))


def test_no_foreign_error_is_left_unmapped() -> None:
    found = foreign_errors()
    assert len({type(error) for error in found}) > 50
    for error in (*found, *OTHERS):
        ours = translate(error, START_MS)
        assert isinstance(ours, LanguageModelError)
        assert type(ours) is not LanguageModelError
        assert "secret" not in str(ours)


@pytest.mark.parametrize("value", ["soon", "", "nan", "inf", "-inf", "Tue, 99 Nov 2023 22:14:20 GMT", "1" * 400])
def test_a_retry_after_without_sense_says_nothing(value: str) -> None:
    assert retry_after_ms({"retry-after": value}, START_MS) is None


def test_a_negative_retry_after_is_now() -> None:
    assert retry_after_ms({"retry-after": "-5"}, START_MS) == 0.0


def test_the_examples_in_the_docstrings_hold() -> None:
    failed, tried = doctest.testmod(errors)
    assert (failed, tried > 0) == (0, True)
