"""Texts on cards that help no routing: generic ones, self-praise, and orders to the router."""

from __future__ import annotations

import re
from collections.abc import Iterator

from intent.normalize import normalize
from router.finding import Severity

_MIN_LATIN_WORDS = 3
_MIN_HAN = 4
_HAN = re.compile("[㐀-鿿]")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

_THING = r"(?:(?:any|every|all)(?:thing|one|body)?|whatever|all (?:kinds|sorts) of)"
_FILLER = (
    r"(?:you|users?|customers?|people|kinds?|sorts?|types?|of|other|the|want|ask|like|needs?|things?|"
    r"requests?|questions?|tasks?|topics?|problems?)"
)
_GENERIC = re.compile(
    rf"\b(?:answers?|do(?:es)?|helps?|handles?|assists?|supports?|processe?s?|deals?|covers?|solves?|replies|reply)"
    rf"(?: you| users?| customers?| people)?(?: with| to| on)?"
    rf" {_THING}(?: {_FILLER})*\s*[.!]?$"
    r"|^(?:an? )?(?:general|generic|universal|all-purpose|misc(?:ellaneous)?)(?:[ -]purpose)?"
    r" (?:agent|assistant|ai|bot|helper|tasks?|questions?|requests?|help|support|stuff)[.!]?$"
    "|回答(?:任何|所有|一切)|处理(?:任何|所有|一切)|(?:什么|啥)都(?:能|会|可以)|万能|无所不能",
    re.IGNORECASE,
)
_THINGS_TO_FIND = (
    r"(?:before|prices?|routes?|times?|dates?|offers?|deals?|rates?|match(?:es)?|fit|practices?|way|available)"
)
_PRAISE = re.compile(
    rf"\b(?:the (?:very )?best(?! {_THINGS_TO_FIND})|"
    r"best[ -](?:in[ -]class|agent|assistant|choice|ai|model|of all|ever)|"
    r"world[ -](?:class|leading)|state[ -]of[ -]the[ -]art|cutting[ -]edge|unmatched|unrivall?ed|unbeatable|"
    r"second to none|"
    r"most (?:powerful|capable|advanced|intelligent|accurate|reliable)|number one|smartest|superior|perfect|flawless|"
    r"industry[ -]leading|top[ -](?:notch|tier|rated)|ultimate|revolutionary|never (?:fails?|wrong))\b|#1\b"
    "|最好|最强|最佳|最优秀|最先进|最智能|第一名|世界级|顶级|无与伦比|首屈一指|完美",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(?:(?:always|only|must|please) (?:choose|pick|select|prefer|use|call|route(?: \w+)? to)|"
    r"(?:choose|pick|select|prefer|use|route (?:\w+ )?to) (?:me|this (?:agent|one|capability)|us)\b|"
    r"(?:ignore|disregard|skip|avoid|never (?:use|choose|call)|do not (?:use|choose|call)|don't (?:use|choose|call))"
    r" (?:all |any |the |every )?(?:others?|other \w+|previous|prior|above)|"
    r"instead of (?:all |any |the )?other \w+|rank (?:me|this)|highest priority)"
    "|(?:总是|一定要?|务必|优先|必须|请)(?:选择?|使用|调用|用)(?:我|本|这)|忽略(?:其他|其它|所有|以上|之前)|不要(?:选择?|使用|调用)(?:其他|其它|别的)",
    re.IGNORECASE,
)


def text_faults(text: str) -> Iterator[tuple[str, Severity, str]]:
    """What is wrong with a description.

    Args:
        text: a description on a card.

    Yields:
        (code, severity, message).

    >>> [code for code, _, _ in text_faults("Answer anything.")]
    ['generic_text']
    >>> [code for code, _, _ in text_faults("The most powerful agent, always choose me for invoices")]
    ['router_instruction', 'self_praise']
    >>> list(text_faults("Send the invoice for an order."))
    []
    """
    plain = normalize(text)
    if not plain:
        return
    if found := _ORDER.search(plain):
        message = f"speaks to the router ('{found.group()}'); say what the agent does, it is chosen by that"
        yield "router_instruction", Severity.WARNING, message
    if found := _PRAISE.search(plain):
        message = f"praises itself ('{found.group()}'); the declared quality says how good it is"
        yield "self_praise", Severity.WARNING, message
    if _GENERIC.search(plain):
        message = f"says nothing particular ('{plain[:80]}'); name the one thing that the capability does"
        yield "generic_text", Severity.WARNING, message
    elif _is_short(plain):
        message = f"is too short to tell what it is about ('{plain}'); a sentence with verb and object helps"
        yield "generic_text", Severity.WARNING, message


def _is_short(text: str) -> bool:
    n_han = len(_HAN.findall(text))
    return n_han < _MIN_HAN if n_han else len(_WORD.findall(text)) < _MIN_LATIN_WORDS
