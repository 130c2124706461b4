from __future__ import annotations

from intent.multi import NO_MULTI, Multi, MultiExample, distinct_multi, limited


def test_a_text_stands_once_with_all_that_is_said_of_it() -> None:
    examples = [
        MultiExample("Ｃancel  it", ("a", "b")),
        MultiExample("Cancel it", ("b", "c")),
        MultiExample("?!", ("a", "b")),
    ]
    assert distinct_multi(examples) == (MultiExample("Cancel it", ("a", "b", "c")),)


def test_all_of_it_is_normalized() -> None:
    example = MultiExample("Ｃancel it", ("a", "b"))
    found = Multi((example,), (example,), ("ｎo", "no", "...")).normalized()
    assert found == Multi(
        (MultiExample("Cancel it", ("a", "b")),) * 1, (MultiExample("Cancel it", ("a", "b")),), ("no",)
    )
    assert found.intents == {"a", "b"}
    assert not NO_MULTI.intents


def test_examples_are_limited_to_known_intents() -> None:
    examples = [MultiExample("x", ("a", "b")), MultiExample("y", ("b", "c")), MultiExample("z", ("c", "d"))]
    assert limited(examples, {"a", "b"}) == (MultiExample("x", ("a", "b")), MultiExample("y", ("b",)))
