from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from intent.embed_pool import EmbedPool
from router.readiness import Readiness
from router.registry import Registry
from router.watch import concerns, watch_cards, watch_policy
from tests.router.memory_store import MemoryStore, pool_of, registry_of
from tests.router.waiting import eventually

CARD = """
agent_id: {agent_id}
description: {description}
capabilities:
  - {{intent: track, examples: [where is my parcel], input_schema: text, output_schema: text}}
"""
BROKEN = "agent_id: tracker\ncolour: green\n"


@pytest.fixture
def pool() -> Iterator[EmbedPool]:
    with pool_of() as opened:
        yield opened


@pytest.fixture
async def registry(pool: EmbedPool) -> Registry:
    """Started without cards."""
    started = registry_of(MemoryStore(), pool)
    await started.start([], None)
    return started


@pytest.fixture
def readiness() -> Readiness:
    """Ready."""
    found = Readiness()
    found.ready.set()
    return found


@asynccontextmanager
async def watching(watch: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """The watch runs in the background; that it has not ended is checked at the end."""
    task = asyncio.create_task(watch)
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def put(path: Path, text: str) -> Callable[[], object]:
    """Puts a new file in the place of the old one, as editors do; nobody ever sees half of it."""

    def swap() -> None:
        beside = path.with_name("beside.tmp")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)

    return swap


def write(path: Path, description: str = "", agent_id: str = "tracker") -> Callable[[], object]:
    """Puts a file with one card in the place of the old one."""
    return put(path, CARD.format(agent_id=agent_id, description=description))


def descriptions(registry: Registry) -> list[str]:
    return [card.description for card in registry.snapshot.cards]


async def test_a_changed_card_file_is_swapped_in(tmp_path: Path, registry: Registry, readiness: Readiness) -> None:
    path = tmp_path / "cards.yaml"
    write(path, "old")()
    async with watching(watch_cards([path], registry, readiness)):
        await eventually(lambda: descriptions(registry) == ["new"], nudge=write(path, "new"))
        in_place = CARD.format(agent_id="tracker", description="newer")
        await eventually(lambda: descriptions(registry) == ["newer"], nudge=lambda: path.write_text(in_place))
    assert readiness.problems == {}


async def test_a_broken_card_file_leaves_the_old_set_in_force_and_shows_until_it_is_mended(
    tmp_path: Path, registry: Registry, readiness: Readiness, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cards.yaml"
    async with watching(watch_cards([path], registry, readiness)):
        await eventually(lambda: descriptions(registry) == ["good"], nudge=write(path, "good"))
        before = registry.snapshot

        await eventually(lambda: "cards" in readiness.problems, nudge=put(path, BROKEN))
        assert "cards.yaml" in readiness.problems["cards"]
        assert "colour" in readiness.problems["cards"]
        assert "line 2" in readiness.problems["cards"]
        assert "the old ones stay in force" in caplog.text
        assert registry.snapshot is before

        await eventually(lambda: descriptions(registry) == ["mended"], nudge=write(path, "mended"))
        await eventually(lambda: readiness.problems == {})


async def test_a_card_file_mended_to_what_is_in_force_clears_the_problem(
    tmp_path: Path, registry: Registry, readiness: Readiness
) -> None:
    path = tmp_path / "cards.yaml"
    async with watching(watch_cards([path], registry, readiness)):
        await eventually(lambda: descriptions(registry) == ["good"], nudge=write(path, "good"))
        before = registry.snapshot
        await eventually(lambda: "cards" in readiness.problems, nudge=put(path, BROKEN))
        await eventually(lambda: readiness.problems == {}, nudge=write(path, "good"))
        assert registry.snapshot is before


async def test_a_removed_card_file_leaves_the_old_set_in_force(
    tmp_path: Path, registry: Registry, readiness: Readiness
) -> None:
    path = tmp_path / "cards.yaml"
    async with watching(watch_cards([path], registry, readiness)):
        await eventually(lambda: descriptions(registry) == ["good"], nudge=write(path, "good"))
        path.unlink()
        await eventually(lambda: "there is no such file" in readiness.problems.get("cards", ""))
        assert descriptions(registry) == ["good"]


async def test_files_that_come_to_a_folder_or_leave_it_change_the_set(
    tmp_path: Path, registry: Registry, readiness: Readiness
) -> None:
    (tmp_path / "cards").mkdir()
    inside, below = tmp_path / "cards" / "a.yaml", tmp_path / "cards" / "team" / "b.yaml"
    async with watching(watch_cards([tmp_path / "cards"], registry, readiness)):
        await eventually(lambda: descriptions(registry) == ["a"], nudge=write(inside, "a", "a"))
        below.parent.mkdir()
        await eventually(lambda: descriptions(registry) == ["a", "b"], nudge=write(below, "b", "b"))
        inside.unlink()
        await eventually(lambda: descriptions(registry) == ["b"])
        below.parent.rename(tmp_path / "elsewhere")
        await eventually(lambda: descriptions(registry) == [])


async def test_a_change_behind_a_link_counts(tmp_path: Path, registry: Registry, readiness: Readiness) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").mkdir()
    real, link = tmp_path / "real" / "v1.yaml", tmp_path / "linked" / "cards.yaml"
    write(real, "old")()
    link.symlink_to(real)
    async with watching(watch_cards([link], registry, readiness)):
        await eventually(lambda: descriptions(registry) == ["new"], nudge=write(real, "new"))


async def test_what_changes_before_the_service_is_ready_takes_effect_afterwards(
    tmp_path: Path, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    path, readiness = tmp_path / "cards.yaml", Readiness()

    def seen() -> bool:
        return any(record.name == "watchfiles.main" and "detected" in record.message for record in caplog.records)

    with caplog.at_level("DEBUG", logger="watchfiles.main"):
        async with watching(watch_cards([path], registry, readiness)):
            await eventually(seen, nudge=write(path, "early"))
            assert descriptions(registry) == []
            readiness.ready.set()
            await eventually(lambda: descriptions(registry) == ["early"])


async def test_a_changed_policy_file_is_put_in_force_and_a_broken_one_is_not(
    tmp_path: Path, registry: Registry, readiness: Readiness
) -> None:
    path = tmp_path / "policy.yaml"
    async with watching(watch_policy(path, registry, readiness)):
        await eventually(
            lambda: registry.snapshot.policy.defaults.hide_denied, nudge=put(path, "defaults: {hide_denied: true}\n")
        )
        await eventually(lambda: "policy" in readiness.problems, nudge=put(path, "defaults: {hide: 1}\n"))
        assert "hide" in readiness.problems["policy"]
        assert registry.snapshot.policy.defaults.hide_denied
        await eventually(lambda: readiness.problems == {}, nudge=put(path, "defaults: {}\n"))
        assert not registry.snapshot.policy.defaults.hide_denied


async def test_a_policy_file_takes_its_place_again_when_it_changes_after_a_rollback(
    tmp_path: Path, registry: Registry, readiness: Readiness
) -> None:
    path = tmp_path / "policy.yaml"

    async def put_in_force(share: float) -> int:
        nudge = put(path, f"defaults: {{share_within: {share}}}\n")
        await eventually(lambda: registry.snapshot.policy.defaults.share_within == share, nudge=nudge)
        return registry.snapshot.policy_generation

    async with watching(watch_policy(path, registry, readiness)):
        first = await put_in_force(0.1)
        await put_in_force(0.2)
        await registry.roll_back_policy(first)
        assert registry.snapshot.policy.defaults.share_within == 0.1
        assert await put_in_force(0.3) > first + 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cards.yaml", True),
        ("other.yaml", False),
        ("..data", True),
        ("folder/a.yaml", True),
        ("folder/deep/a.YML", True),
        ("folder/a.json", True),
        ("folder/store.db", False),
        ("folder/store.db-wal", False),
        ("folder/gone", True),
    ],
)
def test_only_what_may_hold_cards_is_of_interest(tmp_path: Path, name: str, expected: bool) -> None:
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    for present in ("store.db", "store.db-wal", "a.yaml"):
        (tmp_path / "folder" / present).touch()
    assert concerns(tmp_path / name, {tmp_path / "cards.yaml"}, {tmp_path / "folder"}) is expected
