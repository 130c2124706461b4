from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from intent.embedder import OnnxEmbedder, bundled
from intent.fit import fit
from intent.heads import Heads
from intent.intake import MAX_LOOKS, Intake
from intent.normalize import normalize
from intent.parts import LEAST_OF_PART
from intent.readings import N_ALTERNATIVES
from intent.rules import Rules
from intent.split import MAX_PARTS, split
from models.errors import OverloadedError
from models.policy import Confidence, Policy, Rule
from models.ports import Embedded, IntentSource
from models.reading import Certainty, Neighbour, Reading
from router.snapshot import Snapshot
from tests.builders import capability, card, snapshot_of
from tests.intent.fitted import BOTH, Source, heads_of
from tests.intent.labelled import sentences, vectors_of
from tests.intent.several import ROWS, VECTORS, multi, nothing, single
from tests.router.memory_store import CountingEmbedder, WaitingEmbedder, pool_of

T = TypeVar("T")
MINUTE = 60_000.0
UNKNOWN = ("encoder: too many unknown tokens",)
OTHER_LANGUAGE = ("encoder: not made for this language",)
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

        async def embed_and(self, text: str, further: Callable[[Embedded], T], *, wait_ms: float) -> tuple[Embedded, T]:
            self.waits_ms.append(wait_ms)
            return await super().embed_and(text, further, wait_ms=wait_ms)

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
        assert (reading.language, reading.degraded, reading.vector) == ("zh", OTHER_LANGUAGE, None)


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


WISHES = {"cancel my order": ["cancel"], "track my parcel": ["track"], "refund my money": ["refund"]}


async def read_parts(
    utterance: str,
    *rules: Rule,
    exact: Mapping[str, Sequence[str]] = WISHES,
    neighbours: Sequence[Neighbour] = (),
    source: Source | None = None,
    pool: EmbedPool | None = None,
    thresholds: Confidence = Confidence(),  # noqa: B008 - frozen
    wait_ms: float = MINUTE,
) -> Reading:
    """The reading over a source that knows some sentences word for word, and is unsure of all others."""
    with nullcontext(pool) if pool is not None else pool_of() as encoder:
        return await Intake(encoder, Cascade(Calibration())).read(
            utterance,
            source or Source(neighbours, exact),
            rules=Rules(rules),
            namespace="default",
            thresholds=thresholds,
            wait_ms=wait_ms,
        )


def named(reading: Reading) -> list[str | None]:
    """The intents of a reading and its parts."""
    return [reading.intent, *(part.intent for part in reading.parts)]


@pytest.mark.parametrize(
    ("utterance", "intents"),
    [
        ("cancel my order and track my parcel", ["cancel", "track"]),
        ("Track my parcel; then CANCEL my order!", ["track", "cancel"]),
        ("cancel my order and track my parcel and refund my money", ["cancel", "track", "refund"]),
        ("cancel my order and track my parcel and cancel my order", ["cancel", "track"]),
        ("track my parcel, and I thank you very much, and cancel my order", ["track", "cancel"]),
    ],
)
async def test_sure_parts_with_different_intents_are_wishes_of_their_own_in_order(
    utterance: str, intents: list[str]
) -> None:
    known = {**WISHES, "Track my parcel": ["track"], "CANCEL my order!": ["cancel"]}
    reading = await read_parts(utterance, exact=known)
    assert named(reading) == intents
    assert (reading.text, reading.certainty, reading.confidence) == (normalize(utterance), Certainty.SURE, 1.0)
    assert [(part.certainty, part.parts) for part in reading.parts] == [(Certainty.SURE, ())] * (len(intents) - 1)
    assert all(part.text in reading.text for part in reading.parts)


@pytest.mark.parametrize(
    "utterance",
    [
        "cancel my order",
        "cancel my order and cancel my order",
        "cancel my order and something else again",
        "something strange and something else",
    ],
)
async def test_without_two_sure_parts_of_different_intents_the_whole_reading_stands(utterance: str) -> None:
    near = [Neighbour("track", 0.55), Neighbour("refund", 0.54)]
    source, alone = Source(near, WISHES), Source(near, {utterance: WISHES[utterance]} if utterance in WISHES else {})
    reading = await read_parts(utterance, source=source)
    assert reading.parts == ()
    assert reading.intent == ("cancel" if utterance in WISHES else "track")
    assert reading == await read_parts(utterance, source=alone)


async def test_a_sentence_that_stands_on_a_card_is_one_wish() -> None:
    whole = "cancel my order and track my parcel"
    source = Source(exact={**WISHES, whole: ["swap"]})
    reading = await read_parts(whole, source=source)
    assert named(reading) == ["swap"]
    assert source.looked_up == [whole]


@pytest.mark.parametrize(
    ("one", "other", "certainties"),
    [
        (LEAST_OF_PART, 0.5, [Certainty.SURE, Certainty.SURE]),
        (LEAST_OF_PART, 0.3, [Certainty.SURE, Certainty.AMBIGUOUS]),
        (0.3, LEAST_OF_PART, [Certainty.AMBIGUOUS, Certainty.SURE]),
        (LEAST_OF_PART, 0.29, []),
        # the whole is no intent here, so that one piece that may be acted on is enough
        (0.5, 0.3, [Certainty.SURE, Certainty.AMBIGUOUS]),
        (0.49, 0.49, []),
    ],
)
async def test_beside_a_sure_part_a_plausible_one_is_a_wish_too(
    one: float, other: float, certainties: list[Certainty]
) -> None:
    rules = (
        Rule(pattern="^cancel it$", intent="cancel", confidence=one),
        Rule(pattern="^track it$", intent="track", confidence=other),
    )
    reading = await read_parts("cancel it and track it", *rules)
    assert [each.certainty for each in (reading, *reading.parts) if each.intent] == certainties


async def test_there_are_at_most_so_many_parts() -> None:
    wishes = {f"do thing {number}": [f"i{number}"] for number in range(9)}
    source = Source(exact=wishes)
    reading = await read_parts(" and ".join(wishes), source=source)
    # the last part holds all the rest and so is nothing that is known
    assert named(reading) == ["i0", "i1", "i2"][: MAX_PARTS - 1]
    # the last one is the whole sentence's end
    assert len(set(source.looked_up)) == 1 + MAX_PARTS


class LateEmbedder(CountingEmbedder):
    """Takes far too long for any text but the first ones."""

    def __init__(self, n_quick: int) -> None:
        super().__init__()
        self.n_quick = n_quick
        self.may_end = threading.Event()

    def embed(self, text: str) -> Embedded:
        if len(self.asked) >= self.n_quick:
            self.may_end.wait(10)
        return super().embed(text)


async def test_a_part_that_comes_too_late_leaves_the_whole_reading_and_some_time() -> None:
    near = [Neighbour("track", 0.9), Neighbour("refund", 0.2)]
    embedder = LateEmbedder(n_quick=1)
    with pool_of(embedder) as pool:
        started = time.monotonic()
        reading = await read_parts("cancel my order and what is this", neighbours=near, pool=pool, wait_ms=200)
        took_ms = 1000 * (time.monotonic() - started)
        embedder.may_end.set()
    assert (named(reading), reading.certainty) == (["track"], Certainty.SURE)
    assert reading.degraded == ("parts: no time to read them",)
    assert took_ms < 200


async def test_pieces_take_no_longer_than_half_a_second_however_much_time_there_is() -> None:
    embedder = LateEmbedder(n_quick=1)
    with pool_of(embedder) as pool:
        started = time.monotonic()
        reading = await read_parts("cancel my order and what is this", pool=pool, wait_ms=20_000)
        took_s = time.monotonic() - started
        embedder.may_end.set()
    assert reading.degraded == ("parts: no time to read them",)
    assert 0.4 < took_s < 3


async def test_a_second_look_that_comes_too_late_leaves_the_first_one() -> None:
    near = [Neighbour("track", 0.65), Neighbour("refund", 0.6)]
    embedder = LateEmbedder(n_quick=1)
    with pool_of(embedder) as pool:
        reading = await read_parts("what is this 4711", neighbours=near, pool=pool, wait_ms=100)
        embedder.may_end.set()
    assert (reading.intent, reading.certainty) == ("track", Certainty.AMBIGUOUS)
    assert reading.degraded == ("encoder: no time for a second look",)


async def test_a_full_queue_refuses_no_utterance_whose_whole_is_read() -> None:
    class Full(EmbedPool):
        """Has room for one text."""

        n_asked = 0

        async def embed_and(self, text: str, further: Callable[[Embedded], T], *, wait_ms: float) -> tuple[Embedded, T]:
            self.n_asked += 1
            if self.n_asked > 1:
                raise OverloadedError("too many texts wait for the encoder", retry_after_ms=10)
            return await super().embed_and(text, further, wait_ms=wait_ms)

    with Full(CountingEmbedder()) as pool:
        reading = await read_parts("one thing here and another there", pool=pool)
    assert reading.degraded == ("parts: no time to read them",)


@pytest.mark.parametrize("n_pieces", range(1, MAX_PARTS + 2))
async def test_a_sentence_costs_so_many_looks_at_most(n_pieces: int, counting: CountingEmbedder) -> None:
    # each piece and the whole hold a number and mean nothing: a second look at each would be wished for
    sentence = " and ".join(f"thing {number} here" for number in range(n_pieces))
    with pool_of(counting) as pool:
        await read_parts(sentence, pool=pool)
    assert len(counting.asked) <= MAX_LOOKS
    assert set(split(sentence)) <= {sentence, *counting.asked}


async def test_pieces_whose_words_tell_of_nothing_else_are_not_embedded(
    heads: Heads, counting: CountingEmbedder
) -> None:
    reading = await read_with(heads, "please stop and cancel my order, stop the order", counting)
    assert named(reading) == ["cancel_order"]
    assert len(counting.asked) <= 1
    both = await read_with(heads, "please cancel my order, has my refund arrived", counting)
    assert named(both) == ["cancel_order", "refund_status"]


async def test_two_intents_that_could_both_be_acted_on_are_no_silent_pick() -> None:
    rivals = await reading_of([0.9, 0.89], Confidence())
    first, second = Calibration().confidences([0.9, 0.89])
    assert first > second > 0.5
    assert (rivals.certainty, [each.confidence for each in rivals.alternatives]) == (Certainty.AMBIGUOUS, [second])
    # a second one that is less likely than not does not hold the first one up, whatever is accepted
    alone = await reading_of([0.9, 0.7], Confidence(accept=0.1))
    assert (alone.certainty, alone.alternatives[0].confidence > 0.1) == (Certainty.SURE, False)


async def test_the_whole_sentence_says_the_preference_of_all() -> None:
    depth = Rule(pattern="in depth", preference="best")
    reading = await read_parts("cancel my order and track my parcel; all that in depth", depth)
    assert named(reading) == ["cancel", "track"]
    assert reading.preference == "best"


async def test_all_parts_share_one_time_limit() -> None:
    class Slow(DummyEmbedder):
        """Takes 10 ms."""

        def embed(self, text: str) -> Embedded:
            time.sleep(0.01)
            return super().embed(text)

    class NotingPool(EmbedPool):
        """Notes how long each text may take."""

        waits_ms: list[float] = []

        async def embed_and(self, text: str, further: Callable[[Embedded], T], *, wait_ms: float) -> tuple[Embedded, T]:
            self.waits_ms.append(wait_ms)
            return await super().embed_and(text, further, wait_ms=wait_ms)

    with NotingPool(Slow()) as pool:
        await read_parts("one thing here and another there and a third one", pool=pool, wait_ms=5000)
    waits = pool.waits_ms
    assert len(waits) == 4
    assert waits[0] <= 5000
    assert all(before - after >= 10 for before, after in pairwise(waits))


async def test_a_part_that_comes_too_late_is_a_timeout() -> None:
    with WaitingEmbedder() as embedder, pool_of(embedder) as pool:
        with pytest.raises(TimeoutError):
            await read_parts("cancel my order and what is this", pool=pool, wait_ms=5)
        embedder.may_end.set()


REFUND_RULE = Rule(keywords=["money"], intent="refund", confidence=0.9)


async def test_the_intent_of_a_rule_outranks_all_other_stages() -> None:
    known = {"track my money": ["track"], "cancel my order": ["cancel"]}
    source = Source([Neighbour("track", 1.0)], known, intents=["refund"])
    reading = await read_parts("track my money", REFUND_RULE, source=source, wait_ms=0)
    assert (reading.intent, reading.source, reading.confidence) == ("refund", "rule", 0.9)
    assert (reading.certainty, reading.alternatives, reading.vector) == (Certainty.SURE, (), None)
    assert source.looked_up == []


async def test_the_intent_of_a_rule_counts_only_where_it_can_be_read() -> None:
    reading = await read_parts("track my money", REFUND_RULE, exact={"track my money": ["track"]})
    assert (reading.intent, reading.source) == ("track", "lexical")


@pytest.mark.parametrize(
    ("confidence", "certainty"),
    [(0.5, Certainty.SURE), (0.49, Certainty.AMBIGUOUS), (0.3, Certainty.AMBIGUOUS), (0.29, Certainty.OUT_OF_SCOPE)],
)
async def test_the_confidence_of_a_rule_meets_the_same_thresholds(confidence: float, certainty: Certainty) -> None:
    rule = Rule(pattern="money", intent="refund", confidence=confidence)
    reading = await read_parts("it costs money", rule, exact=WISHES)
    assert (reading.intent, reading.certainty) == ("refund", certainty)


async def test_a_rule_for_the_whole_sentence_is_not_lost_over_its_parts() -> None:
    swap = Rule(pattern="cancel.*track", intent="swap")
    source = Source(exact=WISHES, intents=["swap"])
    assert named(await read_parts("cancel my order and track my parcel", swap, source=source)) == ["swap"]
    # one that also holds for a part leaves the other parts their own meaning
    cancel = Rule(pattern="cancel", intent="swap")
    assert named(await read_parts("cancel my order and track my parcel", cancel, source=source)) == ["swap", "track"]


FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)} | {0x20: 0x3000}
TRADITIONAL = str.maketrans("请订单里", "請訂單裡")
EXAMPLES = [(example, each.intent) for each in BOTH.capabilities for example in each.examples]


@pytest.fixture(scope="module")
def heads() -> Heads:
    return heads_of(BOTH)


async def read_with(heads: Heads, utterance: str, embedder: CountingEmbedder) -> Reading:
    cascade = Cascade(Calibration())
    cascade.use(heads)
    with pool_of(embedder) as pool:
        return await read(Intake(pool, cascade), snapshot_of([BOTH]), utterance)


@pytest.mark.parametrize(("example", "intent"), EXAMPLES)
async def test_the_spelling_of_an_example_does_not_change_the_reading(
    heads: Heads, counting: CountingEmbedder, example: str, intent: str
) -> None:
    spellings = {
        "upper case": example.upper(),
        "title case": example.title(),
        "no blanks": example.replace(" ", ""),
        "more blanks": f"  {'   '.join(example)} ",
        "full width": example.translate(FULL_WIDTH),
        "traditional": example.translate(TRADITIONAL),
        "marks": f"“{example}！！”",
        "zero width": "\u200b".join(example),
    }
    for name, spelling in spellings.items():
        reading = await read_with(heads, spelling, counting)
        assert (reading.intent, reading.confidence, reading.certainty) == (intent, 1.0, Certainty.SURE), name
    assert counting.asked == []


async def test_words_that_are_sure_need_no_encoder(heads: Heads, counting: CountingEmbedder) -> None:
    reading = await read_with(heads, "could you please cancel my order", counting)
    assert (reading.intent, reading.source, reading.vector) == ("cancel_order", "lexical", None)
    assert reading.confidence >= heads.early
    assert counting.asked == []
    unsure = await read_with(heads, "the order of things in my parcel", counting)
    assert (unsure.source, counting.asked) == ("semantic", ["the order of things in my parcel"])


@pytest.mark.parametrize(
    ("utterance", "intent", "certainty"),
    [
        ("帮我取消订单", "cancel_order", Certainty.SURE),
        ("幫我取消訂單", "cancel_order", Certainty.SURE),
        ("查一下我的包裹现在在哪里", "track_parcel", Certainty.SURE),
        ("今天天气怎么样", None, Certainty.OUT_OF_SCOPE),
    ],
)
async def test_what_the_encoder_does_not_know_is_read_by_its_words(
    heads: Heads, counting: CountingEmbedder, utterance: str, intent: str | None, certainty: Certainty
) -> None:
    reading = await read_with(heads, utterance, counting)
    assert (reading.certainty, reading.source, reading.vector) == (certainty, "lexical", None)
    assert (reading.language, reading.degraded) == ("zh", UNKNOWN)
    if intent is not None:
        assert reading.intent == intent


async def test_chinese_wishes_come_apart_too(heads: Heads, counting: CountingEmbedder) -> None:
    reading = await read_with(heads, "幫我取消訂單，然后查一下我的包裹在哪里", counting)
    assert named(reading) == ["cancel_order", "track_parcel"]


async def test_half_a_surrogate_pair_is_a_blank_to_every_stage(heads: Heads, counting: CountingEmbedder) -> None:
    one = await read_with(heads, "请取消\ud800我的订单", counting)
    assert (one.intent, one.confidence, one.text) == ("cancel_order", 1.0, "请取消 我的订单")
    ruled = await read_parts("give me \udfff money", REFUND_RULE, source=Source(intents=["refund"]))
    assert (ruled.intent, ruled.text) == ("refund", "give me money")


def several_of(heads: Heads) -> tuple[Cascade, Source]:
    """A cascade of heads, and a source of all their intents that knows no text word for word."""
    cascade = Cascade(Calibration())
    cascade.use(heads)
    return cascade, Source(intents=heads.labels)


@pytest.fixture(scope="module")
def knowing_several() -> Heads:
    """Heads fitted on texts of which many mean several intents."""
    return fit(single(ROWS), VECTORS, out_of_scope=nothing(ROWS), multi=multi(ROWS))


@pytest.mark.parametrize(
    ("utterance", "intents"),
    [
        ("please cancel the parcel right away", ["cancel", "parcel", "urgent"]),
        ("the invoice, send it next week", ["invoice", "send", "later"]),
        ("could you check it", ["check"]),
    ],
)
async def test_an_undivided_sentence_may_mean_several_intents_in_order(
    knowing_several: Heads, counting: CountingEmbedder, utterance: str, intents: list[str]
) -> None:
    cascade, source = several_of(knowing_several)
    with pool_of(counting) as pool:
        reading = await read(Intake(pool, cascade), snapshot_of([]), utterance, source=source)
    assert named(reading) == intents
    assert all(each.certainty is Certainty.SURE and each.text == utterance for each in (reading, *reading.parts))
    assert len(counting.asked) == 1


async def test_each_of_several_intents_meets_the_thresholds_by_itself(
    knowing_several: Heads, counting: CountingEmbedder
) -> None:
    cascade, source = several_of(knowing_several)
    utterance = "please cancel the parcel right away"
    with pool_of(counting) as pool:
        intake = Intake(pool, cascade)
        reading = await read(intake, snapshot_of([]), utterance, source=source)
        confidences = {each.intent: each.confidence for each in (reading, *reading.parts)}
        middle = sorted(confidences.values())[1]
        strict = Confidence(accept=middle, plausible=0.3)
        asked = await read(intake, snapshot_of([]), utterance, source=source, thresholds=strict)
    for each in (asked, *asked.parts):
        expected = Certainty.SURE if confidences[each.intent] >= middle else Certainty.AMBIGUOUS
        assert each.certainty is expected


async def test_only_intents_of_the_source_are_among_several(knowing_several: Heads, counting: CountingEmbedder) -> None:
    cascade, _ = several_of(knowing_several)
    with pool_of(counting) as pool:
        reading = await read(
            Intake(pool, cascade),
            snapshot_of([]),
            "please cancel the parcel right away",
            source=Source(intents=("cancel", "urgent")),
        )
    assert named(reading) == ["cancel", "urgent"]


async def test_a_sentence_without_joints_that_wants_two_things_is_no_silent_pick(counting: CountingEmbedder) -> None:
    rows = sentences()
    heads = fit(rows, vectors_of(row.text for row in rows))
    cascade, source = several_of(heads)
    sentence = "please cancel the parcel now send the invoice"
    with pool_of(counting) as pool:
        intake = Intake(pool, cascade)
        whole = await read(intake, snapshot_of([]), sentence, source=source)
        assert whole.certainty is not Certainty.SURE
        # even where so little is asked for that one of the two would be acted on
        lax = Confidence(accept=whole.confidence, plausible=whole.confidence)
        two = await read(intake, snapshot_of([]), sentence, source=source, thresholds=lax)
        one = await read(intake, snapshot_of([]), "please cancel the parcel for me right away", source=source)
    assert two.certainty is Certainty.AMBIGUOUS
    assert {"cancel_parcel", "send_invoice"} <= {two.intent, *(each.intent for each in two.alternatives)}
    assert (one.intent, one.certainty, one.parts) == ("cancel_parcel", Certainty.SURE, ())
