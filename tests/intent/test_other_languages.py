"""Utterances in languages that the bundled encoder was not made for, over cards in English, German and Chinese."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.embedder import OnnxEmbedder, bundled
from intent.fit import Example, fit
from intent.heads import Heads
from intent.intake import Intake
from intent.language import are_mostly_others
from models.card import AgentCard
from models.policy import Confidence
from models.ports import Embedded
from models.reading import Certainty, Reading
from router.classifier import examples_of
from router.snapshot import Snapshot
from tests.builders import capability, card, snapshot_of
from tests.router.memory_store import CountingEmbedder, pool_of

OTHER_LANGUAGE = ("encoder: not made for this language",)

ENGLISH = card(
    "shop",
    capability(
        "cancel_order",
        [
            "please cancel my order",
            "stop the order I placed",
            "I no longer want the desk, call it off",
            "undo my purchase",
        ],
        description="Cancels orders that have not been shipped.",
    ),
    capability(
        "track_parcel",
        ["where is my parcel", "when does my delivery arrive", "has it shipped yet", "track the package"],
        description="Tells where a delivery is.",
    ),
    capability(
        "refund_status",
        [
            "has my refund arrived",
            "when do I get my money back",
            "I still wait for my refund",
            "is the repayment under way",
        ],
        description="Tells how far a refund is.",
    ),
)
GERMAN = card(
    "laden",
    capability(
        "bestellung_stornieren",
        [
            "bitte storniere meine Bestellung",
            "ich möchte den Auftrag zurückziehen",
            "Bestellung von gestern stornieren",
        ],
        description="Storniert Bestellungen, die noch nicht versandt sind.",
    ),
    capability(
        "paket_verfolgen",
        ["wo ist mein Paket", "wann kommt meine Lieferung an", "ist die Sendung schon unterwegs"],
        description="Sagt, wo eine Lieferung gerade ist.",
    ),
    capability(
        "erstattung",
        ["ist mein Geld schon zurück", "wann bekomme ich die Erstattung", "ich warte auf meine Rückzahlung"],
        description="Sagt, wie weit eine Erstattung ist.",
    ),
)
CHINESE = card(
    "shop-cn",
    capability("取消订单", ["请取消我的订单", "我不想要了，帮我退掉订单", "撤销昨天下的单"]),
    capability("查询包裹", ["我的包裹在哪里", "快递什么时候到", "查一下物流"]),
    capability("退款进度", ["退款到账了吗", "我的钱什么时候退回来", "退款处理到哪一步了"]),
)
FOREIGN = [
    "wo ist mein Paket geblieben",
    "bitte stornieren Sie meine Bestellung",
    "wie wird das Wetter morgen in Berlin",
    "je voudrais annuler ma commande",
    "où est mon colis",
    "quel temps fera-t-il demain",
    "dónde está mi paquete",
    "帮我取消订单",
    "明天天气怎么样",
    "отмени заказ",
    "где моя посылка",
]


@dataclass
class Shop:
    """Cards with the heads that are fitted to them."""

    snapshot: Snapshot
    heads: Heads

    async def read(self, utterance: str, embedder: OnnxEmbedder | Watched) -> Reading:
        cascade = Cascade(Calibration())
        cascade.use(self.heads)
        with pool_of(embedder) as pool:
            return await Intake(pool, cascade).read(
                utterance,
                self.snapshot.scope(("default",)),
                rules=self.snapshot.rules,
                namespace="default",
                thresholds=Confidence(),
                wait_ms=60_000,
            )


class Watched:
    """The bundled encoder; keeps what it was asked."""

    def __init__(self, encoder: OnnxEmbedder) -> None:
        self.encoder_id, self.dim, self.languages = encoder.encoder_id, encoder.dim, encoder.languages
        self.asked: list[str] = []
        self._encoder = encoder

    def embed(self, text: str) -> Embedded:
        self.asked.append(text)
        return self._encoder.embed(text)


@pytest.fixture(scope="module")
def encoder() -> OnnxEmbedder:
    return bundled()


def shop_of(encoder: OnnxEmbedder, *cards: AgentCard) -> Shop:
    snapshot = snapshot_of(cards, None, encoder)
    examples = [Example(*pair) for pair in examples_of(snapshot)]
    embedded = {text: encoder.embed(text) for text, _ in examples}
    trusted = {text: each.vector for text, each in embedded.items() if each.is_trusted}
    is_foreign = are_mostly_others(embedded, encoder.languages)
    return Shop(snapshot, fit(examples, {} if is_foreign else trusted))


@pytest.fixture(scope="module")
def english(encoder: OnnxEmbedder) -> Shop:
    return shop_of(encoder, ENGLISH)


@pytest.fixture(scope="module")
def german(encoder: OnnxEmbedder) -> Shop:
    return shop_of(encoder, GERMAN)


@pytest.fixture(scope="module")
def mixed(encoder: OnnxEmbedder) -> Shop:
    return shop_of(encoder, ENGLISH, GERMAN, CHINESE)


@pytest.mark.parametrize("utterance", FOREIGN)
async def test_another_language_is_never_sure_over_english_cards_and_says_why(
    english: Shop, encoder: OnnxEmbedder, utterance: str
) -> None:
    watched = Watched(encoder)
    reading = await english.read(utterance, watched)
    assert reading.certainty is not Certainty.SURE
    assert (reading.degraded, reading.vector, watched.asked) == (OTHER_LANGUAGE, None, [])


async def test_english_is_read_by_words_and_vector(english: Shop, encoder: OnnxEmbedder) -> None:
    reading = await english.read("any news on the cash you owe me", encoder)
    assert (reading.language, reading.source, reading.degraded) == ("en", "semantic", ())
    assert reading.intent == "refund_status"


async def test_a_word_that_languages_share_still_counts(english: Shop, encoder: OnnxEmbedder) -> None:
    reading = await english.read("ist mein refund schon da, der refund von gestern", encoder)
    assert (reading.language, reading.intent) == ("de", "refund_status")


@pytest.mark.parametrize("shop", ["german", "mixed"])
@pytest.mark.parametrize(
    ("utterance", "intent"),
    [
        ("wo ist denn nur mein Paket?", "paket_verfolgen"),
        ("BITTE DIE BESTELLUNG STORNIEREN", "bestellung_stornieren"),
        ("wann bekomme ich mein Geld zurück", "erstattung"),
    ],
)
async def test_german_over_german_cards_is_read_by_its_words(
    request: pytest.FixtureRequest, encoder: OnnxEmbedder, shop: str, utterance: str, intent: str
) -> None:
    reading = await request.getfixturevalue(shop).read(utterance, encoder)
    assert (reading.language, reading.intent, reading.certainty) == ("de", intent, Certainty.SURE)
    assert (reading.source, reading.vector) == ("lexical", None)


@pytest.mark.parametrize("utterance", ["wie wird das Wetter morgen in Berlin", "erzähl mir einen Witz"])
@pytest.mark.parametrize("shop", ["german", "mixed"])
async def test_out_of_scope_works_in_german_too(
    request: pytest.FixtureRequest, encoder: OnnxEmbedder, shop: str, utterance: str
) -> None:
    assert (await request.getfixturevalue(shop).read(utterance, encoder)).certainty is Certainty.OUT_OF_SCOPE


@pytest.mark.parametrize(
    ("utterance", "intent"),
    [("帮我取消订单吧", "取消订单"), ("包裹现在在哪里", "查询包裹"), ("我的退款到账了没有", "退款进度")],
)
async def test_chinese_over_cards_in_three_languages_is_read(
    mixed: Shop, encoder: OnnxEmbedder, utterance: str, intent: str
) -> None:
    reading = await mixed.read(utterance, encoder)
    assert (reading.language, reading.intent, reading.certainty) == ("zh", intent, Certainty.SURE)


def test_examples_in_other_languages_alone_get_heads_without_vectors(german: Shop, mixed: Shop, english: Shop) -> None:
    assert [shop.heads.semantic is None for shop in (german, mixed, english)] == [True, False, False]


async def test_a_word_of_no_telling_language_is_read_like_the_examples(german: Shop, encoder: OnnxEmbedder) -> None:
    watched = Watched(encoder)
    reading = await german.read("Auftrag", watched)
    assert (reading.language, reading.source, watched.asked) == ("und", "lexical", [])


async def test_an_encoder_for_all_languages_is_asked(mixed: Shop) -> None:
    embedder = CountingEmbedder()
    with pool_of(embedder) as pool:
        await Intake(pool, Cascade(Calibration())).read(
            "wo bleibt es denn nur",
            snapshot_of([GERMAN], None, embedder).scope(("default",)),
            rules=mixed.snapshot.rules,
            namespace="default",
            thresholds=Confidence(),
            wait_ms=60_000,
        )
    assert embedder.asked[-1] == "wo bleibt es denn nur"
