from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from models.key import Key
from router.cli.keys import app
from router.keys import KeyRing
from router.stores.open import open_store
from tests.router.stores.samples import ROOT, url_of


@pytest.fixture
def url(tmp_path: Path) -> str:
    return url_of(tmp_path / "keys.db")


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def read(*arguments: str) -> Any:
    code, out, errors = invoke(*arguments, "--json")
    assert (code, errors, out.count("\n")) == (0, "", 1)
    return json.loads(out)


def authenticate(url: str, token: str) -> Key | None:
    async def work() -> Key | None:
        async with open_store(url) as store:
            ring = KeyRing()
            await ring.refresh(store.keys)
            return ring.authenticate(token)

    return asyncio.run(work())


def test_a_key_made_on_a_fresh_store_authenticates_with_what_it_was_granted(url: str) -> None:
    granted = ["--permission", "user:erase", "--permission", "router:admin", "--namespace", "prod", "--caller", "a-b"]
    made = read("create", "shop", *granted, "--store", url)
    key = authenticate(url, made["key"])
    assert key is not None
    assert (key.name, key.key_id) == (made["name"], made["key_id"])
    assert key.permissions == {"user:erase", "router:admin"}
    assert (key.namespaces, key.callers) == (frozenset({"prod"}), frozenset({"a-b"}))


def test_names_with_blanks_inside_and_permissions_of_ones_own_stay_free(url: str) -> None:
    made = read("create", "Küche Süd", "--permission", "routers:foo", "--permission", "router", "--store", url)
    assert (made["name"], made["permissions"]) == ("Küche Süd", ["router", "routers:foo"])


def test_without_options_a_key_has_no_permissions_and_goes_anywhere_as_anyone(url: str) -> None:
    key = authenticate(url, read("create", "shop", "--store", url)["key"])
    assert key is not None
    assert (key.permissions, key.namespaces, key.callers) == (frozenset(), None, None)


def test_for_people_the_key_alone_goes_to_stdout(url: str) -> None:
    code, out, errors = invoke("create", "shop", "--store", url)
    assert code == 0
    assert authenticate(url, out.strip()) is not None
    assert "cannot be shown again" in errors
    assert out.strip() not in errors


def test_listing_shows_all_keys_and_no_secret(url: str) -> None:
    token = read("create", "shop", "--permission", "user:erase", "--store", url)["key"]
    read("create", "other", "--store", url)
    assert read("revoke", "other", "--store", url)["name"] == "other"
    keys = read("list", "--store", url)["keys"]
    assert [(key["name"], key["permissions"], key["namespaces"]) for key in keys] == [
        ("shop", ["user:erase"], None),
        ("other", [], None),
    ]
    assert [key["revoked_at"] is None for key in keys] == [True, False]
    code, out, _ = invoke("list", "--store", url)
    assert code == 0
    assert "shop" in out
    assert "any" in out
    for text in (out, json.dumps(keys)):
        assert token.split("_")[2] not in text


def test_a_revoked_key_no_longer_authenticates_and_frees_its_name(url: str) -> None:
    token = read("create", "shop", "--store", url)["key"]
    code, _, errors = invoke("revoke", "shop", "--store", url)
    assert code == 0
    assert "revoked" in errors
    assert authenticate(url, token) is None
    assert authenticate(url, read("create", "shop", "--store", url)["key"]) is not None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["shop", "--permission", "two words"], ["--permission", "'two words'", "user:erase"]),
        (["shop", "--permission", ""], ["--permission", "''"]),
        (["shop", "--namespace", "a//b"], ["--namespace", "'a//b'", "prod/commerce"]),
        (["shop", "--caller", "-x y", "--namespace", "ü"], ["--caller", "--namespace", "order-agent"]),
        (
            ["shop", "--permission", "router:reed", "--permission", "shop:any"],
            ["--permission: 'router:reed' is no permission", "did you mean router:read?", "router:admin, router:read"],
        ),
        (["shop", "--permission", "router:foo"], ["'router:foo'", "router; known are router:admin", "router:review"]),
        ([""], ["NAME", "1 to 128 characters"]),
        (["bad name\nx"], ["NAME 'bad name\\nx'", "no control characters"]),
        ([" shop"], ["NAME ' shop'", "no blank at either end"]),
        (["\udcff"], ["NAME"]),
    ],
)
def test_an_invalid_option_is_named_with_what_would_be_right(url: str, arguments: list[str], named: list[str]) -> None:
    code, out, errors = invoke("create", *arguments, "--store", url, "--json")
    assert (code, out) == (2, "")
    for text in named:
        assert text in errors
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_a_taken_name_and_an_unknown_one_are_errors(url: str) -> None:
    read("create", "shop", "--store", url)
    code, out, errors = invoke("create", "shop", "--store", url, "--json")
    assert (code, out) == (1, "")
    assert "'shop' exists" in errors
    code, out, errors = invoke("revoke", "nobody", "--store", url, "--json")
    assert (code, out) == (1, "")
    assert "no valid key named 'nobody'" in errors


@pytest.mark.parametrize(("command", "status"), [(["create", "shop"], 1), (["list"], 2), (["revoke", "shop"], 1)])
def test_an_unusable_store_is_an_error_without_a_traceback(command: list[str], status: int) -> None:
    code, out, errors = invoke(*command, "--store", "postgresql://u:hunter2@h/d", "--json")
    assert (code, out) == (status, "")
    assert "not supported" in errors
    assert "hunter2" not in errors
    assert "Traceback" not in errors


def test_the_store_may_be_named_by_the_environment(url: str) -> None:
    result = CliRunner().invoke(app, ["create", "shop", "--json"], env={"AGENCY_ROUTER_STORE": url})
    assert authenticate(url, json.loads(result.stdout)["key"]) is not None


def test_help_imports_neither_the_database_nor_the_contracts() -> None:
    code = "import sys, router.cli.keys, router.cli.store; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"sqlalchemy", "pydantic", "alembic"} & set(loaded.stdout.split())
