"""Language of a text: a BCP 47 tag, or `und` where it cannot be told; and whether an encoder was made for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

try:
    import eldc
except ModuleNotFoundError:  # no build for this platform: the script alone tells
    _identifier: Any = None
else:
    eldc.init()
    _identifier = eldc

UNDETERMINED = "und"

LEAST_SPOKEN = 0.05
"""What fewer of some texts are in does not count as a language of theirs: it may be a mistake, or a few names."""

LEAST_READ = 0.25
"""With a smaller share of examples that an encoder was made for, its vectors are not worth fitting on."""

_BY_SCRIPT = frozenset({"zh", "ja", "ko"})
_MAX_CHARS = 1000
_KEPT = 256
_LAST_LATIN = "\u024f"
_MORE_LATIN = ("\u1e00", "\u1eff")


def language_of(text: str) -> str:
    """BCP 47 tag of the language that most of a text is in; only the first 1,000 characters are looked at.

    The letters decide for Chinese, Japanese and Korean. Others are told by their n-grams (the library eldc, 57 more
    languages), and only where it is sure: texts of one or two words mostly stay undetermined. Languages that are
    written alike come under one tag: Serbian and Bosnian in Latin letters as `hr`, Indonesian as `ms`.

    >>> language_of("我的快递到哪了"), language_of("wo ist mein Paket"), language_of("ok")
    ('zh', 'de', 'und')
    """
    return _told(text[:_MAX_CHARS])


@lru_cache(maxsize=_KEPT)
def _told(text: str) -> str:
    by_script = UNDETERMINED if text.isascii() else _script_language(text)
    if by_script != UNDETERMINED or _identifier is None:
        return by_script
    found = _identifier.detect_details(_encodable(text))
    is_sure = found.reliable and found.language not in _BY_SCRIPT
    return str(found.language) if is_sure else UNDETERMINED


def may_be_in(text: str, languages: Collection[str] | None) -> bool:
    """Whether a text is, or may be, in one of these languages.

    A text that cannot be told may be in any of them; in letters that are not Latin, in the one it looks most like.

    >>> may_be_in("wo ist mein Paket", ["en"]), may_be_in("ok", ["en"]), may_be_in("отмени заказ", ["en"])
    (False, True, False)

    Args:
        text: normalized.
        languages: primary subtags; None means all there are.
    """
    if languages is None:
        return True
    language = language_of(text)
    if language != UNDETERMINED:
        return language in languages
    beginning = text[:_MAX_CHARS]
    if _is_latin(beginning):
        return True
    return _identifier is not None and _identifier.detect(_encodable(beginning)) in languages


def languages_of(texts: Iterable[str]) -> frozenset[str]:
    """The languages that at least `LEAST_SPOKEN` of the texts are in, as far as they can be told."""
    told = Counter(language_of(text) for text in texts)
    least = LEAST_SPOKEN * told.total()
    return frozenset(language for language, n in told.items() if n >= least) - {UNDETERMINED}


def are_mostly_others(texts: Iterable[str], languages: Collection[str] | None) -> bool:
    """Whether less than `LEAST_READ` of the texts, of those whose language can be told, are in one of these.

    Where only letters tell, all Latin texts count as being in one of them.
    """
    if languages is None:
        return False
    n_in = n_others = 0
    for text in texts:
        if not may_be_in(text, languages):
            n_others += 1
        elif _identifier is None or language_of(text) != UNDETERMINED:
            n_in += 1
    return n_in < LEAST_READ * (n_in + n_others)


def _encodable(text: str) -> str:
    """Half a surrogate pair has no UTF-8 form."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _is_latin(text: str) -> bool:
    """Whether no more than half of the letters belong to another script."""
    if text.isascii():
        return True
    letters = [character for character in text if character.isalpha()]
    latin = sum(each <= _LAST_LATIN or _MORE_LATIN[0] <= each <= _MORE_LATIN[1] for each in letters)
    return 2 * latin >= len(letters)


def _script_language(text: str) -> str:
    """`zh`, `ja` or `ko` by the letters, else `und`. Three such letters weigh as much as two words of others."""
    han = kana = hangul = words = 0
    in_word = False
    for character in text:
        is_other = False
        if "一" <= character <= "鿿" or "㐀" <= character <= "䶿":
            han += 1
        elif "぀" <= character <= "ヿ":
            kana += 1
        elif "가" <= character <= "힣":
            hangul += 1
        else:
            is_other = character.isalpha()
            words += is_other and not in_word
        in_word = is_other
    if 2 * (han + kana + hangul) <= 3 * words or not han + kana + hangul:
        return UNDETERMINED
    if hangul > han + kana:
        return "ko"
    # a Chinese text may hold a Japanese name
    return "ja" if 5 * kana > han + kana else "zh"
