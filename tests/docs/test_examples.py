"""What the pages show works: cards, policies and requests are valid, commands exist, links lead somewhere."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import typer

from models.card import AgentCard
from models.errors import InvalidRequestError
from models.heartbeat import Heartbeat
from models.outcome import Outcome
from models.past_outcome import PastOutcome
from models.request import RouteRequest
from models.settings import Settings
from router.app import CALLS
from router.card_files import read_card_files
from router.card_schemas import check_card
from router.cli.main import app
from router.endpoints.body import parsed
from router.lint import lint_cards
from router.permit import OPEN
from router.policy_file import read_policy
from router.problems import problem_of
from router.running import running
from router.wire import loads
from tests.docs.pages import PAGES, ROOT, Example, anchors, examples, prose
from tests.router.asgi import speaking

EXAMPLES = list(examples())
KINDS = {
    ("sh", ""),
    ("", ""),
    ("yaml", "card"),
    ("yaml", "cards"),
    ("yaml", "policy"),
    ("json", "answer"),
    ("json", "card"),
    ("json", "heartbeat"),
    ("json", "outcome"),
    ("json", "past"),
    ("json", "problem"),
    ("json", "request"),
    ("json", "told"),
}
WALKS = ("feedback.md", "learning.md", "live.md")
PLACE = "DECISION"
"""Stands for the id of the last decision."""

LINK = re.compile(r"\[[^\]]*\]\(([^)]+)\)")


def of(language: str, *kinds: str) -> list[Any]:
    """Examples as parameters of a test."""
    found = [example for example in EXAMPLES if example.language == language and example.kind in kinds]
    assert found
    return [pytest.param(example, id=f"{example.page}-{number}") for number, example in enumerate(found)]


def lines_of_shell() -> list[Any]:
    lines = {line for example in EXAMPLES if example.language == "sh" for line in example.text.splitlines()}
    return sorted(lines)


def test_every_example_is_of_a_kind_that_is_checked() -> None:
    assert {(example.language, example.kind) for example in EXAMPLES} == KINDS


@pytest.mark.parametrize("example", of("yaml", "card", "cards"))
def test_cards_load_and_please_the_linter(example: Example, tmp_path: Path) -> None:
    file = tmp_path / "cards.yaml"
    file.write_text(example.text, encoding="utf-8")

    cards = read_card_files([file]).cards

    assert cards
    assert lint_cards(cards) == []


@pytest.mark.parametrize("example", of("json", "card"))
def test_a_card_to_put_is_valid(example: Example) -> None:
    card = AgentCard.model_validate({"agent_id": "any", **loads(example.text.encode())})

    assert check_card(card) == ()


@pytest.mark.parametrize("example", of("json", "past"))
def test_a_past_outcome_is_valid(example: Example) -> None:
    assert PastOutcome.model_validate_json(example.text).read


@pytest.mark.parametrize("example", of("yaml", "policy"))
def test_a_policy_is_valid(example: Example, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(example.text, encoding="utf-8")

    policy = read_policy(file)

    assert policy.of("prod/commerce").cross_namespaces == ["shared", "prod/shared"]
    assert policy.of("prod/commerce").intents["erase_user_data"].agents == ["prod_privacy_officer"]


@pytest.mark.parametrize("example", of("json", "request"))
def test_a_request_is_valid(example: Example) -> None:
    RouteRequest.model_validate(loads(example.text.encode()))


@pytest.mark.parametrize("example", of("json", "outcome"))
def test_an_outcome_is_valid(example: Example) -> None:
    Outcome.model_validate_json(example.text)


@pytest.mark.parametrize("example", of("json", "heartbeat"))
def test_a_heartbeat_is_valid(example: Example) -> None:
    Heartbeat.model_validate_json(example.text)


@pytest.mark.parametrize("example", of("json", "problem"))
def test_a_problem_is_what_is_really_said(example: Example) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parsed(RouteRequest, {"utterence": "where is my parcel"})

    assert problem_of(caught.value) == json.loads(example.text)


@pytest.mark.parametrize("line", lines_of_shell())
def test_a_command_that_is_shown_can_be_given(line: str) -> None:
    program, *words = shlex.split(line)
    if program == "curl":
        check_curl(words)
    elif program in ("./run", "agency-router") and words[0] not in ("test", "dev"):
        check_command(words)
    else:
        assert (ROOT / program).is_file()


def check_command(words: list[str]) -> None:
    """Parse a command line as the program would, without running it."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words[0]]
        words = words[1:]
    command.make_context(command.name, list(words))


def check_curl(words: list[str]) -> None:
    url = urlsplit(next(word for word in words if word.startswith("http")))
    method = "POST" if "-d" in words else "GET"
    call = next(call for call in CALLS if call.method == method and re.fullmatch(_pattern(call.path), url.path))

    assert set(parse_qs(url.query)) <= {parameter.name for parameter in call.parameters}
    assert url.port == Settings.model_fields["port"].default


def _pattern(path: str) -> str:
    return re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))


@pytest.mark.parametrize("page", WALKS)
async def test_a_walk_goes_as_it_is_told(page: str, tmp_path: Path) -> None:
    """What is asked in a page one after the other is asked here, and what is shown is part of what comes."""
    decision_id, body = "", ""
    n_told = 0

    async with speaking(tmp_path, watch=False) as (client, parts):
        await parts["readiness"].ready.wait()
        for example in (example for example in EXAMPLES if example.page == page):
            for line in example.text.splitlines() if example.language == "sh" else ():
                program, *words = shlex.split(line)
                if program == "curl":
                    body = (await _asked(client, words, decision_id)).text
                    decision_id = _decision_id(body) or decision_id
            if example.kind == "told":
                n_told += 1
                real = json.loads(body.replace(decision_id, PLACE) if decision_id else body)
                assert unlike(json.loads(example.text), real) == []

    assert n_told > 0


async def _asked(client: httpx.AsyncClient, words: list[str], decision_id: str) -> httpx.Response:
    url = urlsplit(next(word for word in words if word.startswith("http")))
    path = f"{url.path}?{url.query}"
    if "-d" not in words:
        return await client.get(path)
    return await client.post(path, content=words[words.index("-d") + 1].replace(PLACE, decision_id))


def _decision_id(body: str) -> str | None:
    told = json.loads(body)
    return told["decision_id"] if isinstance(told, dict) and "action" in told else None


async def test_the_answer_of_the_readme_is_the_one_that_comes(tmp_path: Path) -> None:
    shown = next(example for example in EXAMPLES if example.kind == "answer")
    curl = next(shlex.split(line) for line in lines_of_shell() if "/route?" in line and "utterance" in line)
    request = RouteRequest.model_validate_json(curl[curl.index("-d") + 1])
    settings = Settings(store=f"sqlite:///{tmp_path}/router.db", watch=False)

    async with running(settings) as parts:
        await parts["readiness"].ready.wait()
        _, body = await parts["service"].route(request, OPEN, explain=True)

    assert unlike(json.loads(shown.text), json.loads(body)) == []


def unlike(shown: Any, real: Any, path: str = "") -> list[str]:
    """Where what is shown is no part of what is real; numbers as far as another processor's rounding may move them."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return [each for name in shown for each in unlike(shown[name], real.get(name), f"{path}.{name}")]
    if isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        return [each for place, inner in enumerate(shown) for each in unlike(inner, real[place], f"{path}.{place}")]
    if path.endswith(".backoff_ms"):
        return [] if (shown > 0) == (real > 0) else [path]  # jitter
    if path.endswith(".why_not.text"):
        return [] if shown.split()[0] == real.split()[0] else [path]
    if isinstance(shown, float) and isinstance(real, float):
        return [] if real == pytest.approx(shown, abs=0.03) else [path]
    return [] if shown == real else [path]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(prose(path.read_text(encoding="utf-8"))):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def test_every_page_is_listed_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert {f"docs/{path.name}" for path in PAGES if path.parent.name == "docs"} <= set(LINK.findall(readme))
