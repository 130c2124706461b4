from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from models.card import AgentCard
from models.errors import ConflictError, NotFoundError, PreconditionFailedError, StoreError
from models.policy import Policy
from models.ports import Embedded
from router.card_vectors import CardVectors
from router.registry import Registry
from router.snapshot import Snapshot
from router.stores.open import open_store
from tests.builders import FakeClock, capability, card, policy_of
from tests.router.memory_store import MemoryStore, WaitingEmbedder, pool_of, registry_of

DEFAULT = ("default",)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def pool() -> Iterator[EmbedPool]:
    with pool_of() as opened:
        yield opened


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def registry(store: MemoryStore, pool: EmbedPool) -> Registry:
    """Started, with the card `filed` from a file."""
    started = registry_of(store, pool)
    await started.start([card("filed")], None)
    return started


async def restarted(store: MemoryStore, pool: EmbedPool, policy: Policy | None = None) -> Registry:
    """As after a restart without card files."""
    again = registry_of(store, pool)
    await again.start(None, policy)
    return again


def agents(registry: Registry) -> list[str]:
    return [known.agent_id for known in registry.snapshot.cards]


def routable(registry: Registry, intent: str) -> list[tuple[str, str]]:
    return [(entry.card.agent_id, entry.card.version) for entry in registry.snapshot.routable(DEFAULT, intent)]


def described(registry: Registry) -> dict[str, str]:
    return {known.agent_id: known.description for known in registry.snapshot.cards}


async def test_a_registered_card_is_found_by_its_text_and_stored(registry: Registry, store: MemoryStore) -> None:
    assert await registry.put(card("new"))
    assert registry.snapshot.scope(DEFAULT).exact("please ask new") == ["new"]
    vector = DummyEmbedder().embed("please ask new").vector
    best, *_ = registry.snapshot.scope(DEFAULT).neighbours(vector, 5)
    assert (best.intent, best.similarity) == ("new", 1.0)
    assert store.cards["default", "new", "1.0.0"].source == "api"


async def test_a_card_with_a_known_key_is_replaced(registry: Registry) -> None:
    assert await registry.put(card("a", description="first"))
    assert not await registry.put(card("a", description="second"))
    assert described(registry) == {"a": "second", "filed": ""}


async def test_each_change_of_cards_raises_their_generation_and_that_of_the_index(registry: Registry) -> None:
    generations = []
    for change in (lambda: registry.put(card("a")), lambda: registry.delete("default", "a", None)):
        await change()
        snapshot = registry.snapshot
        generations.append((snapshot.cards_generation, snapshot.index_generation, snapshot.policy_generation))
    assert generations == [(2, 2, 0), (3, 3, 0)]


async def test_a_snapshot_in_use_does_not_change(registry: Registry) -> None:
    before = registry.snapshot
    await registry.put(card("a"))
    assert [known.agent_id for known in before.cards] == ["filed"]
    assert before.scope(DEFAULT).exact("please ask a") == []


async def test_changes_at_once_lose_none(registry: Registry, store: MemoryStore) -> None:
    await asyncio.gather(*(registry.put(card(f"a{number}")) for number in range(50)))
    assert sorted(agents(registry)) == sorted(["filed", *(f"a{number}" for number in range(50))])
    assert registry.snapshot.cards_generation == 51
    assert len(store.cards) == 51


async def test_a_change_that_cannot_be_stored_leaves_the_old_snapshot(registry: Registry, store: MemoryStore) -> None:
    await registry.put(card("a"))
    before = registry.snapshot
    changes: list[Callable[[], Awaitable[object]]] = [
        lambda: registry.put(card("lost")),
        lambda: registry.put(card("a", description="lost")),
        lambda: registry.delete("default", "a", None),
        lambda: registry.replace_files([card("lost")]),
        lambda: registry.set_policy(policy_of(hide_denied=True)),
        lambda: registry.roll_back_policy(1),
    ]
    store.policies.append(policy_of(hide_denied=True).model_dump_json())
    store.is_failing = True
    for change in changes:
        with pytest.raises(StoreError, match="the disk is full"):
            await change()
        assert registry.snapshot is before
    store.is_failing = False
    await registry.put(card("b"))
    assert described(registry) == {"a": "", "b": "", "filed": ""}
    assert registry.snapshot.policy == Policy()


async def test_a_card_that_cannot_be_embedded_leaves_the_old_snapshot_and_is_not_stored(store: MemoryStore) -> None:
    class Broken(DummyEmbedder):
        def embed(self, text: str) -> Embedded:
            if "bad" in text:
                raise RuntimeError("no vector")
            return super().embed(text)

    with pool_of(Broken()) as pool:
        registry = registry_of(store, pool)
        await registry.start([card("filed")], None)
        before = registry.snapshot
        with pytest.raises(RuntimeError, match="no vector"):
            await registry.put(card("bad"))
        assert registry.snapshot is before
        assert [known.agent_id for known, _ in store.cards.values()] == ["filed"]
        await registry.put(card("good"))
        assert agents(registry) == ["filed", "good"]


async def test_while_new_texts_are_embedded_the_old_snapshot_answers(store: MemoryStore) -> None:
    with WaitingEmbedder() as embedder, pool_of(embedder) as pool:
        registry = registry_of(store, pool)
        await registry.start([], None)
        before = registry.snapshot
        change = asyncio.create_task(registry.put(card("a")))
        await asyncio.to_thread(embedder.begun.acquire)
        assert registry.snapshot is before
        assert store.cards == {}
        embedder.may_end.set()
        await change
        assert agents(registry) == ["a"]


async def test_a_card_from_the_api_wins_over_one_from_a_file(registry: Registry, store: MemoryStore) -> None:
    assert not await registry.put(card("filed", description="by hand"))
    assert described(registry) == {"filed": "by hand"}
    await registry.replace_files([card("filed", description="file, changed"), card("other")])
    assert described(registry) == {"filed": "by hand", "other": ""}


async def test_a_card_from_the_api_wins_after_a_restart_with_files_too(
    registry: Registry, store: MemoryStore, pool: EmbedPool
) -> None:
    await registry.put(card("filed", description="by hand"))
    again = registry_of(store, pool)
    await again.start([card("filed", description="file"), card("other")], None)
    assert described(again) == {"filed": "by hand", "other": ""}


async def test_files_replace_only_what_came_from_files(registry: Registry) -> None:
    await registry.put(card("by_hand"))
    await registry.replace_files([card("other")])
    assert agents(registry) == ["by_hand", "other"]
    await registry.replace_files([])
    assert agents(registry) == ["by_hand"]


async def test_the_same_files_again_change_nothing(registry: Registry, store: MemoryStore) -> None:
    before, writes = registry.snapshot, list(store.writes)
    await registry.replace_files([card("filed")])
    assert registry.snapshot is before
    assert store.writes == writes


async def test_all_cards_outlive_a_restart(registry: Registry, store: MemoryStore, pool: EmbedPool) -> None:
    await registry.put(card("by_hand"))
    assert agents(await restarted(store, pool)) == ["by_hand", "filed"]


async def test_files_given_at_the_start_replace_the_stored_ones(store: MemoryStore, pool: EmbedPool) -> None:
    await registry_of(store, pool).start([card("old")], None)
    again = registry_of(store, pool)
    await again.start([card("new")], None)
    assert agents(again) == ["new"]
    assert [known.agent_id for known, _ in store.cards.values()] == ["new"]


async def test_a_store_knows_whether_it_holds_cards(store: MemoryStore, pool: EmbedPool) -> None:
    empty = registry_of(store, pool)
    assert not await empty.has_stored_cards()
    await empty.start([card("a")], None)
    assert await empty.has_stored_cards()


async def test_several_versions_of_an_agent_are_live(registry: Registry) -> None:
    for version in ("2.0.0", "10.0.0", "1.0.0"):
        assert await registry.put(card("a", version=version))
    assert routable(registry, "a") == [("a", "1.0.0"), ("a", "2.0.0"), ("a", "10.0.0")]
    assert await registry.delete("default", "a", "2.0.0") == [("default", "a", "2.0.0")]
    assert routable(registry, "a") == [("a", "1.0.0"), ("a", "10.0.0")]
    assert await registry.delete("default", "a", None) == [("default", "a", "1.0.0"), ("default", "a", "10.0.0")]
    assert agents(registry) == ["filed"]


async def test_namespaces_keep_agents_of_one_name_apart(registry: Registry) -> None:
    await registry.put(card("a"))
    await registry.put(card("a", namespace="prod/shop"))
    await registry.delete("default", "a", None)
    assert [known.key for known in registry.snapshot.cards] == [
        ("default", "filed", "1.0.0"),
        ("prod/shop", "a", "1.0.0"),
    ]


async def test_deleting_what_is_not_there_says_so(registry: Registry) -> None:
    with pytest.raises(NotFoundError, match=r"no agent 'a' in namespace 'default'$"):
        await registry.delete("default", "a", None)
    with pytest.raises(NotFoundError, match=r"no agent 'filed' in namespace 'default' in version 9\.9\.9"):
        await registry.delete("default", "filed", "9.9.9")
    with pytest.raises(NotFoundError, match="no agent 'filed' in namespace 'prod'"):
        await registry.delete("prod", "filed", None)


async def test_a_card_of_a_watched_file_is_not_deleted_here(registry: Registry) -> None:
    registry.files_watched = True
    await registry.put(card("by_hand"))
    await registry.put(card("filed", version="2.0.0"))
    before = registry.snapshot
    with pytest.raises(ConflictError, match="filed comes from a card file that is watched"):
        await registry.delete("default", "filed", None)
    assert registry.snapshot is before
    await registry.delete("default", "by_hand", None)
    await registry.delete("default", "filed", "2.0.0")
    assert [known.key for known in registry.snapshot.cards] == [("default", "filed", "1.0.0")]


async def test_a_card_of_a_file_that_is_not_watched_can_be_deleted(
    registry: Registry, store: MemoryStore, pool: EmbedPool
) -> None:
    await registry.put(card("filed", description="by hand"))
    assert await registry.delete("default", "filed", None) == [("default", "filed", "1.0.0")]
    assert agents(registry) == []
    assert agents(await restarted(store, pool)) == []


async def test_a_disabled_card_is_kept_and_not_routable(registry: Registry) -> None:
    await registry.put(card("a", enabled=False))
    assert agents(registry) == ["a", "filed"]
    assert routable(registry, "a") == []
    assert registry.snapshot.scope(DEFAULT).exact("please ask a") == []
    await registry.put(card("a"))
    assert routable(registry, "a") == [("a", "1.0.0")]


async def test_a_policy_on_schemas_makes_flawed_capabilities_routable_and_back(registry: Registry) -> None:
    await registry.put(card("no_output", capability("talk", ["let us talk"], output_schema=None)))
    await registry.put(card("bare", capability("talk", ["let us talk"], input_schema=None, output_schema=None)))

    def flaws() -> dict[str, str | None]:
        entries = [entry for entry in registry.snapshot.entries if entry.capability.intent == "talk"]
        return {entry.card.agent_id: entry.flaw for entry in entries}

    assert flaws() == {"no_output": "output_schema_missing", "bare": "input_schema_missing"}
    assert routable(registry, "talk") == []
    await registry.set_policy(policy_of(require_schemas="input"))
    assert flaws() == {"no_output": None, "bare": "input_schema_missing"}
    assert routable(registry, "talk") == [("no_output", "1.0.0")]
    await registry.set_policy(policy_of(require_schemas="none"))
    assert routable(registry, "talk") == [("bare", "1.0.0"), ("no_output", "1.0.0")]
    assert registry.snapshot.scope(DEFAULT).exact("let us talk") == ["talk"]
    await registry.set_policy(Policy())
    assert routable(registry, "talk") == []


async def test_a_change_of_policy_raises_its_generation_and_leaves_that_of_the_cards(registry: Registry) -> None:
    assert await registry.set_policy(policy_of(hide_denied=True)) == 1
    assert await registry.set_policy(Policy()) == 2
    snapshot = registry.snapshot
    assert (snapshot.cards_generation, snapshot.index_generation, snapshot.policy_generation) == (1, 3, 2)
    await registry.put(card("a"))
    assert registry.snapshot.policy_generation == 2


async def test_of_many_who_change_the_same_policy_at_once_one_does(registry: Registry, store: MemoryStore) -> None:
    await registry.set_policy(Policy())
    weights = [number / 10 for number in range(10)]
    changes = (registry.set_policy(policy_of(share_within=weight), over={1}) for weight in weights)
    done = await asyncio.gather(*changes, return_exceptions=True)
    assert [found for found in done if not isinstance(found, PreconditionFailedError)] == [2]
    assert registry.snapshot.policy == policy_of(share_within=weights[done.index(2)])
    assert len(store.policies) == 2


async def test_a_policy_is_put_only_over_the_generations_named(registry: Registry) -> None:
    assert await registry.set_policy(Policy(), over={0, 7}) == 1
    for over in (set[int](), {0}, {2, 3}):
        with pytest.raises(PreconditionFailedError, match="has generation 1"):
            await registry.set_policy(policy_of(hide_denied=True), over=over)
        with pytest.raises(PreconditionFailedError, match="has generation 1"):
            await registry.roll_back_policy(1, over=over)
    assert (registry.snapshot.policy, registry.snapshot.policy_generation) == (Policy(), 1)


async def test_an_earlier_policy_comes_back_as_a_new_generation_and_outlives_a_restart(
    registry: Registry, store: MemoryStore, pool: EmbedPool
) -> None:
    first, second, third = (policy_of(share_within=share) for share in (0.1, 0.2, 0.3))
    for policy in (first, second, third):
        await registry.set_policy(policy)
    rollbacks = ((None, second), (None, third), (1, first), (5, third), (None, first))
    for generation, (wanted, policy) in enumerate(rollbacks, start=4):
        assert await registry.roll_back_policy(wanted) == generation
        assert registry.snapshot.policy == policy
        again = (await restarted(store, pool)).snapshot
        assert (again.policy, again.policy_generation) == (policy, generation)


async def test_there_is_no_way_back_to_a_policy_that_never_was(registry: Registry) -> None:
    with pytest.raises(NotFoundError, match="before generation 0"):
        await registry.roll_back_policy(None)
    await registry.set_policy(Policy())
    with pytest.raises(NotFoundError, match="before generation 1"):
        await registry.roll_back_policy(None)
    for generation in (0, 2):
        with pytest.raises(NotFoundError, match=f"no policy of generation {generation}, 1 is in force"):
            await registry.roll_back_policy(generation)
    assert registry.snapshot.policy_generation == 1


async def test_a_policy_of_another_release_is_not_rolled_back_to(registry: Registry, store: MemoryStore) -> None:
    store.policies.append('{"version": 1, "telepathy": true}')
    assert await registry.set_policy(Policy()) == 2
    with pytest.raises(ConflictError, match=r"stored policy 1 is not one of this release(.|\n)*telepathy"):
        await registry.roll_back_policy(None)
    assert registry.snapshot.policy_generation == 2


async def test_a_policy_outlives_a_restart(registry: Registry, store: MemoryStore, pool: EmbedPool) -> None:
    await registry.set_policy(policy_of(hide_denied=True))
    again = await restarted(store, pool)
    assert again.snapshot.policy == policy_of(hide_denied=True)
    assert again.snapshot.policy_generation == 1


async def test_a_generation_never_stands_for_two_policies(store: MemoryStore, pool: EmbedPool) -> None:
    stored, given = policy_of(hide_denied=True), policy_of(share_within=0.5)
    await (await restarted(store, pool)).set_policy(stored)
    starts = [None, given, given, None, stored]
    found = [(await restarted(store, pool, policy)).snapshot for policy in starts]
    assert [(snapshot.policy, snapshot.policy_generation) for snapshot in found] == [
        (stored, 1),
        (given, 2),
        (given, 2),
        (given, 2),
        (stored, 3),
    ]


async def test_a_shipped_policy_serves_only_where_none_is_given_or_stored(store: MemoryStore, pool: EmbedPool) -> None:
    shipped, given = policy_of(hide_denied=True), policy_of(share_within=0.5)
    await registry_of(store, pool).start([card("a")], None, shipped=shipped)
    # whatever befalls the process, the cards are never served without what holds for them
    assert store.writes == ["save_policy", "replace_file_cards"]
    again = registry_of(store, pool)
    await again.start(None, given, shipped=shipped)
    assert again.snapshot.policy == given
    once_more = registry_of(store, pool)
    await once_more.start(None, None, shipped=shipped)
    assert once_more.snapshot.policy == given


async def test_a_stored_policy_of_another_release_is_named_and_gives_way_to_one_that_is_given(
    store: MemoryStore, pool: EmbedPool
) -> None:
    store.policies.append('{"version": 1, "telepathy": true}')
    with pytest.raises(StoreError, match=r"stored policy 1 is not one of this release(.|\n)*telepathy"):
        await restarted(store, pool)
    assert (await restarted(store, pool, Policy())).snapshot.policy_generation == 2


def numbered(number: int) -> AgentCard:
    """The card that every replacement brings, with the same sentence for another intent."""
    return card("changing", capability(f"intent_{number}", ["do it now"]), description=str(number))


async def test_threads_that_search_while_cards_are_replaced_never_find_a_stale_one(
    store: MemoryStore, pool: EmbedPool
) -> None:
    n_changes, n_threads = 2000, 4
    registry = registry_of(store, pool)
    # generation n of the cards is the one that holds card n
    await registry.start([numbered(1)], None)
    vector = DummyEmbedder().embed("do it now").vector
    in_force = 1
    is_over = threading.Event()
    n_searches, wrong = [0] * n_threads, list[str]()

    def search(thread: int) -> None:
        while not is_over.wait(0.0002):
            least = in_force
            snapshot = registry.snapshot
            scope = snapshot.scope(DEFAULT)
            found = [neighbour.intent for neighbour in scope.neighbours(vector, 5)]
            own = f"intent_{snapshot.cards_generation}"
            if found != [own] or list(scope.exact("do it now")) != [own] or snapshot.cards_generation < least:
                wrong.append(f"{found} in generation {snapshot.cards_generation} after {least} was in force")
            n_searches[thread] += 1

    searches = [asyncio.create_task(asyncio.to_thread(search, thread)) for thread in range(n_threads)]
    for number in range(2, n_changes + 2):
        await registry.replace_files([numbered(number)])
        in_force = number
    is_over.set()
    await asyncio.gather(*searches)
    assert wrong == []
    assert registry.snapshot.cards_generation == n_changes + 1
    assert min(n_searches) > 100


CHILD = """
import asyncio, sys
from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from router.card_vectors import CardVectors
from router.clock import SystemClock
from router.registry import Registry
from router.stores.open import open_store
from tests.builders import card, policy_of

async def main():
    async with open_store(sys.argv[1]) as store:
        with EmbedPool(DummyEmbedder()) as pool:
            registry = Registry(CardVectors(pool, store.vectors), store.cards, store.policies, SystemClock())
            await registry.start(None, None)
            await registry.set_policy(policy_of(hide_denied=True))
            for number in range(20):
                await registry.put(card(f"agent_{number}"))
            await registry.delete("default", "agent_0", None)
            print("answered", flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_process_killed_right_after_it_answered_has_lost_nothing(tmp_path: Path, pool: EmbedPool) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"

    def kill_after_answer() -> None:
        with subprocess.Popen([sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, cwd=ROOT) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"answered\n"
            child.send_signal(signal.SIGKILL)

    await asyncio.to_thread(kill_after_answer)
    async with open_store(url, clock=FakeClock()) as store:
        registry = Registry(CardVectors(pool, store.vectors), store.cards, store.policies, FakeClock())
        await registry.start(None, None)
        assert agents(registry) == sorted(f"agent_{number}" for number in range(1, 20))
        assert registry.snapshot.policy == policy_of(hide_denied=True)


async def test_a_snapshot_is_shown_with_its_cards_before_it_is_stored_or_swapped_in(
    store: MemoryStore, registry: Registry
) -> None:
    seen: list[tuple[list[str], float, list[str]]] = []

    async def look(snapshot: Snapshot, cards: Sequence[AgentCard]) -> None:
        overridden = {known.agent_id: known.weight for known in snapshot.cards}
        seen.append((sorted(known.agent_id for known in cards), overridden["filed"], agents(registry)))
        # the operator's overrides are not on the cards that are shown
        assert all(known.weight == 100 for known in cards)
        assert "put_card" not in store.writes

    await registry.set_policy(Policy.model_validate({"agents": {"filed": {"weight": 7.0}}}, strict=False))
    registry.on_build = look
    await registry.put(card("new"))
    assert seen == [(["filed", "new"], 7.0, ["filed"])]


async def test_a_snapshot_that_cannot_be_archived_changes_nothing(store: MemoryStore, registry: Registry) -> None:
    async def refuse(_snapshot: Snapshot, _cards: Sequence[AgentCard]) -> None:
        raise StoreError("the disk is full")

    registry.on_build = refuse
    before, writes = registry.snapshot, list(store.writes)
    with pytest.raises(StoreError):
        await registry.put(card("new"))
    assert registry.snapshot is before
    assert store.writes == writes
