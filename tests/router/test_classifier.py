from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.embed_pool import EmbedPool
from intent.fitter import FitError
from intent.heads import Heads
from intent.model_folder import read_manifest
from models.card import AgentCard
from models.policy import Confidence
from router.card_vectors import CardVectors
from router.classifier import Classifier, examples_of
from router.readiness import Readiness
from router.registry import Registry
from router.snapshot import Snapshot
from tests.builders import FakeClock, capability, card, snapshot_of
from tests.intent.fitted import BOTH
from tests.router.memory_store import CountingEmbedder, MemoryStore, pool_of
from tests.router.waiting import eventually

GIFTS = card("gifts", capability("gift_card", ["buy a gift card", "a voucher for my friend"]))
MINUTE_S = 60.0
NO_TIME_S = 0.001
"""No process is done in this time: whoever gets by with it has fitted nothing."""


class Bench:
    """A registry, the classifier that follows it, and what both hand on."""

    def __init__(self, pool: EmbedPool, folder: Path | None, timeout_s: float, retry_s: float = MINUTE_S) -> None:
        self.kept: list[tuple[Heads | None, Heads | None]] = []
        store = MemoryStore()
        vectors = CardVectors(pool, store)
        self.folder = folder
        self.cascade = Cascade(Calibration())
        self.readiness = Readiness()
        self.registry = Registry(vectors, store, store, FakeClock())
        self.classifier = Classifier(
            self.registry, vectors, self.cascade, folder=folder, timeout_s=timeout_s, retry_s=retry_s, keep=self.keep
        )

    async def keep(self, heads: Heads | None) -> None:
        """Note new heads, and those in force meanwhile."""
        self.kept.append((heads, self.cascade.heads))

    @property
    def snapshot(self) -> Snapshot:
        return self.registry.snapshot

    @property
    def written(self) -> int:
        """When the kept folder was written; a copy keeps it."""
        assert self.folder is not None
        return (self.folder / "manifest.json").stat().st_mtime_ns

    def named(self, text: str) -> str | None:
        """What the words of a text mean to the heads; None where there are none."""
        verdict = self.cascade.by_words(text, self.snapshot.scope(("default",)), Confidence(), alone=True)
        return verdict.found[0].intent if verdict.found else None


@pytest.fixture
def pool() -> Iterator[EmbedPool]:
    with pool_of() as pool:
        yield pool


async def bench_of(
    pool: EmbedPool,
    *cards: AgentCard,
    folder: Path | None = None,
    timeout_s: float = MINUTE_S,
    retry_s: float = MINUTE_S,
) -> Bench:
    bench = Bench(pool, folder, timeout_s, retry_s)
    await bench.registry.start(cards, None)
    return bench


@pytest.fixture(scope="module")
def fitted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a first start with the shop's cards leaves."""
    folder = tmp_path_factory.mktemp("first") / "classifiers"

    async def start() -> None:
        with pool_of() as pool:
            bench = await bench_of(pool, BOTH, folder=folder)
            assert bench.named("cancel order") is None
            await bench.classifier.catch_up()
            assert bench.cascade.generation == 1
            assert bench.named("cancel order") == "cancel_order"
            # the same cards again are nothing to do
            written = bench.written
            await bench.classifier.catch_up()
            await bench.registry.replace_files([BOTH, card("off", enabled=False)])
            await bench.classifier.catch_up()
            assert (bench.cascade.generation, bench.written) == (1, written)

    asyncio.run(start())
    return folder


@pytest.fixture
def kept(fitted_once: Path, tmp_path: Path) -> Path:
    """A copy that a test may do as it likes with."""
    return Path(shutil.copytree(fitted_once, tmp_path / "classifiers"))


def test_the_first_heads_are_fitted_and_kept_and_the_same_cards_fit_nothing_again(fitted_once: Path) -> None:
    assert (fitted_once / "manifest.json").exists()
    assert [path.name for path in fitted_once.parent.iterdir()] == ["classifiers"]


async def test_a_restart_with_the_same_cards_loads_and_fits_nothing(pool: EmbedPool, kept: Path) -> None:
    bench = await bench_of(pool, BOTH, folder=kept, timeout_s=NO_TIME_S)
    written = bench.written
    await bench.classifier.catch_up()
    assert (bench.named("cancel order"), bench.cascade.generation) == ("cancel_order", 1)
    assert bench.written == written


async def test_heads_are_handed_on_under_their_digest_before_they_are_in_force(pool: EmbedPool, kept: Path) -> None:
    bench = await bench_of(pool, BOTH, folder=kept, timeout_s=NO_TIME_S)
    await bench.classifier.catch_up()
    [(heads, before)] = bench.kept
    assert (heads, before) == (bench.cascade.heads, None)
    assert heads is not None
    assert heads.digest == read_manifest(kept).digest


async def test_a_restart_with_other_cards_does_not_take_the_kept_heads(pool: EmbedPool, kept: Path) -> None:
    bench = await bench_of(pool, BOTH, GIFTS, folder=kept, timeout_s=NO_TIME_S)
    with pytest.raises(FitError):
        await bench.classifier.catch_up()
    assert bench.named("gift card") is None


async def test_heads_for_another_encoder_are_not_taken(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pool_of(CountingEmbedder("another")) as pool:
        bench = await bench_of(pool, BOTH, folder=kept, timeout_s=NO_TIME_S)
        with pytest.raises(FitError):
            await bench.classifier.catch_up()
    assert "encoder" in caplog.text


async def test_a_damaged_folder_is_fitted_anew_with_a_warning(
    pool: EmbedPool, kept: Path, caplog: pytest.LogCaptureFixture
) -> None:
    arrays = kept / "arrays.npz"
    content = bytearray(arrays.read_bytes())
    content[len(content) // 2] ^= 1
    arrays.write_bytes(content)
    bench = await bench_of(pool, BOTH, folder=kept)
    await bench.classifier.catch_up()
    assert bench.named("cancel order") == "cancel_order"
    assert [record.levelname for record in caplog.records if "fitted anew" in record.message] == ["WARNING"]
    again = await bench_of(pool, BOTH, folder=kept, timeout_s=NO_TIME_S)
    await again.classifier.catch_up()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[1, 2"])
async def test_a_manifest_that_is_none_is_as_good_as_no_folder(pool: EmbedPool, kept: Path, content: bytes) -> None:
    (kept / "manifest.json").write_bytes(content)
    bench = await bench_of(pool, BOTH, folder=kept, timeout_s=NO_TIME_S)
    with pytest.raises(FitError):
        await bench.classifier.catch_up()


async def test_after_a_change_of_the_cards_new_intents_are_known_and_until_then_the_old_heads_serve(
    pool: EmbedPool, kept: Path
) -> None:
    bench = await bench_of(pool, BOTH, folder=kept)
    await bench.classifier.catch_up()
    running = asyncio.create_task(bench.classifier.run(bench.readiness))
    try:
        await bench.registry.put(GIFTS)
        await eventually(lambda: not bench.registry.changed.is_set())
        # the fit is under way
        assert (bench.named("cancel order"), bench.cascade.generation) == ("cancel_order", 1)
        assert bench.cascade.wants_neighbours(bench.snapshot.scope(("default",)))
        await eventually(lambda: bench.named("a gift card") == "gift_card", within_s=MINUTE_S)
        assert bench.named("cancel order") == "cancel_order"
        assert bench.cascade.generation == 2
    finally:
        running.cancel()


async def test_fewer_than_two_intents_leave_everything_to_the_neighbours(pool: EmbedPool, kept: Path) -> None:
    bench = await bench_of(pool, BOTH, folder=kept, timeout_s=NO_TIME_S)
    await bench.classifier.catch_up()
    for cards in ([GIFTS], []):
        await bench.registry.replace_files(cards)
        await bench.classifier.catch_up()
        assert bench.named("cancel order") is None
        assert bench.cascade.wants_neighbours(bench.snapshot.scope(("default",)))
    assert bench.cascade.generation == 3


async def test_a_failed_fit_is_shown_until_it_is_made_good_and_is_tried_again(pool: EmbedPool, kept: Path) -> None:
    away = kept.with_name("away")
    shutil.move(kept, away)
    bench = await bench_of(pool, BOTH, folder=kept, timeout_s=NO_TIME_S, retry_s=0.05)
    await bench.classifier.try_to_catch_up(bench.readiness)
    assert list(bench.readiness.problems) == ["classifier"]
    assert "longer than 0 s" in bench.readiness.problems["classifier"]
    running = asyncio.create_task(bench.classifier.run(bench.readiness))
    try:
        # no card changes, and no fit can succeed; what another process kept can be loaded
        shutil.move(away, kept)
        await eventually(lambda: bench.named("cancel order") == "cancel_order")
        await eventually(lambda: bench.readiness.problems == {})
    finally:
        running.cancel()


async def test_a_failed_fit_leaves_the_old_heads_in_force(pool: EmbedPool, kept: Path) -> None:
    bench = await bench_of(pool, BOTH, folder=kept, timeout_s=NO_TIME_S)
    await bench.classifier.catch_up()
    await bench.registry.put(GIFTS)
    with pytest.raises(FitError):
        await bench.classifier.catch_up()
    assert (bench.named("cancel order"), bench.cascade.generation) == ("cancel_order", 1)


def test_examples_are_the_distinct_texts_of_routable_capabilities_and_the_names_of_intents() -> None:
    twice = card("other", capability("gift_card", ["buy a gift card", "BUY  a gift card"], description="Sells cards."))
    off = card("off", capability("off", ["switched off"]), enabled=False)
    assert examples_of(snapshot_of([GIFTS, twice, off])) == [
        ("BUY a gift card", "gift_card"),
        ("Sells cards.", "gift_card"),
        ("a voucher for my friend", "gift_card"),
        ("buy a gift card", "gift_card"),
        ("gift card", "gift_card"),
    ]


def test_examples_do_not_depend_on_the_order_of_the_cards() -> None:
    assert examples_of(snapshot_of([GIFTS, BOTH])) == examples_of(snapshot_of([BOTH, GIFTS]))


async def test_cards_in_languages_that_the_encoder_was_not_made_for_get_heads_without_vectors() -> None:
    german = card(
        "laden",
        capability("paket", ["wo ist denn mein Paket", "wann kommt die Lieferung an"]),
        capability("storno", ["ich möchte meine Bestellung stornieren", "bitte den Auftrag zurückziehen"]),
    )
    embedder = CountingEmbedder()
    embedder.languages = frozenset({"en"})
    with pool_of(embedder) as own:
        bench = await bench_of(own, german)
        await bench.classifier.catch_up()
        assert bench.cascade.is_lexical
        assert bench.named("wo bleibt mein Paket") == "paket"
        await bench.registry.replace_files([german, BOTH])
        await bench.classifier.catch_up()
        assert not bench.cascade.is_lexical
