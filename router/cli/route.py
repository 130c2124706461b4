"""`agency-router route`: one decision without a server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.output import emit_json, fail, say, table
from router.cli.scratch import scratch

if TYPE_CHECKING:
    from router.running import Parts

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def route(
    text: Annotated[str, typer.Argument(help="The utterance.")],
    cards: Annotated[list[Path] | None, typer.Option(help="Card file or folder; none: the example set.")] = None,
    policy: Annotated[Path | None, typer.Option(help="Policy file.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Where to route; needed if the cards have several.")] = None,
    caller: Annotated[str | None, typer.Option(help="Agent id as which to ask.")] = None,
    permission: Annotated[list[str] | None, typer.Option(help="What the caller may; none given: everything.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show all candidates.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Decide for one utterance and say why."""
    from pydantic import ValidationError

    from models.errors import RouterError
    from models.request import RouteRequest
    from router.field_problems import problems_of

    try:
        request = RouteRequest.model_validate(
            {
                "utterance": text,
                "namespace": "default" if namespace is None else namespace,
                "caller": {"agent_id": caller},
            }
        )
    except ValidationError as error:
        fail("; ".join(map(str, problems_of(error, RouteRequest))), 2)
    try:
        answer = asyncio.run(_decide(request, namespace, cards, policy, permission, explain))
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json(answer)
    else:
        _show(answer, explain)


async def _decide(
    request: Any,
    namespace: str | None,
    cards: list[Path] | None,
    policy: Path | None,
    permissions: list[str] | None,
    explain: bool,
) -> dict[str, Any]:
    from router.permit import Grants

    grants = Grants("", frozenset(permissions) if permissions else None)
    async with scratch(cards, policy) as parts:
        if namespace is None:
            request = request.model_copy(update={"namespace": _only_namespace(parts)})
        _, body = await parts["service"].route(request, grants, explain=explain)
    answer: dict[str, Any] = json.loads(body)
    return answer


def _only_namespace(parts: Parts) -> str:
    names = sorted({card.namespace for card in parts["registry"].snapshot.cards})
    if len(names) != 1:
        fail(f"the cards have the namespaces {', '.join(names) or '(none)'}: name one with --namespace", 2)
    return names[0]


def _show(answer: dict[str, Any], explain: bool) -> None:
    intent, target = answer["intent"], answer["target"]
    read = f"{intent['name']} ({intent['confidence']:.0%}, {intent['source']})" if intent else "nothing"
    rows = [["action", answer["action"]], ["reason", answer["reason"]], ["intent", read]]
    if target:
        rows.append(["agent", f"{target['agent_id']} {target['version']} at {target['endpoint']}"])
    if answer["clarify"]:
        rows.append(["question", answer["clarify"]["question"]])
    if answer["fallback"]:
        rows.append(["fallback", answer["fallback"]["message_internal"]])
    rows.append(["time", f"{answer['elapsed_ms']:.2f} ms"])
    table(["", ""], rows)
    if explain:
        table(["agent", "intent", "merit", "utility", "why not"], [_row(each) for each in answer["candidates"]])
    else:
        say("--explain shows all candidates, --json the whole decision")


def _row(candidate: dict[str, Any]) -> list[str]:
    missing = candidate["why_not"]["text"] if candidate["why_not"] else candidate["excluded"] or "chosen"
    numbers = ["" if candidate[name] is None else f"{candidate[name]:.3f}" for name in ("merit", "utility")]
    return [candidate["agent_id"], candidate["intent"], *numbers, missing]
