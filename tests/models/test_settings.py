from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from models.settings import DEFAULT_STORE, Settings


def test_every_setting_says_what_it_is() -> None:
    undescribed = [name for name, field in Settings.model_fields.items() if not field.description]
    assert undescribed == []


def test_the_environment_sets_what_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_ROUTER_PORT", "9000")
    monkeypatch.setenv("AGENCY_ROUTER_CARDS", '["a.yaml", "more"]')
    monkeypatch.setenv("AGENCY_ROUTER_WATCH", "false")
    settings = Settings()
    assert (settings.port, settings.cards, settings.watch) == (9000, (Path("a.yaml"), Path("more")), False)
    assert settings.store == DEFAULT_STORE
    assert Settings(port=1234).port == 1234


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 65_536},
        {"port": -1},
        {"max_batch": 257},
        {"max_body_bytes": 10},
        {"embed_threads": 0},
        {"journal_rows": 99},
        {"log_level": "loud"},
        {"probe_hosts": ("10.0.0.1/8",)},
        {"probe_hosts": ("a.example", "*foo.example")},
        {"probe_hosts": ("http://a.example",)},
        {"probe_hosts": ("",)},
        {"prot": 80},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(**wrong)
    assert [error["loc"] for error in caught.value.errors()] == [tuple(wrong)]


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1


def test_hosts_to_probe_are_names_suffixes_addresses_and_networks() -> None:
    hosts = ("*", "*.example", "a-1.example.", "agent_1", "192.0.2.1", "10.0.0.0/8", "::1", "fd00::/8")
    assert Settings(probe_hosts=hosts).probe_hosts == hosts
