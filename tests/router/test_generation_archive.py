from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from intent.heads import Heads
from intent.model_folder import Origin, load_heads, save_heads
from models.card import AgentCard
from models.errors import ModelError, StoreError
from models.policy import Policy
from router.generation_archive import (
    CARD,
    CARDS,
    CLASSIFIER,
    FRESH_MS,
    NO_HEADS,
    POLICY,
    GenerationArchive,
    card_body,
    digest_of,
    lists_of,
    packed,
    unpacked,
)
from router.stores.open import Store, open_store
from tests.builders import FakeClock, capability, card, policy_of, snapshot_of
from tests.intent.fitted import BOTH, heads_of


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Heads:
    folder = tmp_path_factory.mktemp("model")
    save_heads(heads_of(BOTH), folder, Origin(encoder_id="dummy-64", n_examples=9))
    return load_heads(folder)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{tmp_path}/store.db", clock=FakeClock()) as opened:
        yield opened


def archive_of(store: Store, clock: FakeClock | None = None) -> GenerationArchive:
    return GenerationArchive(store.generations, clock or FakeClock(), "dummy-64")


async def kept(archive: GenerationArchive, cards: list[AgentCard], policy: Policy | None = None) -> dict[str, str]:
    snapshot = snapshot_of(cards, policy)
    await archive.keep_snapshot(snapshot, cards)
    archive.follow(snapshot)
    return dict(snapshot.digests)


def used_at(tmp_path: Path) -> dict[tuple[str, str], int]:
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        rows = connection.execute("SELECT kind, digest, used_at FROM generations").fetchall()
    return {(kind, digest): at_ms for kind, digest, at_ms in rows}


async def test_a_snapshot_is_kept_under_the_digests_that_it_gets(store: Store) -> None:
    cards = [card("a"), card("b", weight=7.0)]
    digests = await kept(archive_of(store), cards, policy_of(share_within=0.5))
    assert sorted(digests) == ["cards", "encoder", "index", "policy"]
    [listed] = (await store.generations.load(CARDS, [digests[CARDS]])).values()
    names = json.loads(listed)[CARD]
    bodies = await store.generations.load(CARD, names)
    assert sorted(AgentCard.model_validate_json(body).agent_id for body in bodies.values()) == ["a", "b"]
    assert all(digest_of(body) == name for name, body in bodies.items())
    [text] = (await store.generations.load(POLICY, [digests[POLICY]])).values()
    assert Policy.model_validate_json(text) == policy_of(share_within=0.5)


async def test_the_same_cards_in_another_order_are_the_same_generation(store: Store) -> None:
    archive = archive_of(store)
    one = await kept(archive, [card("a"), card("b")])
    assert await kept(archive, [card("b"), card("a")]) == one
    assert (await kept(archive, [card("a"), card("b", weight=7.0)]))[CARDS] != one[CARDS]
    assert (await kept(archive, [card("a"), card("b")], policy_of(share_within=0.5)))[CARDS] == one[CARDS]


async def test_what_the_operator_overrides_is_in_the_policy_and_not_in_the_cards(store: Store) -> None:
    archive = archive_of(store)
    overriding = Policy.model_validate({"agents": {"a": {"weight": 3.0}}}, strict=False)
    assert (await kept(archive, [card("a")], overriding))[CARDS] == (await kept(archive, [card("a")]))[CARDS]


def test_a_card_comes_back_with_its_schemas_in_their_order() -> None:
    schema = {"type": "object", "properties": {"z": {"type": "integer", "maximum": 2**70}, "a": {"type": "string"}}}
    known = card("a", capability("echo", ["订单 ü"], input_schema=schema))
    again = AgentCard.model_validate_json(card_body(known))
    assert again == known
    assert list(again.capabilities[0].input_schema["properties"]) == ["z", "a"]  # type: ignore[index]


def test_a_change_of_one_card_of_many_writes_one_page_and_the_list_anew() -> None:
    def cards_of(n: int, changed: int | None = None) -> list[tuple[tuple[str, str, str], str]]:
        made = ((f"a{number}", digest_of(f"{number} {number == changed}".encode())) for number in range(n))
        return [(("default", agent_id, "1.0.0"), digest) for agent_id, digest in made]

    assert len(lists_of(cards_of(127))) == 1
    before, after = lists_of(cards_of(5000)), lists_of(cards_of(5000, changed=7))
    assert before == lists_of(list(reversed(cards_of(5000))))
    assert len(before) == 65
    new = set(after) - set(before)
    assert len(new) == 2
    assert after[0] in new
    assert max(len(one.body) for one in after) < 9000
    digests = [digest for page in before[1:] for digest in json.loads(page.body)[CARD]]
    assert sorted(digests) == sorted(digest for _, digest in cards_of(5000))


async def test_what_is_in_force_is_noted_as_used_once_an_hour_and_the_rest_is_not(store: Store, tmp_path: Path) -> None:
    clock = FakeClock()
    archive = archive_of(store, clock)
    began = int(clock.ms)
    old = await kept(archive, [card("a"), card("b")])
    new = await kept(archive, [card("a"), card("c")])
    clock.advance(FRESH_MS - 1)
    await archive.catch_up()
    assert set(used_at(tmp_path).values()) == {began}
    clock.advance(1)
    await archive.catch_up()
    times = used_at(tmp_path)
    assert times[CARDS, new[CARDS]] == times[POLICY, new[POLICY]] == int(clock.ms)
    assert times[CARDS, old[CARDS]] == began
    assert sorted(at_ms for (kind, _), at_ms in times.items() if kind == CARD) == [began, int(clock.ms), int(clock.ms)]
    # what went is forgotten, what is in force stays
    assert await store.generations.forget(int(clock.ms)) == 2
    assert (CARDS, new[CARDS]) in used_at(tmp_path)


async def test_what_was_forgotten_meanwhile_is_written_again(store: Store) -> None:
    clock = FakeClock()
    archive = archive_of(store, clock)
    first = await kept(archive, [card("a")])
    await kept(archive, [card("b")])
    clock.advance(FRESH_MS + 1)
    await archive.catch_up()
    await store.generations.forget(int(clock.ms))
    assert not await store.generations.has(CARDS, first[CARDS])
    assert await kept(archive, [card("a")]) == first
    assert await store.generations.has(CARDS, first[CARDS])


async def test_a_store_that_fails_fails_the_change(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/store.db") as opened:
        archive = archive_of(opened)
    with pytest.raises(StoreError):
        await kept(archive, [card("a")])


async def test_classifiers_are_named_once_they_are_kept(store: Store, heads: Heads) -> None:
    archive = archive_of(store)
    assert archive.classifier(None) == NO_HEADS
    assert archive.classifier(heads) is None
    await archive.catch_up()
    assert archive.classifier(heads) == heads.digest
    [body] = (await store.generations.load(CLASSIFIER, [heads.digest])).values()
    again = unpacked(body, heads.digest)
    assert (again.digest, again.labels) == (heads.digest, heads.labels)


async def test_classifiers_of_no_model_folder_are_never_named(store: Store, heads: Heads) -> None:
    archive, nameless = archive_of(store), replace(heads, digest="")
    assert archive.classifier(nameless) is None
    await archive.keep_heads(nameless)
    assert archive.classifier(nameless) is None


async def test_classifiers_that_would_not_read_alike_are_not_kept(
    store: Store, heads: Heads, caplog: pytest.LogCaptureFixture
) -> None:
    archive, other = archive_of(store), replace(heads, digest="0" * 64)
    await archive.keep_heads(other)
    assert archive.classifier(other) is None
    assert "are not kept" in caplog.text


async def test_a_store_that_fails_keeps_no_classifiers_out_of_force(
    tmp_path: Path, heads: Heads, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_store(f"sqlite:///{tmp_path}/store.db") as opened:
        archive = archive_of(opened)
    await archive.keep_heads(heads)
    assert "are not kept" in caplog.text


@pytest.mark.parametrize("wrong", [b"", b"no archive", b"PK", None], ids=["empty", "text", "cut", "of others"])
def test_a_body_that_is_not_what_its_digest_says_is_refused(heads: Heads, wrong: bytes | None) -> None:
    body = packed(heads, "dummy-64")
    assert body is not None
    assert unpacked(body, heads.digest).labels == heads.labels
    with pytest.raises(ModelError):
        unpacked(body if wrong is None else wrong, heads.digest if wrong is not None else "1" * 64)
