from __future__ import annotations

from feedback.cluster_names import typical_phrases


def test_phrases_are_those_that_the_others_lack() -> None:
    locker = ["please open the parcel locker", "the parcel locker is shut", "please, my parcel locker"]
    lost = ["please block my lost card", "I lost my card", "please, a lost card"]
    names = typical_phrases([locker, lost])

    assert names[0][0] == "parcel locker"
    assert set(names[1]) >= {"lost", "card"}
    assert all("please" not in phrase for name in names for phrase in name)


def test_texts_whose_words_are_not_divided_have_phrases_too() -> None:
    assert typical_phrases([["我的快递柜打不开", "快递柜的密码"], ["hello there"]])[0][0] == "快递柜"


def test_what_steers_a_terminal_or_a_page_is_in_no_phrase() -> None:
    texts = ["<script>alert(1)</script> \x1b[31m‮ red", "<script>alert(1)</script> \x1b[31m‮ red"]

    for phrase in typical_phrases([texts])[0]:
        assert all(char.isalnum() or char == " " for char in phrase), phrase


def test_texts_that_share_nothing_have_no_name() -> None:
    assert typical_phrases([["alpha beta", "gamma delta", "epsilon zeta"]]) == [()]
    assert typical_phrases([[]]) == [()]
