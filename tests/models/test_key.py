from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.key import Key

FIELDS: dict[str, Any] = {"key_id": "0" * 16, "name": "shop", "secret_sha256": "f" * 64, "created_at": 1}


def test_a_key_may_nothing_but_anywhere_and_as_anybody_unless_it_says_so() -> None:
    key = Key(**FIELDS)
    assert (key.permissions, key.namespaces, key.callers, key.revoked_at) == (frozenset(), None, None, None)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("key_id", "0" * 15),
        ("key_id", "G" * 16),
        ("name", ""),
        ("secret_sha256", "F" * 64),
        ("permissions", frozenset({"a b"})),
        ("namespaces", frozenset({"/"})),
        ("callers", frozenset({"a b"})),
    ],
)
def test_a_wrong_field_is_named(field: str, bad: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        Key(**{**FIELDS, field: bad})
    assert {error["loc"][0] for error in caught.value.errors()} == {field}
