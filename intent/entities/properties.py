"""Properties: what those of an `input_schema` ask for, as far as names, descriptions, formats and hints tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from intent.entities.fold import fold
from models.entity import EntityKind

_KIND_WORDS: dict[EntityKind, str] = {
    "amount": "amount price total cost fee money budget sum payment balance fare salary charge paid spend spent refund "
    "deposit rent amt value usd eur cny 金额 价格 总价 费用 预算 钱 价钱 付款",
    "date": "date time day when since until deadline datetime timestamp start end begin due birthday checkin checkout "
    "month year week scheduled 日期 时间 何时 截止 生日",
    "id": "id ids no nr number num code reference ref sku identifier uuid key tracking serial iban account "
    "order_number invoice ticket order parcel booking reservation 编号 单号 订单号 号码 账号 卡号",
    "email": "email mail e_mail emails 邮箱 邮件",
    "phone": "phone telephone mobile tel cell fax whatsapp 电话 手机",
    "quantity": "quantity qty count amount_of number_of num_of n how_many pieces items people guests persons adults "
    "children nights seats duration weight length size height width distance percent percentage age volume "
    "数量 个数 人数 件数",
    "url": "url uri link website homepage href webpage 网址 链接",
    "number": "number value rating score level",
}
_BY_WORD: dict[str, list[EntityKind]] = {}
for _kind, _words in _KIND_WORDS.items():
    for _word in _words.split():
        _BY_WORD.setdefault(_word, []).append(_kind)

_FORMATS: dict[str, EntityKind] = {
    "date": "date",
    "date-time": "date",
    "time": "date",
    "email": "email",
    "idn-email": "email",
    "uri": "url",
    "url": "url",
    "iri": "url",
    "uuid": "id",
    "phone": "phone",
}
_DESCRIBED = (
    "amount price cost date time day phone email mail url link quantity count id identifier number "
    "金额 价格 日期 时间 电话 手机 邮箱 数量 编号 单号 网址 链接"
)
_DESCRIBED_BY = _DESCRIBED.split()
_COUNTS = ("number_of_", "num_of_", "n_", "how_many_", "count_of_", "amount_of_")
_START = frozenset({"start", "from", "since", "begin", "checkin", "arrival", "after"})
_END = frozenset({"end", "to", "until", "checkout", "departure", "before", "due", "deadline", "return"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SPLIT = re.compile(r"[\s_\-./:,;()]+")
_CHECK = re.compile(r"check_?(in|out)")
_JOINERS = re.compile(r"[_\-\s]+")
_MAX_PROPERTIES = 200
MAX_ITEMS = 100
_MAX_OPTIONS = 200
_MAX_STEPS = 64

NAME, FORMAT, DESCRIPTION = 1.0, 0.95, 0.6


@dataclass(frozen=True, slots=True)
class Property:
    """One property.

    Attributes:
        name: as the schema has it.
        schemas: the schemas of which a value has to meet one; of an array, those of its items.
        kinds: kind → how strongly the property asks for it, 0..1; empty says nothing.
        words: words of the name, lower case.
        place: -1 the beginning of a period, 1 its end, 0 neither.
        is_array: whether the value is a list.
        n_items: how many items the list may have, at least and at most.
        options: strings of an `enum`, each with the forms in which it is looked for, lower case.
    """

    name: str
    schemas: tuple[Mapping[str, Any], ...]
    kinds: Mapping[EntityKind, float]
    words: frozenset[str]
    place: int
    is_array: bool = False
    n_items: tuple[int, int] = (0, MAX_ITEMS)
    options: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def is_mute(self) -> bool:
        """Whether it takes numbers but its name does not say of what."""
        return not self.kinds and any({"number", "integer"}.intersection(types_of(each)) for each in self.schemas)


def properties_of(schema: Mapping[str, Any] | None, hints: Mapping[str, Any] | None = None) -> list[Property]:
    """The properties of a resolved object schema, in its order; then those that only hints name.

    >>> properties_of({"properties": {"order_amount": {"type": "number"}}})[0].kinds
    {'amount': 1.0}
    """
    declared = schema.get("properties") if schema else None
    named = dict(list(declared.items())[:_MAX_PROPERTIES]) if isinstance(declared, Mapping) else {}
    hints = hints or {}
    every = {**named, **{name: {} for name in hints if name not in named}}
    return [_property(str(name), every[name], schema or {}, hints.get(name)) for name in every]


def words_of(name: str) -> list[str]:
    """Words of a property's name, in any of the usual spellings.

    >>> words_of("checkIn_date")
    ['checkin', 'date']
    """
    snake = _CHECK.sub(r"check\1", _CAMEL.sub("_", name).lower())
    return [word for word in _SPLIT.split(snake) if word]


def _property(name: str, schema: Any, root: Mapping[str, Any], hint: Any) -> Property:
    schemas = tuple(_branches(schema, root))
    arrays = [each for each in schemas if "array" in types_of(each)]
    is_array = bool(arrays) and len(arrays) == len(schemas)
    n_items = (0, MAX_ITEMS)
    if is_array:
        arrays = [each for each in arrays if "enum" not in each and "const" not in each]
        n_items = _n_items(arrays)
        schemas = tuple(item for each in arrays for item in _branches(each.get("items", {}), root))
    words = words_of(name)
    place = -1 if _START.intersection(words) else 1 if _END.intersection(words) else 0
    kinds = _kinds(words, schemas, schema, hint)
    return Property(name, schemas, kinds, frozenset(words), place, is_array, n_items, tuple(_options(schemas)))


def _n_items(arrays: list[Mapping[str, Any]]) -> tuple[int, int]:
    bounds = [
        [each[key] for each in arrays if isinstance(each.get(key), int | float)] for key in ("minItems", "maxItems")
    ]
    return int(max(bounds[0], default=0)), int(min([*bounds[1], MAX_ITEMS]))


def _options(schemas: tuple[Mapping[str, Any], ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for schema in schemas:
        options = schema.get("enum")
        for option in options[:_MAX_OPTIONS] if isinstance(options, list) else []:
            if isinstance(option, str) and option.strip():
                whole = fold(option).lower().strip()
                words = _JOINERS.sub(" ", whole).strip()
                forms = (whole, words, words.replace(" ", "-"), words.replace(" ", ""))
                yield option, tuple(form for form in dict.fromkeys(forms) if form)


def _kinds(words: list[str], schemas: tuple[Mapping[str, Any], ...], schema: Any, hint: Any) -> dict[EntityKind, float]:
    hinted = hint.get("kind") if isinstance(hint, Mapping) else hint
    if isinstance(hinted, str) and hinted in _KIND_WORDS:
        return {hinted: NAME}
    for each in schemas:
        kind = _FORMATS.get(str(each.get("format")))
        if kind:
            return {kind: FORMAT}
    named = _by_name(words)
    if named:
        return named
    described = schema.get("description") if isinstance(schema, Mapping) else None
    text = str(described)[:500].lower() if described else ""
    found: dict[EntityKind, float] = {}
    for word in _DESCRIBED_BY:
        if word in (_SPLIT.split(text) if word.isascii() else text):
            for kind in _BY_WORD[word]:
                found[kind] = DESCRIPTION
    return found


def _by_name(words: list[str]) -> dict[EntityKind, float]:
    """The last word counts most (order_id is an id, id_count a count), and counted things are quantities."""
    snake = "_".join(words)
    if snake.startswith(_COUNTS):
        return {"quantity": NAME}
    last_ones = {"_".join(words[-2:]), words[-1]} if words else set()
    found: dict[EntityKind, float] = {}
    for n, word in enumerate([*last_ones, *reversed(words[:-1])]):
        weight = NAME if n < len(last_ones) else NAME - 0.2
        for kind in _kinds_of_word(word):
            found[kind] = max(found.get(kind, 0), weight)
    if "phone" in found or "email" in found or "url" in found:
        return {kind: weight for kind, weight in found.items() if kind in ("phone", "email", "url")}
    best = max(found.values(), default=0)
    return {kind: weight for kind, weight in found.items() if weight == best}


def _kinds_of_word(word: str) -> list[EntityKind]:
    if word in _BY_WORD:
        return _BY_WORD[word]
    if word.isascii():
        return []
    return [kind for key, kinds in _BY_WORD.items() if not key.isascii() and key in word for kind in kinds]


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Types that a schema admits; empty if it does not say."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return (declared,)
    return tuple(str(each) for each in declared) if isinstance(declared, list) else ()


def _branches(schema: Any, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schema, or the branches of `anyOf` and `oneOf` with what stands beside them; local `$ref`s resolved."""
    waiting, branches = [schema], []
    for _ in range(_MAX_STEPS):
        if not waiting:
            break
        each = waiting.pop(0)
        if not isinstance(each, Mapping):
            continue
        keyword = next((key for key in ("$ref", "anyOf", "oneOf") if key in each), None)
        if keyword is None:
            branches.append(each)
            continue
        beside = {key: value for key, value in each.items() if key != keyword}
        options = [_target(str(each[keyword]), root)] if keyword == "$ref" else each[keyword]
        waiting += (
            [{**beside, **option} for option in options if isinstance(option, Mapping)]
            if isinstance(options, list)
            else []
        )
    return branches


def _target(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    node: Any = root
    if not reference.startswith("#/"):
        return None
    for key in reference[2:].split("/"):
        node = node.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else None
