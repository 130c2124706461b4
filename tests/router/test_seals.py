from __future__ import annotations

from models.events import DecisionRow
from router.seals import GENESIS, Seal, chained, first_break, holds, record_digest, section_digest
from tests.router.stores.samples import decision


def sealed(*decision_ids: str) -> list[tuple[Seal, DecisionRow | None]]:
    chain = GENESIS
    made: list[tuple[Seal, DecisionRow | None]] = []
    for sequence, decision_id in enumerate(decision_ids, 1):
        digest = record_digest("5a", decision(decision_id))
        chain = chained(chain, decision_id, digest)
        made.append((Seal(sequence, decision_id, "5a", digest, chain, 1000), decision(decision_id)))
    return made


def test_a_page_that_holds_says_where_the_next_one_begins() -> None:
    page = sealed("a", "b", "c")
    before, found = first_break((0, GENESIS), page[:2])
    assert (before, found) == ((2, page[1][0].chain), None)
    assert first_break(before, page[2:]) == ((3, page[2][0].chain), None)
    assert first_break(before, []) == (before, None)


def test_a_page_behind_the_wrong_chain_breaks_at_once() -> None:
    page = sealed("a", "b", "c")
    before, found = first_break((1, GENESIS), page[1:])
    assert before == (1, GENESIS)
    assert found is not None
    assert (found.sequence, found.decision_id, found.detail) == (2, "b", "it does not follow from the seal before it")


def test_a_record_that_is_noted_as_erased_and_is_there_breaks_the_chain() -> None:
    (first, record), *others = sealed("a", "b")
    _, found = first_break((0, GENESIS), [(first._replace(erased_at=5), record), *others])
    assert found is not None
    assert (found.sequence, found.detail) == (1, "its record is noted as erased, and is there")
    _, found = first_break((0, GENESIS), [(first._replace(erased_at=5, salt=None), None), *others])
    assert found is None


def test_a_seal_without_its_salt_holds_nothing() -> None:
    [(seal, _)] = sealed("a")
    assert holds(seal, decision("a"))
    assert not holds(seal._replace(salt=None), decision("a"))
    assert not holds(seal, decision("b"))


def test_sections_are_told_apart_by_their_texts_and_where_those_end() -> None:
    assert section_digest(b"1", b"23") != section_digest(b"12", b"3")
    assert section_digest(b"1") == section_digest(b"1")
    assert len(section_digest(b"1")) == 16
