"""The machine that figures were measured on: `python -m benchmarks.machine`; every benchmark prints it first."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from intent.embedder import cpu_features, int8_accelerated

PACKAGES = ("agency-router", "numpy", "faiss-cpu", "onnxruntime", "starlette", "uvicorn", "pydantic")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and with what something was measured.

    Attributes:
        n_cores: cores that this process may use.
        int8: whether the processor has int8 dot products; None where that is not known.
        load: average number of running processes over the last minute when it began; figures are of a quiet machine
            only where it is near 0.
        versions: package → version; "-" where it is not installed.
    """

    date: str
    cpu: str
    n_cores: int
    int8: bool | None
    load: float
    python: str
    versions: dict[str, str]

    @classmethod
    def here(cls) -> Machine:
        """This machine, now."""
        return cls(
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            cpu=cpu_model(),
            n_cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            int8=int8_accelerated(cpu_features()),
            load=round(os.getloadavg()[0], 2),
            python=platform.python_version(),
            versions={name: _version(name) for name in PACKAGES},
        )

    def lines(self) -> list[str]:
        """The same for people."""
        dots = {True: "with int8 dot products", False: "without int8 dot products", None: "int8 unknown"}[self.int8]
        installed = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return [
            f"{self.date}, {self.cpu}, {self.n_cores} cores, {dots}, {platform.system()} {platform.machine()}, "
            f"load average {self.load}",
            f"Python {self.python}, {installed}",
        ]

    def as_json(self) -> dict[str, object]:
        """The same for programs."""
        return asdict(self)


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name as Linux tells it, else what Python knows of it."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip().lower() == "model name" and value.strip():
            return value.strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"


if __name__ == "__main__":
    print("\n".join(Machine.here().lines()))
