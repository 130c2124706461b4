"""The installed service as a process of its own, spoken to over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from router.keys import create_key
from router.stores.open import open_store

SCRIPT = Path(sys.executable).with_name("agency-router")
SHOP = Path(__file__).parents[1] / "data" / "shop"
SHOP_CARDS = ("--cards", str(SHOP / "cards.yaml"), "--cards", str(SHOP / "card-nested.yaml"))
SHOP_OPTIONS = (*SHOP_CARDS, "--policy", str(SHOP / "policy.yaml"))
SHOP_NAMESPACE = "live/bikes"
CLASSIFYING = {"AGENCY_ROUTER_CLASSIFIER": "true"}
"""Fitting takes seconds, so a server does it only where a test says so by its `env`."""

WAIT_S = 60.0
_LOOK_S = 0.02
_LISTENS = re.compile(r"listening on http://\S+?:(\d+),")


class Server:
    """`agency-router serve` on a free port of loopback, with its store and its log in `folder`.

    Attributes:
        log: all that it has written to stdout and stderr, over all its starts.
        client: speaks to it; only while it runs.
    """

    client: httpx.Client
    process: subprocess.Popen[bytes]

    def __init__(self, folder: Path, *options: str, env: Mapping[str, str] | None = None) -> None:
        self.store = f"sqlite:///{folder / 'store.db'}"
        self._log = folder / "log"
        self._folder = folder
        self._options = options
        self._env = {**environment(), "AGENCY_ROUTER_CLASSIFIER": "false", **(env or {})}

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    @property
    def port(self) -> int:
        return int(_LISTENS.findall(self.log)[-1])

    def start(self, *, until_ready: bool = True) -> Server:
        """Start it, and wait until it listens, or until it can decide."""
        before = self.log.count("listening on") if self._log.exists() else 0
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [SCRIPT, "serve", "--port", "0", "--store", self.store, *self._options],
                stdout=log, stderr=log, cwd=self._folder, env=self._env,
            )  # fmt: skip
        self.wait(lambda: self.log.count("listening on") > before, "it does not listen")
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=WAIT_S)
        if until_ready:
            self.wait(lambda: self.client.get("/readyz").status_code == 200, "it does not get ready")
        return self

    def wait(self, claim: Any, what: str) -> None:
        """Return once `claim()` holds; AssertionError with the log if it does not, or the process ends."""
        until = time.monotonic() + WAIT_S
        while not claim():
            assert self.process.poll() is None, f"it ended:\n{self.log}"
            assert time.monotonic() < until, f"{what}:\n{self.log}"
            time.sleep(_LOOK_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to stop and wait; its exit status."""
        self.process.send_signal(number)
        return self.ended()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.ended()

    def ended(self) -> int:
        """Wait for its end; its exit status."""
        with suppress(AttributeError):
            self.client.close()
        return self.process.wait(WAIT_S)

    def connect(self) -> socket.socket:
        """A bare connection, for what no proper client would send."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)

    def key(self, name: str, *permissions: str, callers: Sequence[str] | None = None) -> dict[str, str]:
        """Make a key, as another process may while it serves; the header that presents it."""

        async def add() -> str:
            key, token = create_key(name, permissions, None, callers, now_ms=0)
            async with open_store(self.store) as store:
                await store.keys.add_key(key)
            return token

        return {"Authorization": f"Bearer {asyncio.run(add())}"}


def environment() -> dict[str, str]:
    """The environment without settings of this machine's own service."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AGENCY_ROUTER_")}


def run(*arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run the console script; (exit status, stdout, stderr)."""
    done = subprocess.run(
        [SCRIPT, *arguments],
        capture_output=True, text=True, timeout=WAIT_S * 2, cwd=cwd, env={**environment(), **(env or {})}, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def run_json(*arguments: str) -> Any:
    """Run the console script with `--json`; its one object."""
    code, out, errors = run(*arguments, "--json")
    assert code == 0, errors
    assert out.count("\n") == 1
    return json.loads(out)


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Assert that an answer is this problem document; the document."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json"), (
        response.text
    )
    body: dict[str, Any] = response.json()
    assert sorted(body) == ["code", "detail", "errors", "status", "title", "type"]
    assert (body["status"], body["code"]) == (status, code)
    assert body["detail"]
    return body


def paths_of(body: Mapping[str, Any]) -> list[str]:
    """The fields that a problem document names."""
    return [each["path"] for each in body["errors"]]
