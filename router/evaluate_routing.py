"""Evaluation of routing: labelled requests against the decisions they get."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from models.contract import Contract
from models.errors import ConfigError, FieldProblem, RequestError
from models.request import RouteRequest
from router.field_problems import problems_of
from router.numbers import EXACT, plain
from router.permit import Grants
from router.problem_statuses import status_of
from router.service import RouteService
from router.wire import dumps, loads

_MAX_MISSES = 50


class LabelledRequest(Contract):
    """One line of a requests file.

    Attributes:
        request: the body of `POST /route`.
        permissions: what the caller's key grants.
        expect: path into the answer → value, or several of them divided by `|`; `status` is the HTTP status.
        from_: ignored; lets files say since when a case holds.
    """

    name: str = ""
    request: dict[str, Any]
    permissions: list[str] = []
    expect: dict[str, Any]
    from_: Any = None


@dataclass(slots=True)
class RoutingScore:
    """What came of the labelled requests; each counts under one verdict.

    Attributes:
        verdicts: right, wrong_agent, wrongly_allowed, wrongly_denied, abstained, wrong.
        cost_levels: of the agents that were chosen.
        latencies_ms: of the decisions.
        misses: what was not right, with what was expected and what came.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    cost_levels: list[int] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    misses: list[dict[str, Any]] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """As one JSON object; shares are of all requests, the mean cost is that of the chosen agents."""
        n = sum(self.verdicts.values())
        names = ("right", "wrong_agent", "wrongly_allowed", "wrongly_denied", "abstained", "wrong")
        quantiles = np.quantile(self.latencies_ms, (0.5, 0.95, 0.99)) if self.latencies_ms else (0.0, 0.0, 0.0)
        return {
            "n": n,
            **{name: self.verdicts[name] for name in names},
            "accuracy": self.verdicts["right"] / n if n else 0.0,
            "mean_cost_level": float(np.mean(self.cost_levels)) if self.cost_levels else None,
            **{f"p{p}_ms": round(float(q), 3) for p, q in zip((50, 95, 99), quantiles, strict=True)},
            "misses": self.misses,
        }


def read_requests(path: Path) -> list[LabelledRequest]:
    """The labelled requests of a JSON Lines file.

    Raises:
        ConfigError: it cannot be read, or lines are wrong; each with its number.
    """
    try:
        # not splitlines: it splits at characters that may stand in JSON text
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    requests: list[LabelledRequest] = []
    problems: list[FieldProblem] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = loads(line.encode(), what="the line")
            if isinstance(value, dict) and "from" in value:
                value["from_"] = value.pop("from")
            requests.append(LabelledRequest.model_validate(value))
        except RequestError as error:
            problems.append(FieldProblem("", error.message, number))
        except ValidationError as error:
            problems += [FieldProblem(p.path, p.message, number) for p in problems_of(error, LabelledRequest)]
    if problems:
        raise ConfigError(f"{path}: {len(problems)} lines are wrong", problems[:20])
    return requests


async def evaluate_routing(service: RouteService, requests: Iterable[LabelledRequest]) -> RoutingScore:
    """Decide every request and compare."""
    score = RoutingScore()
    for labelled in requests:
        answer = await _answer(service, labelled)
        verdict = verdict_of(labelled.expect, answer)
        score.verdicts[verdict] += 1
        if answer.get("target"):
            score.cost_levels.append(answer["target"]["cost_level"])
        if "elapsed_ms" in answer:
            score.latencies_ms.append(float(answer["elapsed_ms"]))
        if verdict != "right" and len(score.misses) < _MAX_MISSES:
            got = {path: at(answer, path) for path in labelled.expect}
            miss = {"name": labelled.name, "verdict": verdict, "expected": labelled.expect, "got": got}
            # through JSON: long decimals came as Decimal
            score.misses.append(json.loads(dumps(miss)))
    return score


def verdict_of(expect: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """What an answer is worth against what was expected.

    >>> verdict_of({"target.agent_id": "a|b"}, {"status": 200, "action": "invoke", "target": {"agent_id": "b"}})
    'right'
    >>> verdict_of({"action": "deny"}, {"status": 200, "action": "invoke"})
    'wrongly_allowed'
    """
    if all(_fits(wanted, at(answer, path)) for path, wanted in expect.items()):
        return "right"
    action = answer.get("action")
    wanted = expect.get("action", "invoke" if "target.agent_id" in expect else None)
    if not _fits(wanted, "invoke"):
        is_refusal = wanted is not None or expect.get("status", 200) != 200
        return "wrongly_allowed" if is_refusal and action == "invoke" else "wrong"
    if action == "deny":
        return "wrongly_denied"
    if action not in (None, "invoke"):
        return "abstained"
    wanted_agent = expect.get("target.agent_id")
    is_right_agent = wanted_agent is None or _fits(wanted_agent, at(answer, "target.agent_id"))
    return "wrong" if action is None or is_right_agent else "wrong_agent"


def at(answer: Any, path: str) -> Any:
    """The value at a dotted path, numbers being places in a list; None where there is none.

    >>> at({"parts": [{"intent": {"name": "x"}}]}, "parts.0.intent.name")
    'x'
    """
    value = answer
    for step in path.split("."):
        if isinstance(value, list):
            value = value[int(step)] if step.isdigit() and int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _fits(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, str) and isinstance(got, str):
        return got in wanted.split("|")
    return bool(wanted == got)


async def _answer(service: RouteService, labelled: LabelledRequest) -> dict[str, Any]:
    try:
        request = RouteRequest.model_validate(plain(labelled.request, EXACT))
        _, body = await service.route(request, Grants("evaluation", frozenset(labelled.permissions)))
    except ValidationError:
        return {"status": 422}
    except RequestError as error:
        return {"status": status_of(error)}
    answer: dict[str, Any] = loads(body)
    return {"status": 200, **answer}
