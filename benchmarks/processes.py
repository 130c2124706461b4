"""Servers in processes of their own: start, wait until ready, measure, stop."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import MappingProxyType

from benchmarks.load_client import Outcome, Plan

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parents[1]
_READY_S = 300
_STOP_S = 30


@dataclass(frozen=True, slots=True)
class Server:
    """One that is ready.

    Attributes:
        ready_s: from the start of its process to the first good answer of `/readyz`.
    """

    port: int
    pid: int
    ready_s: float

    def memory_mb(self) -> float | None:
        """Resident memory now, in 10^6 bytes; None where the system does not tell."""
        return resident_mb(Path(f"/proc/{self.pid}/status"))

    def cpu_s(self) -> float | None:
        """Processor time used so far, all threads; None where the system does not tell."""
        return cpu_seconds(Path(f"/proc/{self.pid}/stat"))


def console_script() -> str:
    """The installed `agency-router`."""
    return str(Path(sys.executable).with_name("agency-router"))


def make_key(store: str, permissions: Sequence[str]) -> str:
    """A key that grants these permissions, made by the command line."""
    grants = [word for permission in permissions for word in ("--permission", permission)]
    command = [console_script(), "keys", "create", "bench", *grants, "--store", store, "--json"]
    made = subprocess.run(command, check=True, capture_output=True, text=True, env=_environment())
    return str(json.loads(made.stdout)["key"])


@contextmanager
def served(
    command: Sequence[str], port: int, log: Path, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Server]:
    """A server that this command starts, ready; it is stopped at the end.

    Args:
        settings: of the router, by their names in the environment; all others are as shipped.
    """
    begin, around = time.perf_counter(), {**_environment(), **settings}
    with log.open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out, cwd=ROOT, env=around) as it:
        try:
            _wait(it, port, log)
            yield Server(port, it.pid, time.perf_counter() - begin)
        finally:
            it.terminate()
            try:
                it.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                it.kill()


def send(plan: Plan) -> Outcome:
    """Run a plan in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.load_client"]
    text = json.dumps(asdict(plan))
    done = subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return Outcome(**json.loads(done.stdout))


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def resident_mb(status: Path) -> float | None:
    """VmRSS of a /proc/PID/status file, in 10^6 bytes; None where there is none."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return None
    found = (int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmRSS:"))
    return next(found, None)


def cpu_seconds(stat: Path) -> float | None:
    """User and system time of a /proc/PID/stat file; None where there is none."""
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.perf_counter() + _READY_S
    while time.perf_counter() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}: {log.read_text()[-2000:]}")
        if _is_ready(port):
            return
        time.sleep(0.005)
    raise RuntimeError(f"the server was not ready after {_READY_S} s: {log.read_text()[-2000:]}")


def _is_ready(port: int) -> bool:
    connection = HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _environment() -> dict[str, str]:
    """Ours without settings of the router, which would change what is measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AGENCY_ROUTER_")}
