"""Past outcomes: files of them are read line by line, and learned from as if they had just come."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple, cast

from pydantic import ValidationError

from feedback.attribution import Call, charge
from feedback.learner import Learner
from feedback.lessons import Lesson
from feedback.reward import reward
from models.card import AgentCard, AgentKey
from models.errors import ConfigError, FieldProblem, InvalidRequestError, MalformedBodyError
from models.events import LearnerRow, WeightRow
from models.learning_policy import LearningPolicy
from models.outcome import Outcome
from models.past_outcome import PastOutcome
from router.field_problems import problems_of
from router.numbers import plain
from router.versions import order
from router.wire import loads

MAX_LINE_BYTES = 1024 * 1024
_MAX_PROBLEMS = 20
_UNKNOWN_VERSION = "0.0.0"

Row = WeightRow | LearnerRow


class Checked(NamedTuple):
    """A file of past outcomes in which nothing is wrong.

    Attributes:
        sha256: of its bytes, unpacked, in hex.
        n_lines: that hold an outcome.
    """

    sha256: str
    n_lines: int


class Taught(NamedTuple):
    """What was learned from past outcomes.

    Attributes:
        rows: what changed, as the store takes it: sums by key, and the last state of each agent.
        n_learned: outcomes that count.
        n_not_charged: outcomes that say nothing of the agent.
        unknown: agents that no card has, by name.
        unserved: intents that the card of their agent does not serve, each with the agent, by name.
    """

    rows: list[Row]
    n_learned: int
    n_not_charged: int
    unknown: list[str]
    unserved: list[str]


def check(path: Path, told: Callable[[int], None]) -> Checked:
    """Read a file to its end, without learning from it.

    Args:
        path: JSON lines of `PastOutcome`, gzipped where the name ends in `.gz`; empty lines are passed over.
        told: is told the number of each line.

    Raises:
        ConfigError: it cannot be read, or lines are wrong; each is named with its number and its field.
    """
    problems: list[FieldProblem] = []
    digest, n_lines = sha256(), 0
    for number, line in _lines(path):
        digest.update(line)
        told(number)
        if not line.strip():
            continue
        n_lines += 1
        found = _parsed(line, number)
        if isinstance(found, PastOutcome):
            continue
        problems += found
        if len(problems) >= _MAX_PROBLEMS:
            break
    if problems:
        raise _refused(path, f"{path} is not a file of past outcomes", problems[:_MAX_PROBLEMS])
    return Checked(digest.hexdigest(), n_lines)


def past_outcomes(path: Path) -> Iterator[PastOutcome]:
    """The outcomes of a file that was checked.

    Raises:
        ConfigError: a line is wrong: the file was changed meanwhile.
    """
    for number, line in _lines(path):
        if line.strip():
            found = _parsed(line, number)
            if not isinstance(found, PastOutcome):
                raise _refused(path, f"{path} was changed while it was read", found)
            yield found


def teach(
    learner: Learner, outcomes: Iterable[PastOutcome], policy: LearningPolicy, cards: Iterable[AgentCard], now_ms: int
) -> Taught:
    """Learn from outcomes, in their order; nobody is demoted for what is past.

    Args:
        learner: learns.
        outcomes: of any agents.
        policy: what outcomes are worth, and the cap on a caller.
        cards: tell newest versions and timeouts.
        now_ms: stamps outcomes that tell no instant (epoch).

    Raises:
        ConfigError: learning is frozen.
    """
    if learner.frozen is not None:
        raise ConfigError(f"learning is frozen ({learner.frozen}): thaw it first")
    rules = policy.model_copy(update={"drift": policy.drift.model_copy(update={"enabled": False})})
    known = {card.key: card for card in cards}
    newest = _newest(known)
    sums: dict[tuple[str, ...], list[int]] = {}
    states: dict[tuple[str, ...], LearnerRow] = {}
    served = {key: {each.intent for each in card.capabilities} for key, card in known.items()}
    unknown: set[str] = set()
    unserved: set[str] = set()
    n_learned = n_not_charged = 0
    for past in outcomes:
        version = past.version or newest.get((past.namespace, past.agent_id), _UNKNOWN_VERSION)
        agent: AgentKey = (past.namespace, past.agent_id, version)
        card = known.get(agent)
        if card is None:
            unknown.add("/".join(agent))
        else:
            unserved.update(f"{intent} of {'/'.join(agent)}" for intent, _ in past.read if intent not in served[agent])
        worth = _worth(past, card, policy)
        if worth is None:
            n_not_charged += 1
            continue
        n_learned += 1
        at_ms = now_ms if past.happened_at is None else past.happened_at
        lesson = Lesson(agent, past.read, worth, past.caller, None, past.cost_usd, at_ms)
        _collect(learner.learn_one(lesson, rules).rows, sums, states)
    rows: list[Row] = [WeightRow(*key, *found) for key, found in sums.items()]  # type: ignore[arg-type]
    return Taught([*rows, *states.values()], n_learned, n_not_charged, sorted(unknown), sorted(unserved))


def _collect(
    rows: Iterable[Row], sums: dict[tuple[str, ...], list[int]], states: dict[tuple[str, ...], LearnerRow]
) -> None:
    for row in rows:
        if isinstance(row, LearnerRow):
            states[row[:3]] = row
        else:
            found = sums.setdefault(row[:5], [0, 0])
            found[0] += row.n
            found[1] += row.s


def _worth(past: PastOutcome, card: AgentCard | None, policy: LearningPolicy) -> float | None:
    """0..1; None where the agent is not to be judged by it."""
    if past.status is None:
        return past.reward
    timeout_ms = 0.0 if card is None else float(card.timeout_ms)
    outcome = Outcome(
        decision_id="past", status=past.status, latency_ms=past.latency_ms, cost_usd=past.cost_usd, quality=past.quality
    )
    return reward(outcome, charge(outcome, Call(timeout_ms, timeout_ms)), timeout_ms, policy.reward)


def _newest(known: Iterable[AgentKey]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for namespace, agent_id, version in known:
        before = found.get((namespace, agent_id))
        if before is None or order(before) < order(version):
            found[namespace, agent_id] = version
    return found


def _refused(path: Path, why: str, problems: Iterable[FieldProblem]) -> ConfigError:
    """The error that names the file with each of its wrong lines, as they are read far apart."""
    told = []
    for each in problems:
        field = f", {each.path}" if each.path else ""
        told.append(f"  line {each.line} of {path}{field}: {each.message}")
    return ConfigError("\n".join([f"{why}; nothing was imported", *told]))


def _parsed(line: bytes, number: int) -> PastOutcome | list[FieldProblem]:
    if len(line) > MAX_LINE_BYTES:
        return [FieldProblem("", f"is longer than {MAX_LINE_BYTES} bytes", number)]
    try:
        return PastOutcome.model_validate(plain(loads(line.rstrip(b"\r\n"), what="the line")))
    except MalformedBodyError as error:
        return [FieldProblem("", error.message, number)]
    except InvalidRequestError as error:
        return [FieldProblem(found.path, found.message, number) for found in error.problems]
    except ValidationError as error:
        return [FieldProblem(found.path, found.message, number) for found in problems_of(error, PastOutcome)]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line), no line longer than one byte more than may be."""
    with _opened(path) as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            yield number, line


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield cast(IO[bytes], file)
    except (OSError, EOFError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
