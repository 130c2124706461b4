from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intent.normalize import normalize
from intent.split import MAX_CHARS, MAX_PARTS, split


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("cancel my order and tell me where it is", ["cancel my order", "tell me where it is"]),
        ("cancel my order, then please tell me where it is", ["cancel my order", "tell me where it is"]),
        ("cancel my order AND ALSO track the parcel", ["cancel my order", "track the parcel"]),
        ("cancel my order; track the parcel", ["cancel my order", "track the parcel"]),
        ("has it shipped? cancel my order!", ["has it shipped", "cancel my order!"]),
        ("has it shipped? And cancel my order", ["has it shipped", "cancel my order"]),
        ("please track it; and then, please call me", ["please track it", "call me"]),
        ("取消我的订单，然后查一下快递", ["取消我的订单", "查一下快递"]),
        ("取消我的订单，再查一下快递", ["取消我的订单", "再查一下快递"]),
        ("取消我的订单。查一下快递。", ["取消我的订单", "查一下快递。"]),
        ("取消我的订单；查一下快递", ["取消我的订单", "查一下快递"]),
        ("我的押金退了吗？帮我取消预订", ["我的押金退了吗", "帮我取消预订"]),
        ("取消我的訂單並且查一下快遞", ["取消我的訂單", "查一下快遞"]),
        ("Cancel my order. Where is my parcel?", ["Cancel my order.", "Where is my parcel?"]),
        ("cancel my order, where is my parcel", ["cancel my order", "where is my parcel"]),
        ("cancel my order, please, track the parcel", ["cancel my order", "track the parcel"]),
        ("cancel my order - where is my parcel", ["cancel my order", "where is my parcel"]),
        ("cancel my order as well as the other order", ["cancel my order", "the other order"]),
        ("取消我的订单，快递到哪了", ["取消我的订单", "快递到哪了"]),
        ("取消订单并退款给我", ["取消订单", "退款给我"]),
        ("取消我的订单，对了，快递到哪了", ["取消我的订单", "快递到哪了"]),
        ("取消我的訂單還有查一下快遞", ["取消我的訂單", "查一下快遞"]),
    ],
)
def test_joined_wishes_come_apart_in_order(sentence: str, parts: list[str]) -> None:
    assert split(normalize(sentence)) == parts


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "cancel my order",
        "salt and pepper",
        "rock and roll music please",
        "the android and",
        "and then",
        "my hand my sandwich my brand",
        "it costs 1.5 or 2,000 dollars",
        "send it to dr. Smith",
        "the well-known brand",
        "我的订单还有多久到",
        "这个订单并不是我下的",
        "when will it arrive?",
        "取消我的订单",
        "苹果以及梨",
        "取消，再见",
        "另外",
    ],
)
def test_a_sentence_with_one_wish_stays_whole(sentence: str) -> None:
    assert split(sentence) == [sentence]


def test_a_short_piece_stays_with_the_part_before() -> None:
    assert split("cancel my order and thanks and track the parcel") == [
        "cancel my order and thanks",
        "track the parcel",
    ]


def test_commas_cut_only_as_far_as_other_joints_leave_room() -> None:
    assert split("hi, i am bob, please help me, cancel my order and track the parcel and call me; thank you") == [
        "hi, i am bob, please help me, cancel my order",
        "track the parcel",
        "call me",
        "thank you",
    ]
    assert split("i am bob, i need help, cancel my order and track the parcel") == [
        "i am bob",
        "i need help",
        "cancel my order",
        "track the parcel",
    ]


def test_there_are_at_most_so_many_parts_and_the_last_holds_the_rest() -> None:
    sentence = " and ".join(f"do thing {number}" for number in range(9))
    parts = split(sentence)
    assert len(parts) == MAX_PARTS
    assert " and ".join(parts) == sentence


@pytest.mark.parametrize("joint", ["a;", "a and ", "?a", "，请", "我 然后", "a, and, ", "a. ", " - ", ", please"])
def test_a_long_text_is_not_taken_apart_and_costs_no_time(joint: str) -> None:
    start = time.process_time()
    text = joint * (200_000 // len(joint))
    assert split(text) == [text]
    longest = (joint * MAX_CHARS)[:MAX_CHARS]
    assert len(split(longest)) <= MAX_PARTS
    assert time.process_time() - start < 2


@settings(max_examples=300, derandomize=True, deadline=None)
@given(pieces=st.lists(st.sampled_from([*"ab?!;,。， ", "and", "then", "然后", "请", "订单", "my order"]), max_size=20))
def test_parts_are_pieces_of_the_sentence_in_order(pieces: list[str]) -> None:
    sentence = normalize("".join(pieces))
    parts = split(sentence)
    assert 1 <= len(parts) <= MAX_PARTS
    start = 0
    for part in parts:
        start = sentence.index(part, start) + len(part)
    if len(parts) > 1:
        assert all(parts)


JOINTS = [
    *(
        "; ",
        "? ",
        "! ",
        ". ",
        ", ",
        " - ",
        " -- ",
        "-",
        " and ",
        " then ",
        " plus ",
        " also ",
        " as well as ",
        " band ",
    ),
    *(" by the way, ", " after that ", " AND THEN ", ", and also ", " and,", ".", "?", " oh, "),
]


@settings(max_examples=500, derandomize=True, deadline=None)
@given(words=st.lists(st.sampled_from(["track it", "call me", "x", "9%"]), min_size=1, max_size=6), data=st.data())
def test_a_text_in_ascii_comes_apart_as_one_with_another_letter_at_its_end(
    words: list[str], data: st.DataObject
) -> None:
    joints = data.draw(st.lists(st.sampled_from(JOINTS), min_size=len(words), max_size=len(words)))
    text = normalize("".join(word + joint for word, joint in zip(words, joints, strict=True)) + "go on")
    *first, last = split(text)
    assert split(text + "é") == [*first, last + "é"]
