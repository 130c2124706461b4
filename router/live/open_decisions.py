"""OpenDecisions: what outcomes are joined to, in memory while it is fresh, out of the record after that."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from models.card import AgentCard, AgentKey, Price
from models.decision import Attempt
from models.events import DecisionRow, OutcomeRow
from models.outcome import Outcome
from models.request import CallerChoice
from router.versions import order

_SAID = frozenset({"caller", "rule", "llm"})
_UNKNOWN_MS = 86_400_000
_MOST_INTENTS = 4
_LEAST_CONFIDENCE = 0.02

MAX_DECISIONS = 20_000
"""The oldest fall out of memory beyond that; their outcomes are joined by the record."""


class Step(NamedTuple):
    """An attempt of a plan, as far as its outcome needs it.

    Attributes:
        slice_ms: the time that the plan gave it.
        timeout_ms: the agent's suggested timeout when the plan was made.
        backoff_ms: the wait before it.
        on: outcomes of the attempt before that lead here.
        depends_on: shared dependencies of the agent.
        price: of its card when it was decided; None where it had none.
    """

    agent: AgentKey
    slice_ms: int
    timeout_ms: int
    backoff_ms: int
    on: tuple[str, ...]
    depends_on: tuple[str, ...]
    price: Price | None = None


class Told(NamedTuple):
    """An outcome that counts.

    Attributes:
        charged: to whom, as it was written down.
        at_ms: when it came (epoch).
        learnt: what was learned from it, JSON text; None where that is nothing.
    """

    outcome: Outcome
    charged: str
    at_ms: int
    learnt: str | None = None


ANONYMOUS = "anonymous"
"""All who name neither a key nor an agent are one caller."""


@dataclass(slots=True)
class OpenDecision:
    """A decision that named an agent.

    Attributes:
        key: name of the key that asked; its outcomes may come from it alone.
        caller: the agent in whose name was asked, else the key's name: whose breakers and quotas these are.
        team: the request's tenant; "" where it named none.
        began_ms: steady clock when it was made; None for one of an earlier run.
        is_leased: whether a place was taken for it.
        told: outcomes by attempt, the newest of each.
        intents: (intent, confidence) of the reading, the one routed by first.
        features: similarity, quality, health and load of the chosen agent as they counted; None where not known.
        is_shadow: whether the caller calls an agent of its own choice, whatever the answer said.
    """

    decision_id: str
    trace_id: str
    span_id: str
    key: str
    caller: str
    team: str
    namespace: str
    intent: str
    utterance: str | None
    payload: object
    session_id: str | None
    steps: tuple[Step, ...]
    began_ms: float | None = None
    is_leased: bool = False
    told: dict[int, Told] = field(default_factory=dict)
    intents: tuple[tuple[str, float], ...] = ()
    features: tuple[float, float, float, float] | None = None
    is_shadow: bool = False

    @property
    def teller(self) -> str:
        """In whose name its outcomes are learned from."""
        return teller_of(self.key, self.caller)

    @property
    def is_foreign(self) -> bool:
        """Whether the caller called an agent that could not have been named to it here: that speaks for nobody."""
        return self.is_shadow and not self.intents

    def follows(self, attempt: int, status: str) -> Step | None:
        """The step that the plan takes after this end of an attempt."""
        return next((step for step in self.steps[attempt:] if status in step.on), None)


def teller_of(key: str, caller: str) -> str:
    """In whose name outcomes are learned from: the key's, as a key may speak in many names.

    >>> teller_of("web", "front_desk"), teller_of("", "front_desk"), teller_of("", "")
    ('web', 'front_desk', 'anonymous')
    """
    return key or caller or ANONYMOUS


class OpenDecisions:
    """Decisions whose outcomes are expected, the newest `MAX_DECISIONS`."""

    def __init__(self, max_decisions: int = MAX_DECISIONS) -> None:
        self._max_decisions = max_decisions
        self._decisions: OrderedDict[str, OpenDecision] = OrderedDict()

    def __len__(self) -> int:
        """How many are in memory."""
        return len(self._decisions)

    def add(self, decision: OpenDecision) -> None:
        """Expect outcomes of this one."""
        self._decisions[decision.decision_id] = decision
        if len(self._decisions) > self._max_decisions:
            self._decisions.popitem(last=False)

    def forget(self, is_meant: Callable[[OpenDecision], bool]) -> int:
        """Forget those that are meant; how many they were."""
        gone = [decision_id for decision_id, opened in self._decisions.items() if is_meant(opened)]
        for decision_id in gone:
            del self._decisions[decision_id]
        return len(gone)

    def get(self, decision_id: str) -> OpenDecision | None:
        """The decision, if it is still in memory."""
        return self._decisions.get(decision_id)


def steps_of(plan: Sequence[Attempt], cards: Sequence[AgentCard], timeouts_ms: Sequence[int]) -> tuple[Step, ...]:
    """The steps of a plan.

    Args:
        plan: at least one attempt.
        cards: of each attempt's agent.
        timeouts_ms: suggested timeout of each.
    """
    return tuple(
        Step(
            card.key,
            attempt.timeout_ms,
            timeout_ms,
            attempt.backoff_ms,
            tuple(attempt.on),
            tuple(card.depends_on),
            card.price,
        )
        for attempt, card, timeout_ms in zip(plan, cards, timeouts_ms, strict=True)
    )


def likely(read: tuple[str, float], others: Sequence[tuple[str, float]], source: str) -> tuple[tuple[str, float], ...]:
    """(intent, confidence) of those that count: the one routed by, and the likeliest others, best first.

    Where a caller, a rule or a language model has said what is meant, the others are not meant.

    >>> likely(("refund", 0.9), [("cancel", 0.06), ("track", 0.01)], "semantic")
    (('refund', 0.9), ('cancel', 0.06))
    >>> likely(("refund", 0.3), [("cancel", 0.5)], "llm")
    (('refund', 0.3),)
    """
    if source in _SAID:
        return (read,)
    return (read, *[other for other in others if other[1] >= _LEAST_CONFIDENCE][: _MOST_INTENTS - 1])


def chosen_by_caller(choice: CallerChoice, namespace: str, cards: Mapping[AgentKey, AgentCard]) -> AgentKey:
    """The agent of a caller's own choice: the newest version of it, where the caller names none."""
    where = choice.namespace or namespace
    if choice.version is not None:
        return (where, choice.agent_id, choice.version)
    known = [version for place, agent_id, version in cards if (place, agent_id) == (where, choice.agent_id)]
    return (where, choice.agent_id, max(known, key=order, default="0.0.0"))


def step_of_choice(agent: AgentKey, cards: Mapping[AgentKey, AgentCard]) -> Step:
    """The one step of a caller's own choice; how long it waits is not known."""
    card = cards.get(agent)
    if card is None:
        return Step(agent, _UNKNOWN_MS, _UNKNOWN_MS, 0, (), ())
    return Step(agent, card.timeout_ms, card.timeout_ms, 0, (), tuple(card.depends_on), card.price)


def of_record(
    row: DecisionRow, outcomes: Sequence[OutcomeRow], cards: Mapping[AgentKey, AgentCard]
) -> OpenDecision | None:
    """A decision out of its record; None where it named no agent, so that there is no attempt to tell of.

    Args:
        row: the record.
        outcomes: of it, as they came.
        cards: those in force: the dependencies that they name today count; those of the time are not in the record.
    """
    answer, request, inputs = orjson.loads(row.answer), orjson.loads(row.request), orjson.loads(row.inputs)
    choice = request.get("caller_choice")
    if row.intent is None or not (answer["plan"] or choice):
        return None
    caller = request.get("caller") or {}
    shadow = inputs.get("shadow")
    if choice:
        agent = chosen_by_caller(CallerChoice.model_validate(choice), row.namespace, cards)
        named = shadow or next(iter(inputs.get("prices", ())), None)
        if named is not None:  # of which version it was, where the caller named none
            namespace, agent_id, version = named.rsplit("/", 2)
            agent = (namespace, agent_id, version)
        steps: tuple[Step, ...] = (step_of_choice(agent, cards),)
    else:
        steps = tuple(_step(attempt, inputs.get("timeouts_ms", {}), cards) for attempt in answer["plan"])
    steps = tuple(step._replace(price=_price(step.agent, inputs, cards)) for step in steps)
    opened = OpenDecision(
        decision_id=row.decision_id,
        trace_id=row.trace_id,
        span_id=answer["span_id"],
        key=row.caller,
        caller=caller.get("agent_id") or row.caller,
        team=request.get("tenant") or "",
        namespace=row.namespace,
        intent=row.intent,
        utterance=request.get("utterance"),
        payload=request.get("payload"),
        session_id=caller.get("session_id"),
        steps=steps,
        is_leased=answer["lease"] is not None,
        intents=() if choice and shadow is None else _intents(answer["intent"]),
        features=_features(inputs, answer["target"]),
        is_shadow=choice is not None,
    )
    for each in outcomes:
        told = Told(Outcome.model_validate_json(each.body), each.charged, each.received_at, each.learnt)
        opened.told[each.attempt] = told
    return opened


def _intents(read: Any) -> tuple[tuple[str, float], ...]:
    others = [(other["name"], other["confidence"]) for other in read["alternatives"]]
    return likely((read["name"], read["confidence"]), others, read["source"])


def _features(inputs: Any, target: Any) -> tuple[float, float, float, float] | None:
    """Of the chosen one, out of what was sealed of the contenders; None in records of before that."""
    if target is None or "reading" not in inputs:
        return None
    name = "/".join((target["namespace"], target["agent_id"], target["version"]))
    for each, quality, _, health, load, *_ in inputs.get("contenders", ()):
        if each == name:
            return (inputs.get("similarity", inputs["reading"]["confidence"]), quality, health, load)
    return None


def _price(agent: AgentKey, inputs: Any, cards: Mapping[AgentKey, AgentCard]) -> Price | None:
    """As it was when it was decided; today's where the record is of before such were kept."""
    if "digests" not in inputs:
        card = cards.get(agent)
        return None if card is None else card.price
    told = inputs.get("prices", {}).get("/".join(agent))
    return None if told is None else Price(per_call_usd=told[0], per_1k_tokens_usd=told[1])


def _step(attempt: Any, timeouts_ms: Mapping[str, int], cards: Mapping[AgentKey, AgentCard]) -> Step:
    target, slice_ms = attempt["target"], attempt["timeout_ms"]
    agent = (target["namespace"], target["agent_id"], target["version"])
    card = cards.get(agent)
    return Step(
        agent,
        slice_ms,
        timeouts_ms.get("/".join(agent), slice_ms),
        attempt["backoff_ms"],
        tuple(attempt["on"]),
        () if card is None else tuple(card.depends_on),
    )
