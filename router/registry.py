"""Registry: the cards and the policy in force, and the one place where they change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from models.card import AgentCard
from models.errors import ConflictError, NotFoundError, PreconditionFailedError, StoreError
from models.policy import Policy
from models.ports import CardStore, Clock, PolicyStore
from router.assemble import Generations, assemble, texts_of
from router.card_vectors import CardVectors
from router.snapshot import Snapshot
from router.versions import order

CardKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Sources:
    """The cards by where they came from; over the API wins where both have a key."""

    file: dict[CardKey, AgentCard]
    api: dict[CardKey, AgentCard]

    def merged(self) -> list[AgentCard]:
        return list({**self.file, **self.api}.values())


class Registry:
    """Each change builds a whole new snapshot beside the old one, stores what must last, then swaps.

    A change that fails leaves everything as it was.

    Attributes:
        snapshot: what decisions look at; replaced by one assignment.
        changed: set with each swap; whoever follows the changes clears it.
        on_swap: each is called with each new snapshot, before any decision looks at it.
        on_build: awaited with each new snapshot and its cards, without the operator's overrides, before it is stored
            or swapped in.
        files_watched: cards from files come back on the next reload, so they cannot be deleted here.
    """

    snapshot: Snapshot

    def __init__(self, vectors: CardVectors, cards: CardStore, policies: PolicyStore, clock: Clock) -> None:
        self.files_watched = False
        self.changed = asyncio.Event()
        self.on_swap: list[Callable[[Snapshot], None]] = []
        self.on_build: Callable[[Snapshot, Sequence[AgentCard]], Awaitable[None]] = _nothing
        self._vectors = vectors
        self._card_store = cards
        self._policy_store = policies
        self._clock = clock
        self._sources = _Sources({}, {})
        self._turn = asyncio.Lock()

    async def has_stored_cards(self) -> bool:
        """Whether the store holds any card."""
        return bool(await self._card_store.load_cards())

    async def start(
        self, files: Sequence[AgentCard] | None, policy: Policy | None, *, shipped: Policy | None = None
    ) -> None:
        """Load what is stored and build the first snapshot.

        Args:
            files: the cards from files, which replace the stored ones from files; None keeps those.
            policy: the policy from a file, which is stored where it is another than the newest; None takes that.
            shipped: the policy where none is given and none stored; None takes the defaults.

        Raises:
            StoreError: the store fails, or its policy is not one of this release.
        """
        # before the cards: what serves them must never be without what holds for them
        generation, in_force = await self._first_policy(policy, shipped)
        stored = await self._card_store.load_cards()
        file = {item.card.key: item.card for item in stored if item.source == "file"}
        if files is not None:
            file = {card.key: card for card in files}
            await self._card_store.replace_file_cards(files)
        self._sources = _Sources(file, {item.card.key: item.card for item in stored if item.source == "api"})
        snapshot = await self._build(self._sources.merged(), in_force, Generations(1, 1, generation))
        self._swap(self._sources, snapshot)

    async def _first_policy(self, given: Policy | None, shipped: Policy | None) -> tuple[int, Policy]:
        """The policy to start with and its generation, which tells it from every other one."""
        saved = await self._policy_store.load_policy()
        if saved is None:
            chosen = given or shipped
            return (0, Policy()) if chosen is None else (await self._save(chosen), chosen)
        generation, text = saved
        if given is not None:
            return (generation if given.model_dump_json() == text else await self._save(given)), given
        try:
            return generation, Policy.model_validate_json(text)
        except ValidationError as error:
            raise StoreError(
                f"the stored policy {generation} is not one of this release, give another: {error}"
            ) from None

    async def _save(self, policy: Policy) -> int:
        return await self._policy_store.save_policy(policy.model_dump_json(), int(self._clock.now_ms()))

    async def put(self, card: AgentCard) -> bool:
        """Register a card, or replace the one with its key; durable on return. True if it is new."""
        async with self._turn:
            sources = _Sources(self._sources.file, {**self._sources.api, card.key: card})
            snapshot = await self._rebuilt(sources)
            await self._card_store.put_card(card)
            is_new = card.key not in self._sources.file and card.key not in self._sources.api
            self._swap(sources, snapshot)
            return is_new

    async def delete(self, namespace: str, agent_id: str, version: str | None) -> list[CardKey]:
        """Forget an agent's card of one version, or all its versions; the keys that went.

        Raises:
            NotFoundError: there is none.
            ConflictError: a watched file defines it.
        """
        async with self._turn:
            keys = self._keys_of(namespace, agent_id, version)
            from_files = [key for key in keys if key in self._sources.file]
            if from_files and self.files_watched:
                raise ConflictError(f"{agent_id} comes from a card file that is watched: remove it there")
            gone = set(keys)
            sources = _Sources(_without(self._sources.file, gone), _without(self._sources.api, gone))
            snapshot = await self._rebuilt(sources)
            await self._card_store.delete_cards(keys)
            self._swap(sources, snapshot)
            return keys

    async def replace_files(self, cards: Sequence[AgentCard]) -> None:
        """Swap in the cards from files as a whole; the same cards again change nothing."""
        async with self._turn:
            sources = _Sources({card.key: card for card in cards}, self._sources.api)
            if sources == self._sources:
                return
            snapshot = await self._rebuilt(sources)
            await self._card_store.replace_file_cards(cards)
            self._swap(sources, snapshot)

    async def set_policy(self, policy: Policy, *, over: Collection[int] | None = None) -> int:
        """Put a policy in force; durable on return. Its generation.

        Args:
            policy: the policy.
            over: only where one of these generations is in force; None means whichever is.

        Raises:
            PreconditionFailedError: another one is.
        """
        async with self._turn:
            self._check_generation(over)
            return await self._put_in_force(policy)

    async def roll_back_policy(self, generation: int | None, *, over: Collection[int] | None = None) -> int:
        """Put an earlier policy in force again, as a new generation; durable on return. The new generation.

        Args:
            generation: of the policy wanted; None means the one before that in force.
            over: as in `set_policy`.

        Raises:
            NotFoundError: there is no such policy.
            ConflictError: it is not one of this release.
            PreconditionFailedError: as in `set_policy`.
        """
        async with self._turn:
            self._check_generation(over)
            return await self._put_in_force(await self._earlier_policy(generation))

    async def _put_in_force(self, policy: Policy) -> int:
        now = self.snapshot
        beside = await self._build(
            self._sources.merged(),
            policy,
            Generations(now.cards_generation, now.index_generation + 1, now.policy_generation),
        )
        generation = await self._save(policy)
        beside.policy_generation = generation
        self._swap(self._sources, beside)
        return generation

    async def _earlier_policy(self, generation: int | None) -> Policy:
        now = self.snapshot.policy_generation
        if generation is None:
            found = await self._policy_store.policy_before(now)
            if found is None:
                raise NotFoundError(f"there is no policy before generation {now}")
            generation, text = found
        else:
            named = await self._policy_store.policy_of(generation)
            if named is None:
                raise NotFoundError(f"there is no policy of generation {generation}, {now} is in force")
            text = named
        try:
            return Policy.model_validate_json(text)
        except ValidationError as error:
            raise ConflictError(f"the stored policy {generation} is not one of this release: {error}") from None

    def _check_generation(self, over: Collection[int] | None) -> None:
        now = self.snapshot.policy_generation
        if over is not None and now not in over:
            named = ", ".join(map(str, sorted(over))) or "what was named"
            raise PreconditionFailedError(f"the policy in force has generation {now}, not {named}: read it again")

    def _swap(self, sources: _Sources, snapshot: Snapshot) -> None:
        for follow in self.on_swap:
            follow(snapshot)
        self._sources, self.snapshot = sources, snapshot
        self.changed.set()

    def _keys_of(self, namespace: str, agent_id: str, version: str | None) -> list[CardKey]:
        keys = {*self._sources.file, *self._sources.api}
        found = [key for key in keys if key[:2] == (namespace, agent_id) and version in (None, key[2])]
        if not found:
            wanted = f" in version {version}" if version else ""
            raise NotFoundError(f"there is no agent {agent_id!r} in namespace {namespace!r}{wanted}")
        return sorted(found, key=lambda key: order(key[2]))

    async def _rebuilt(self, sources: _Sources) -> Snapshot:
        now = self.snapshot
        generations = Generations(now.cards_generation + 1, now.index_generation + 1, now.policy_generation)
        return await self._build(sources.merged(), now.policy, generations)

    async def _build(self, cards: Sequence[AgentCard], policy: Policy, generations: Generations) -> Snapshot:
        vectors = await self._vectors.of(texts_of(cards))
        snapshot = await asyncio.to_thread(
            assemble, cards, policy, vectors, self._vectors.encoder_id, self._vectors.dim, generations
        )
        await self.on_build(snapshot, cards)
        return snapshot


async def _nothing(_snapshot: Snapshot, _cards: Sequence[AgentCard]) -> None:
    pass


def _without(cards: dict[CardKey, AgentCard], gone: Iterable[CardKey]) -> dict[CardKey, AgentCard]:
    return {key: card for key, card in cards.items() if key not in gone}
