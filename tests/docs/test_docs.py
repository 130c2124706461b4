"""Every name of the product is on its page, and no page names what there is not: asked of the real objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from pydantic import BaseModel

from intent.calibrate import Calibration
from intent.dummy_embedder import DummyEmbedder
from intent.llm.escalated import EscalationStatus, Origin
from models import candidate, card, decision, errors, learning_policy, live_policy, policy, request
from models.events import EventType
from models.key import ADMIN, READ
from models.learning_policy import RetentionPolicy
from models.past_outcome import PastOutcome
from models.settings import Settings
from router.app import CALLS
from router.cli.main import app
from router.endpoints.records import EVENT
from router.endpoints.routing import HEADERS
from router.index import POOL_WIDTH, POOLED_ROWS
from router.metrics import Metrics
from router.problem_statuses import status_of
from router.running import running
from tests.docs.pages import code, named, page, prose, rows, sections

CARD_MODELS = (card.AgentCard, card.Capability, card.Retry, card.Probe, card.RateLimit, card.FallbackForms, card.Price)
POLICY_MODELS = (
    policy.Policy,
    policy.NamespacePolicy,
    policy.BlendWeights,
    policy.CostWeights,
    policy.Confidence,
    policy.IntentPolicy,
    policy.AgentPolicy,
    policy.Rule,
    policy.LlmPolicy,
    live_policy.HealthPolicy,
    live_policy.BreakerPolicy,
    live_policy.DependencyPolicy,
    live_policy.EjectionPolicy,
    live_policy.LeasePolicy,
    live_policy.PoisonPolicy,
    live_policy.SessionPolicy,
    live_policy.QueuePolicy,
    live_policy.Quota,
    learning_policy.LearningPolicy,
    learning_policy.RewardPolicy,
    learning_policy.DriftPolicy,
    learning_policy.FreezePolicy,
    learning_policy.RiskPolicy,
    learning_policy.RetentionPolicy,
)
DECISION_MODELS = (
    decision.RouteDecision,
    decision.IntentReading,
    decision.EntityValue,
    decision.Target,
    decision.Attempt,
    candidate.Candidate,
    candidate.WhyNot,
    decision.Clarify,
    decision.Fallback,
    decision.QueueTicket,
    decision.SkippedVersion,
    decision.Lease,
    decision.Generations,
)


def fields(model: type[BaseModel]) -> list[str]:
    return [field.serialization_alias or name for name, field in model.model_fields.items()]


def shown(value: Any) -> str:
    """A default as a page writes it."""
    if value in ((), None):
        return "none"
    if isinstance(value, tuple):
        return f"`{json.dumps(value)}`"
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"


def described(model: type[BaseModel], text: str) -> list[tuple[str, str]]:
    """(field, default) of the table in the model's own section."""
    return [(row[0].strip("`"), row[1]) for row in rows(sections(text)[model.__name__]) if row[0].startswith("`")]


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its full name."""

    def below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        if hasattr(command, "commands"):
            for word, inner in command.commands.items():
                yield from below(f"{name} {word}", inner)
        else:
            yield name, command

    yield from below("agency-router", typer.main.get_command(app))


def every_class(root: type[errors.RouterError]) -> Iterator[type[errors.RouterError]]:
    yield root
    for kind in root.__subclasses__():
        yield from every_class(kind)


def test_settings_are_told_with_their_defaults_and_descriptions() -> None:
    wanted = [[f"`{name}`", shown(field.default), field.description] for name, field in Settings.model_fields.items()]

    assert [row for row in rows(page("settings.md")) if row[0].startswith("`")] == wanted


def test_every_call_has_its_section_with_its_parameters() -> None:
    text = page("http.md")
    told = sections(text)

    assert {f"{call.method} {call.path}" for call in CALLS} <= code(text)
    for call in CALLS:
        section = told[f"{call.method} {call.path}"]
        if call.path != "/route/batch":
            assert [parameter.name for parameter in call.parameters] == [
                name for name in named(section) if name not in HEADERS
            ], call.path


def test_no_call_is_told_that_there_is_not() -> None:
    calls = {f"{call.method} {call.path}" for call in CALLS}
    told = {each for each in code(page("http.md")) if re.match(r"(GET|PUT|POST|DELETE) /", each)}

    assert told == calls


def test_headers_of_the_answer_are_told() -> None:
    assert set(HEADERS) <= set(named(sections(page("http.md"))["POST /route"]))


def test_every_code_of_a_problem_stands_beside_its_status() -> None:
    section = sections(page("http.md"))["Problems"]
    told = {(row[1].strip("`"), int(row[0])) for row in rows(section) if row[0].isdigit()}
    # errors of other modules never reach a caller
    kinds = [kind for kind in every_class(errors.RouterError) if kind.__module__ == "models.errors"]
    elsewhere = {"config_invalid", "encoder_unusable", "bad_request", "model_invalid"}

    assert told == {(kind.code, status_of(kind("x", 1) if issubclass(kind, errors.OverloadedError) else kind("x")))
                    for kind in kinds if kind.code not in elsewhere}  # fmt: skip
    assert elsewhere <= code(section)


@pytest.mark.parametrize(("name", "command"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_a_command_is_told_with_all_it_takes(name: str, command: Any) -> None:
    told = named(sections(page("cli.md"))[name])
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]

    assert {word.split()[0] for word in told if word.startswith("--")} == options - {"--help"}
    assert len([word for word in told if not word.startswith("--")]) == len(arguments)


def test_no_command_is_told_that_there_is_not() -> None:
    told = {heading for heading in sections(page("cli.md")) if heading.startswith("agency-router ")}

    assert told == {name for name, _ in commands()}


@pytest.mark.parametrize("model", CARD_MODELS, ids=lambda model: model.__name__)
def test_a_card_is_told_field_by_field(model: type[BaseModel]) -> None:
    told = named(sections(page("cards.md"))[model.__name__])

    assert told[: len(fields(model))] == fields(model)


def test_the_forms_of_a_fallback_are_told() -> None:
    assert named(sections(page("cards.md"))["FallbackForms"])[3:] == fields(card.FallbackForm)


@pytest.mark.parametrize("words", [card.Protocol, card.Risk, card.RetryOn, card.BuiltInSchema])
def test_the_words_a_card_may_use_are_told(words: Any) -> None:
    assert set(get_args(words)) <= code(page("cards.md"))


@pytest.mark.parametrize("model", POLICY_MODELS, ids=lambda model: model.__name__)
def test_a_policy_is_told_field_by_field(model: type[BaseModel]) -> None:
    assert named(sections(page("policy.md"))[model.__name__]) == fields(model)


@pytest.mark.parametrize("model", [*CARD_MODELS, *POLICY_MODELS], ids=lambda model: model.__name__)
def test_plain_defaults_are_the_real_ones(model: type[BaseModel]) -> None:
    text = page("policy.md" if model in POLICY_MODELS else "cards.md")
    told = dict(described(model, text))
    plain = {name: field.default for name, field in model.model_fields.items()
             if isinstance(field.default, str | int | float) and field.default != ""}  # fmt: skip

    assert {name: told[name] for name in plain} == {
        name: f"`{value:g}`" if isinstance(value, float) else shown(value) for name, value in plain.items()
    }


def test_a_request_is_told_field_by_field() -> None:
    told = sections(page("requests.md"))

    assert named(told["RouteRequest"]) == fields(request.RouteRequest)
    assert named(told["Caller"]) == fields(request.Caller)


@pytest.mark.parametrize("model", DECISION_MODELS, ids=lambda model: model.__name__)
def test_a_decision_is_told_field_by_field(model: type[BaseModel]) -> None:
    assert [row[0].strip("`") for row in rows(sections(page("requests.md"))[model.__name__]) if row[0] != "field"] == (
        fields(model)
    )


@pytest.mark.parametrize(
    ("model", "section"),
    [
        (decision.Envelope, "Envelope"),
        (decision.IntentAlternative, "IntentReading"),
        (candidate.Features, "Candidate"),
        (candidate.Contributions, "Candidate"),
        (candidate.Change, "WhyNot"),
        (decision.ClarifyOption, "Clarify"),
    ],
)
def test_a_small_part_of_a_decision_is_told_where_it_belongs(model: type[BaseModel], section: str) -> None:
    assert set(fields(model)) <= code(sections(page("requests.md"))[section])


@pytest.mark.parametrize(
    ("words", "section"),
    [(decision.Action, "Actions"), (decision.Reason, "Reasons"), (candidate.Stage, "Stages"), (EventType, "Events")],
)
def test_every_word_of_an_answer_is_told(words: Any, section: str) -> None:
    assert {word.value for word in words} <= code(sections(page("requests.md"))[section])


def test_stages_are_told_in_their_order() -> None:
    assert named(sections(page("requests.md"))["Stages"]) == [stage.value for stage in candidate.Stage]


def test_an_event_is_told_field_by_field() -> None:
    assert named(sections(page("requests.md"))["Events"]) == list(EVENT["properties"])


def test_every_feature_is_told() -> None:
    told = set(named(sections(page("selection.md"))["Features"]))

    assert set(fields(candidate.Features)) == told


def test_the_numbers_of_reading_are_the_shipped_ones() -> None:
    told = sections(page("reading.md"))
    numbers = {row[0].strip("`"): row[1] for row in rows(told["Calibration"])}
    shipped = Calibration()

    for name in ("similarity_weight", "lead_weight", "bias", "max_lead"):
        assert numbers[name] == str(getattr(shipped, name))
    assert f"nearest {POOLED_ROWS} texts" in told["Pooling"]
    assert f"/ {POOL_WIDTH})" in told["Pooling"]


def test_every_end_of_asking_a_language_model_is_told() -> None:
    section = sections(page("reading.md"))["Language model"]

    assert named(section).count("none") == 1
    assert set(named(section)) == set(EscalationStatus)
    assert set(Origin) <= code(section)


def test_the_thresholds_are_the_shipped_ones() -> None:
    told = prose(page("reading.md"))
    shipped = policy.Confidence()

    assert f"`accept` ({shipped.accept:g})" in told
    assert f"`plausible` ({shipped.plausible:g})" in told


def test_the_cost_weights_of_selection_are_the_shipped_ones() -> None:
    told = {row[0].strip("`"): row[1] for row in rows(sections(page("selection.md"))["Preference"])}

    for name, value in policy.CostWeights().model_dump().items():
        assert told[name] == f"{value:g}"


async def test_every_metric_is_told(tmp_path: Path) -> None:
    told = set(named(sections(page("operation.md"))["Metrics"]))
    settings = Settings(store=f"sqlite:///{tmp_path}/router.db", watch=False)
    metrics = Metrics()

    async with running(settings, embedder=DummyEmbedder()) as parts:
        await parts["readiness"].ready.wait()
        metrics.observe(parts)
        found = {
            f"{metric.name}_total" if metric.type == "counter" else metric.name for metric in metrics.registry.collect()
        }

    assert told == {name for name in found if name.startswith("agency_router_")}


def test_permissions_of_the_service_are_told() -> None:
    assert {READ, ADMIN} == set(named(sections(page("operation.md"))["Keys"])) & {READ, ADMIN}


def test_a_past_outcome_is_told_field_by_field() -> None:
    assert named(sections(page("feedback.md"))["Past outcomes"]) == fields(PastOutcome)


def test_the_ways_to_keep_utterances_are_told() -> None:
    kept = get_args(RetentionPolicy.model_fields["utterances"].annotation)

    assert named(sections(page("privacy.md"))["What is kept"]) == list(kept)


def test_each_age_is_told() -> None:
    ages = [name for name in fields(RetentionPolicy) if name.endswith("_days")]

    assert named(sections(page("privacy.md"))["For how long"]) == ages
