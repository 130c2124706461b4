from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from intent.embedder import OnnxEmbedder, bundled
from intent.intake import N_ALTERNATIVES, Intake
from intent.normalize import normalize
from models.errors import OverloadedError
from models.policy import Confidence, Policy, Rule
from models.ports import Embedded, IntentSource
from models.reading import Certainty, Neighbour, Reading
from router.snapshot import Snapshot
from tests.builders import capability, card, snapshot_of
from tests.router.memory_store import CountingEmbedder, WaitingEmbedder, pool_of

MINUTE = 60_000.0
UNKNOWN = ("encoder: too many unknown tokens",)
SHOP = [
    card(
        "shop",
        capability("cancel_order", ["please cancel my order", "stop the order I placed", "请取消我的订单"]),
        capability("track_parcel", ["where is my parcel", "Has it shipped?"], description="Tells where a delivery is."),
        capability("refund_status", ["has my refund arrived", "when do I get my money back"]),
        capability("repeat", ["the same again", "Where is MY parcel!"]),
    )
]


@pytest.fixture(scope="module")
def encoder() -> OnnxEmbedder:
    return bundled()


@pytest.fixture(scope="module")
def shop(encoder: OnnxEmbedder) -> Snapshot:
    """The shop without `repeat`, read by the real encoder."""
    [one] = SHOP
    return snapshot_of([one.model_copy(update={"capabilities": one.capabilities[:3]})], None, encoder)


@pytest.fixture
def real(encoder: OnnxEmbedder) -> Iterator[Intake]:
    with pool_of(encoder) as pool:
        yield Intake(pool, Cascade(Calibration()))


@pytest.fixture
def counting() -> CountingEmbedder:
    """The dummy encoder that keeps what it was asked."""
    return CountingEmbedder()


async def read(
    intake: Intake,
    snapshot: Snapshot,
    utterance: str,
    *,
    source: IntentSource | None = None,
    wait_ms: float = MINUTE,
    thresholds: Confidence = Confidence(),  # noqa: B008 - frozen
) -> Reading:
    return await intake.read(
        utterance,
        snapshot.scope(("default",)) if source is None else source,
        rules=snapshot.rules,
        namespace="default",
        thresholds=thresholds,
        wait_ms=wait_ms,
    )


async def read_by(embedder: CountingEmbedder, utterance: str, policy: Policy | None = None) -> Reading:
    """The reading over the whole shop by a dummy encoder."""
    with pool_of(embedder) as pool:
        return await read(Intake(pool, Cascade(Calibration())), snapshot_of(SHOP, policy, embedder), utterance)


def asked_for(embedder: CountingEmbedder, utterance: str) -> int:
    """How often the encoder was asked for the utterance; examples of cards count too."""
    return embedder.asked.count(utterance)


class Source:
    """An `IntentSource` with fixed answers."""

    def __init__(self, neighbours: Sequence[Neighbour], n_rows: int = 100) -> None:
        self.n_rows = n_rows
        self.wanted: list[int] = []
        self._neighbours = neighbours
        self.intents = frozenset(neighbour.intent for neighbour in neighbours)

    def exact(self, text: str) -> Sequence[str]:
        return ()

    def neighbours(self, vector: bytes, n_intents: int) -> Sequence[Neighbour]:
        self.wanted.append(n_intents)
        return self._neighbours[:n_intents]


async def reading_of(similarities: Sequence[float], thresholds: Confidence, utterance: str = "hello there") -> Reading:
    """The reading of neighbours i0, i1, … with these similarities."""
    source = Source([Neighbour(f"i{number}", similarity) for number, similarity in enumerate(similarities)])
    with pool_of() as pool:
        return await read(
            Intake(pool, Cascade(Calibration())), snapshot_of([]), utterance, source=source, thresholds=thresholds
        )


@pytest.mark.parametrize(
    "utterance",
    [
        "please cancel my order",
        "Please CANCEL my order!!",
        "  “please cancel my order” ",
        "ｐｌｅａｓｅ　ｃａｎｃｅｌ　ｍｙ　ｏｒｄｅｒ！",
        "please\u200b cancel my order?!",
        "请取消我的订单",
        "请取消我的订单！！",
    ],
)
async def test_an_example_word_for_word_is_certain_and_needs_no_encoder(
    utterance: str, counting: CountingEmbedder
) -> None:
    reading = await read_by(counting, utterance)
    assert (reading.intent, reading.certainty, reading.confidence) == ("cancel_order", Certainty.SURE, 1.0)
    assert (reading.source, reading.alternatives, reading.vector) == ("lexical", (), None)
    assert reading.text == normalize(utterance)


async def test_an_exact_text_is_read_without_asking_the_encoder() -> None:
    with WaitingEmbedder() as embedder, pool_of(embedder) as pool:
        reading = await read(Intake(pool, Cascade(Calibration())), snapshot_of(SHOP), "Has it shipped", wait_ms=0)
        assert reading.intent == "track_parcel"
        embedder.may_end.set()


async def test_a_text_that_stands_under_two_intents_is_ambiguous_between_them(counting: CountingEmbedder) -> None:
    reading = await read_by(counting, "where is my parcel?")
    assert reading.certainty is Certainty.AMBIGUOUS
    assert (reading.intent, reading.confidence, reading.source) == ("repeat", 0.5, "lexical")
    assert [(other.intent, other.confidence) for other in reading.alternatives] == [("track_parcel", 0.5)]


async def test_a_rule_reads_the_preference_whatever_the_stage(counting: CountingEmbedder) -> None:
    policy = Policy(rules=[Rule(pattern="thorough|please", preference="best")])
    assert (await read_by(counting, "please cancel my order", policy)).preference == "best"
    assert (await read_by(counting, "a thorough look at my refund", policy)).preference == "best"
    assert (await read_by(counting, "我要一份 thorough 的分析报告谢谢", policy)).preference == "best"
    assert (await read_by(counting, "has my refund arrived", policy)).preference is None


@pytest.mark.parametrize(
    ("best", "certainty"),
    [(0.8, Certainty.SURE), (0.65, Certainty.AMBIGUOUS), (0.1, Certainty.OUT_OF_SCOPE)],
)
async def test_the_thresholds_divide_sure_from_ambiguous_from_out_of_scope(best: float, certainty: Certainty) -> None:
    thresholds = Confidence(accept=0.6, plausible=0.2)
    reading = await reading_of([best, best - 0.05], thresholds)
    assert reading.certainty is certainty
    # whatever the certainty, the best reading is named
    assert reading.intent == "i0"
    assert reading.confidence == Calibration().confidences([best, best - 0.05])[0]


async def test_a_confidence_at_a_threshold_reaches_it() -> None:
    [confidence, _] = Calibration().confidences([0.6, 0.5])
    at = await reading_of([0.6, 0.5], Confidence(accept=confidence, plausible=0.1))
    assert at.certainty is Certainty.SURE
    below = await reading_of([0.6, 0.5], Confidence(accept=1.0, plausible=confidence))
    assert below.certainty is Certainty.AMBIGUOUS


async def test_alternatives_come_best_first_with_confidences_of_their_own() -> None:
    similarities = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    reading = await reading_of(similarities, Confidence())
    confidences = Calibration().confidences(similarities[: N_ALTERNATIVES + 1])
    assert [other.intent for other in reading.alternatives] == ["i1", "i2", "i3", "i4", "i5"]
    assert [other.confidence for other in reading.alternatives] == confidences[1:]


async def test_a_large_index_is_searched_off_the_event_loop_with_the_same_answer() -> None:
    found = [Neighbour("i0", 0.9), Neighbour("i1", 0.3)]
    with pool_of() as pool:
        intake = Intake(pool, Cascade(Calibration()), inline_rows=10)
        small = await read(intake, snapshot_of([]), "hello there", source=Source(found, n_rows=10))
        large = await read(intake, snapshot_of([]), "hello there", source=Source(found, n_rows=11))
    assert small == large
    assert small.intent == "i0"


async def test_over_no_intents_there_is_no_reading_and_nothing_was_left_out() -> None:
    reading = await reading_of([], Confidence())
    assert (reading.intent, reading.certainty, reading.confidence) == (None, Certainty.OUT_OF_SCOPE, 0.0)
    assert reading.degraded == ()


@pytest.mark.parametrize(
    "utterance",
    [
        "please cancel my order 4711",
        "please cancel my order A-4711",
        "please cancel my order #99817/2026",
        "cancel order 123456",
        "please cancel my order 😡",
        "cancel my order😡😡",
    ],
)
async def test_an_id_or_an_emoji_does_not_hide_the_intent(real: Intake, shop: Snapshot, utterance: str) -> None:
    reading = await read(real, shop, utterance)
    assert (reading.intent, reading.certainty) == ("cancel_order", Certainty.SURE)
    assert reading.text == normalize(utterance)
    assert reading.source == "semantic"


async def test_an_amount_does_not_hide_the_intent(real: Intake, shop: Snapshot) -> None:
    reading = await read(real, shop, "has my refund over $988.50 for A-1042 arrived")
    assert (reading.intent, reading.certainty) == ("refund_status", Certainty.SURE)


async def test_the_second_look_is_taken_only_where_the_first_was_not_sure(counting: CountingEmbedder) -> None:
    sure = await read_by(counting, "please cancel my order and 1")
    assert sure.certainty is Certainty.SURE
    assert asked_for(counting, "please cancel my order and") == 0
    unsure = await read_by(counting, "zzz qqq 4711")
    assert unsure.certainty is Certainty.OUT_OF_SCOPE
    assert asked_for(counting, "zzz qqq") == 1


async def test_the_second_look_counts_only_if_it_is_surer() -> None:
    class Numbers(CountingEmbedder):
        """Knows a text only with its number."""

        def embed(self, text: str) -> Embedded:
            known = super().embed("aaa" if "7" in text else "zzz")
            return Embedded(known.vector, 0.0)

    one = card("a", capability("a", ["7"]), capability("b", ["something else"]))
    with pool_of(Numbers()) as pool:
        snapshot = snapshot_of([one], None, Numbers())
        reading = await read(
            Intake(pool, Cascade(Calibration())),
            snapshot,
            "route 7 now",
            thresholds=Confidence(accept=1.0, plausible=0.0),
        )
    assert reading.intent == "a"
    assert reading.vector == Numbers().embed("7").vector


async def test_both_looks_share_one_time_limit() -> None:
    class Slow(DummyEmbedder):
        """Takes 20 ms."""

        def embed(self, text: str) -> Embedded:
            time.sleep(0.02)
            return super().embed(text)

    class NotingPool(EmbedPool):
        """Notes how long each text may take."""

        waits_ms: list[float] = []

        async def embed(self, text: str, *, wait_ms: float) -> Embedded:
            self.waits_ms.append(wait_ms)
            return await super().embed(text, wait_ms=wait_ms)

    with NotingPool(Slow()) as pool:
        await read(Intake(pool, Cascade(Calibration())), snapshot_of(SHOP), "zzz qqq 4711", wait_ms=1000)
    first_ms, second_ms = pool.waits_ms
    assert first_ms - second_ms >= 20
    assert first_ms <= 1000


async def test_an_encoder_that_does_not_answer_in_time_is_a_timeout() -> None:
    with WaitingEmbedder() as embedder, pool_of(embedder) as pool:
        with pytest.raises(TimeoutError):
            await read(Intake(pool, Cascade(Calibration())), snapshot_of(SHOP), "where did it go", wait_ms=5)
        embedder.may_end.set()


async def test_a_full_queue_refuses_the_utterance() -> None:
    with WaitingEmbedder() as embedder, pool_of(embedder, max_waiting=1) as pool:
        intake, snapshot = Intake(pool, Cascade(Calibration())), snapshot_of(SHOP)
        waiting = asyncio.create_task(read(intake, snapshot, "where did it go"))
        await asyncio.to_thread(embedder.begun.acquire)
        with pytest.raises(OverloadedError):
            await read(intake, snapshot, "and where is the other one")
        assert (await read(intake, snapshot, "please cancel my order")).intent == "cancel_order"
        embedder.may_end.set()
        assert (await waiting).text == "where did it go"


async def test_chinese_that_is_no_example_is_out_of_scope_and_says_why(real: Intake, shop: Snapshot) -> None:
    for utterance in ("帮我查一下快递到哪里了", "我的订单什么时候发货", "订单4711怎么还没到"):
        reading = await read(real, shop, utterance)
        assert (reading.intent, reading.certainty, reading.confidence) == (None, Certainty.OUT_OF_SCOPE, 0.0)
        assert (reading.language, reading.degraded, reading.vector) == ("zh", UNKNOWN, None)


async def test_chinese_that_is_an_example_is_read(real: Intake, shop: Snapshot) -> None:
    reading = await read(real, shop, "请取消我的订单。")
    assert (reading.intent, reading.confidence, reading.degraded, reading.language) == ("cancel_order", 1.0, (), "zh")


@pytest.mark.parametrize(
    "utterance", ["😀", "👩\u200d👩\u200d👧 🇪🇺", "   \t\n", "\u200b\u2066", "?!...", "$ # %", "\u3000"]
)
async def test_what_holds_no_word_is_out_of_scope_and_never_reaches_the_encoder(utterance: str) -> None:
    with WaitingEmbedder() as embedder, pool_of(embedder) as pool:
        reading = await read(Intake(pool, Cascade(Calibration())), snapshot_of(SHOP), utterance, wait_ms=0)
        assert (reading.intent, reading.certainty, reading.confidence) == (None, Certainty.OUT_OF_SCOPE, 0.0)
        assert (reading.language, reading.degraded, reading.vector) == ("und", (), None)
        embedder.may_end.set()


@pytest.mark.parametrize(
    ("utterance", "intent", "certainty"),
    [
        ("please cancel my order " * 4500, "cancel_order", Certainty.SURE),
        ("please cancel my order " + "x" * 100_000, "cancel_order", Certainty.SURE),
        ("x" * 100_000, None, Certainty.OUT_OF_SCOPE),
        ("order " * 17_000, "cancel_order", None),
        ("7" * 100_000, None, Certainty.OUT_OF_SCOPE),
        ("我要" * 16_000, None, Certainty.OUT_OF_SCOPE),
        ("cancel my order مرحبا привет", "cancel_order", None),
        ("я хочу cancel", None, None),
        ("cancel 我的订单 please 谢谢你们", None, Certainty.OUT_OF_SCOPE),
        ("what is the weather on mars", None, Certainty.OUT_OF_SCOPE),
        ("lone \ud800 surrogate", None, Certainty.OUT_OF_SCOPE),
    ],
)
async def test_strange_utterances_have_a_reading(
    real: Intake, shop: Snapshot, utterance: str, intent: str | None, certainty: Certainty | None
) -> None:
    reading = await read(real, shop, utterance)
    if intent is not None:
        assert reading.intent == intent
    if certainty is not None:
        assert reading.certainty is certainty
    assert 0 <= reading.confidence <= 1
    assert reading.text == normalize(utterance)
    assert reading.source == "semantic"


@settings(
    max_examples=150, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(utterance=st.text(st.one_of(st.characters(), st.sampled_from(list(" 47#$?!😀我订е"))), max_size=40))
def test_every_utterance_has_a_reading(encoder: OnnxEmbedder, shop: Snapshot, utterance: str) -> None:
    async def once() -> Reading:
        with pool_of(encoder) as pool:
            return await read(Intake(pool, Cascade(Calibration())), shop, utterance)

    reading = asyncio.run(once())
    assert reading.intent is not None or reading.certainty is Certainty.OUT_OF_SCOPE
    assert 0 <= reading.confidence <= 1


async def test_rereading_reads_the_same_utterance_over_other_intents(counting: CountingEmbedder) -> None:
    snapshot = snapshot_of(SHOP, None, counting)
    with pool_of(counting) as pool:
        intake = Intake(pool, Cascade(Calibration()))
        first = await read(intake, snapshot, "cancel the order please now")
        assert first.intent == "cancel_order"
        others = [entry for entry in snapshot.entries if entry.capability.intent != "cancel_order"]
        n_asked = len(counting.asked)
        again = await intake.reread(first, snapshot.scope_of(others))
    assert len(counting.asked) == n_asked
    assert again.text == first.text
    assert again.vector == first.vector
    assert again.intent is not None
    assert "cancel_order" not in {again.intent, *(other.intent for other in again.alternatives)}


async def test_what_was_read_without_a_vector_cannot_be_read_again(counting: CountingEmbedder) -> None:
    with EmbedPool(counting) as pool:
        intake, snapshot = Intake(pool, Cascade(Calibration())), snapshot_of(SHOP, None, counting)
        reading = await read(intake, snapshot, "please cancel my order")
        assert await intake.reread(reading, snapshot.scope(("default",))) is reading
