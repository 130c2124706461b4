"""Rows for success heads: which outcomes of the log say how well an agent did on a request, and why others do not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

import orjson
from pydantic import ValidationError

from feedback.attribution import FAILURES, Charge, Party
from feedback.reward import reward
from intent.normalize import has_words, normalize
from intent.vector_cache import Progress, silent
from models.events import OutcomeRow
from models.learning_policy import RewardPolicy
from models.outcome import Outcome
from models.policy import Policy
from router.live.open_decisions import likely
from router.logged_decision import Rewarder
from router.stores.feedback_log import RecordedDecision
from router.stores.training_log import SqlTrainingLog

MOST_OF_AGENT = 4_000
"""Rows of one agent, the newest."""

MOST_OF_CALLER = 2_000
"""Rows of one agent and one caller, the newest."""

MOST = 20_000
"""Rows in all, the newest; a fit on so many takes some 0.8 GB."""

MOST_INVERSE = 20.0
"""Bound of the inverse propensity: a choice that was made with a probability below a twentieth counts as one with that.
It is wider than that of the texts of intents, as agents differ most on requests that they are rarely given."""

MOST_CHARS = 8_192
"""Of a longer text only the beginning is kept; the wording is not looked at beyond it."""

_PAGE = 250
_DIGEST = re.compile("sha256:[0-9a-f]{64}$")


class SuccessRow(NamedTuple):
    """How well an agent did on a request.

    Attributes:
        agent: "namespace/agent_id/version".
        text: the request as it was written, or as retention masked it.
        intents: (intent, confidence) of the reading, the one routed by first.
        reward: 0..1.
        inverse: of the propensity, 1..MOST_INVERSE; 1 where none was logged.
        caller: name of the key that asked, else in whose name it was asked.
    """

    agent: str
    text: str
    intents: tuple[tuple[str, float], ...]
    reward: float
    inverse: float
    caller: str


@dataclass(frozen=True, slots=True)
class SuccessRows:
    """What a log says of how well agents do.

    Attributes:
        rows: newest first.
        n_callers: that told of any, those included whose rows found no room; 2 stands for more.
        left_out: why others were left out → how many.
    """

    rows: tuple[SuccessRow, ...] = ()
    n_callers: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {"rows": self.rows, "n_callers": self.n_callers, "left_out": self.left_out}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Self:
        """The rows that `to_json` told."""
        rows = [SuccessRow._make(each) for each in found["rows"]]
        kept = tuple(row._replace(intents=tuple((name, share) for name, share in row.intents)) for row in rows)
        return cls(kept, found["n_callers"], found["left_out"])


async def read_success_rows(
    log: SqlTrainingLog, agents: Collection[str], *, progress: Progress = silent
) -> SuccessRows:
    """Read a store page by page, newest first; what is held at a time does not grow with it.

    Args:
        log: of the store.
        agents: that have a card; others are left out, as anybody may name one.
        progress: told of the decisions read.

    Raises:
        StoreError: it cannot be read.
    """
    kept = NewestRows(frozenset(agents))
    kept.left_out["erased"] = await log.n_orphans()
    rewarder = partial(reward, policy=_rewards(await log.policy()))
    n_decisions, n_read, last = await log.n_decisions(), 0, None
    while page := await log.recorded(last, _PAGE):
        for recorded in page:
            for outcome in recorded.outcomes:
                kept.offer(_read(recorded, outcome, rewarder))
        last = (page[-1].decision.happened_at, page[-1].decision.decision_id)
        n_read += len(page)
        progress(n_read, max(n_decisions, n_read))
        if len(page) < _PAGE:
            break
    return SuccessRows(tuple(kept.rows), len(kept.callers), dict(sorted((+kept.left_out).items())))


class NewestRows:
    """The newest rows of each agent, and of each caller on it; to be offered newest first.

    Args:
        agents: that have a card; rows of others are left out.
    """

    MOST_CALLERS = 2
    """More are not told apart here: whether there is another one is all that matters."""

    def __init__(self, agents: frozenset[str]) -> None:
        self.rows: list[SuccessRow] = []
        self.callers: set[str] = set()
        self.left_out: Counter[str] = Counter()
        self._agents = agents
        self._of_agent: Counter[str] = Counter()
        self._of_caller: Counter[tuple[str, str]] = Counter()

    def offer(self, row: SuccessRow | str) -> None:
        """Keep a row, if there is room, or count why there is none."""
        if isinstance(row, str):
            self.left_out[row] += 1
            return
        if row.agent not in self._agents:
            self.left_out["agent_unknown"] += 1
            return
        if len(self.callers) < self.MOST_CALLERS:
            self.callers.add(row.caller)
        whose = (row.agent, row.caller)
        if (
            len(self.rows) >= MOST
            or self._of_agent[row.agent] >= MOST_OF_AGENT
            or self._of_caller[whose] >= MOST_OF_CALLER
        ):
            self.left_out["over_cap"] += 1
            return
        self._of_agent[row.agent] += 1
        self._of_caller[whose] += 1
        self.rows.append(row)


def _rewards(policy: bytes | None) -> RewardPolicy:
    """What outcomes are worth by the policy that was in force last; as shipped, where it cannot be read."""
    try:
        return RewardPolicy() if policy is None else Policy.model_validate_json(policy).learning.reward
    except ValidationError:
        return RewardPolicy()


def _read(recorded: RecordedDecision, outcome: OutcomeRow, rewarder: Rewarder) -> SuccessRow | str:
    try:
        return row_of(recorded, outcome, rewarder)
    except (ValueError, TypeError, LookupError, AttributeError):
        return "unreadable"  # a record may be of any release, or erased


def row_of(recorded: RecordedDecision, outcome: OutcomeRow, rewarder: Rewarder) -> SuccessRow | str:
    """The row of an outcome, or why there is none.

    Its `inverse` is that of the propensity of the choice, bounded by `MOST_INVERSE` (Horvitz and Thompson 1952; bounded
    as in Ionides 2008). Of what was called after another agent had failed, or by the caller's own choice, none was
    logged.

    Args:
        recorded: the decision.
        outcome: of one of its attempts.
        rewarder: what it is worth.
    """
    if outcome.charged != Party.AGENT:
        return "charged_to_others"
    decision = recorded.decision
    request, answer = orjson.loads(decision.request), orjson.loads(decision.answer)
    # a sentence of several wishes: the other parts have records of their own
    text = answer.get("text") if answer.get("parts") else request.get("utterance")
    if text is None or _DIGEST.match(text) or not has_words(normalize(text[:MOST_CHARS])):
        return "no_text"
    is_own_choice = bool(request.get("caller_choice"))
    if is_own_choice:
        agent, slice_ms = orjson.loads(decision.inputs).get("shadow"), 0.0
        if agent is None:
            return "agent_unknown"
    else:
        step = answer["plan"][outcome.attempt - 1]
        target, slice_ms = step["target"], float(step["timeout_ms"])
        agent = "/".join((target["namespace"], target["agent_id"], target["version"]))
    told = Outcome.model_validate_json(outcome.body)
    worth = rewarder(told, Charge(Party.AGENT, told.status in FAILURES), slice_ms)
    if worth is None:
        return "no_reward"
    propensity = answer.get("propensity") if outcome.attempt == 1 and not is_own_choice else None
    return SuccessRow(
        agent,
        text[:MOST_CHARS],
        _intents(answer["intent"]),
        worth,
        min(1 / max(propensity or 1.0, 1e-9), MOST_INVERSE),
        decision.caller or decision.asker,
    )


def _intents(read: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    others: Sequence[tuple[str, float]] = [(each["name"], each["confidence"]) for each in read.get("alternatives", ())]
    return likely((read["name"], read["confidence"]), others, read["source"])
