"""Report: figures as they are measured, each with its goal and whether it is met, for people or as one JSON object."""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, Literal

import numpy as np

from benchmarks.machine import Machine

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure should be.

    >>> Goal("<=", 1.2).met(1.3), str(Goal("<=", 1.2))
    (False, '<= 1.2')
    """

    than: Literal["<=", "<", ">=", ">"]
    bound: float

    def met(self, value: float) -> bool:
        """Whether a value does it."""
        return _COMPARE[self.than](value, self.bound)

    def __str__(self) -> str:
        return f"{self.than} {self.bound:,g}"


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Latencies in milliseconds, in each field the median over the repeats of a measurement.

    Attributes:
        best_p50: the smallest median of the repeats: other work on the machine can only add to it.
    """

    p50: float
    p95: float
    p99: float
    best_p50: float
    best_p99: float
    n: int
    n_repeats: int

    @classmethod
    def of(cls, repeats_ms: Sequence[Sequence[float]]) -> Quantiles:
        """From the latencies of each repeat.

        >>> Quantiles.of([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [2.0, 3.0, 4.0]]).p50
        3.0
        """
        p50s, p95s, p99s = zip(*(np.percentile(ms, (50, 95, 99)).tolist() for ms in repeats_ms), strict=True)
        return cls(
            p50=median(p50s),
            p95=median(p95s),
            p99=median(p99s),
            best_p50=min(p50s),
            best_p99=min(p99s),
            n=sum(map(len, repeats_ms)),
            n_repeats=len(repeats_ms),
        )


@dataclass(slots=True)
class Report:
    """Prints figures as they come and keeps them.

    Args:
        title: of the benchmark.
        as_json: print nothing on standard output before `close`, and there one JSON object.
    """

    title: str
    as_json: bool = False
    machine: Machine = field(default_factory=Machine.here)
    figures: list[dict[str, Any]] = field(default_factory=list)
    _section: str = ""

    def __post_init__(self) -> None:
        self.say(self.title)
        for line in self.machine.lines():
            self.say(line)

    def say(self, line: str = "") -> None:
        """Print a line for people."""
        print(line, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def section(self, name: str) -> None:
        """What the figures that follow are of."""
        self._section = name
        self.say()
        self.say(name)

    def add(self, name: str, value: float, unit: str, goal: Goal | None = None, note: str = "") -> None:
        """A figure; `unit` `%` takes shares 0..1."""
        self._keep(name, {"value": value, "unit": unit}, [(value, goal)])
        self.say(f"  {name:<62} {_shown(value, unit):>16}{_judged([(value, goal)])}{_noted(note)}")

    def add_spread(
        self, name: str, values: Sequence[float], unit: str, goal: Goal | None = None, note: str = ""
    ) -> None:
        """A figure of several seeds: their mean, which the goal is for, and the least and the most."""
        mean = fmean(values)
        several = f"{_shown(min(values), unit)} to {_shown(max(values), unit)} over {len(values)} seeds"
        spread = several if len(values) > 1 else "one seed"
        self._keep(name, {"value": mean, "unit": unit, "seeds": list(values)}, [(mean, goal)])
        note = f"{spread}; {note}" if note else spread
        self.say(f"  {name:<62} {_shown(mean, unit):>16}{_judged([(mean, goal)])}{_noted(note)}")

    def add_latency(
        self, name: str, found: Quantiles, p50: Goal | None = None, p99: Goal | None = None, note: str = ""
    ) -> None:
        """A latency's quantiles."""
        judged = [(found.p50, p50), (found.p99, p99)]
        values = {key: round(getattr(found, key), 4) for key in ("p50", "p95", "p99", "best_p50", "best_p99")}
        self._keep(name, {**values, "unit": "ms", "n": found.n, "n_repeats": found.n_repeats}, judged)
        shown = f"p50 {found.p50:7.3f}  p95 {found.p95:7.3f}  p99 {found.p99:7.3f} ms"
        best = f"  (best p50 {found.best_p50:.3f}, p99 {found.best_p99:.3f})" if found.n_repeats > 1 else ""
        self.say(f"  {name:<62} {shown}{best}{_judged(judged)}{_noted(note)}")

    def close(self, **more: Any) -> None:
        """Say how many goals are met; with `as_json`, print everything."""
        judged = [goal["met"] for figure in self.figures for goal in figure["goals"]]
        if judged:
            self.say()
            self.say(f"{sum(judged)} of {len(judged)} goals met")
        if self.as_json:
            print(
                json.dumps(
                    {"title": self.title, "machine": self.machine.as_json(), "figures": self.figures, **more}, indent=1
                )
            )

    def markdown(self) -> str:
        """All figures so far as tables, one a section, for a page that keeps results."""
        lines = self.machine.lines()
        section = None
        for figure in self.figures:
            if figure["section"] != section:
                section = figure["section"]
                lines += ["", f"**{section}**", "", "| | figure | goal |", "|---|---:|---:|"]
            lines.append(f"| {figure['name'].strip()} | {_told(figure)} | {_told_goals(figure)} |")
        return "\n".join([*lines, ""])

    def _keep(self, name: str, values: dict[str, Any], judged: Sequence[tuple[float, Goal | None]]) -> None:
        goals = [{"goal": str(goal), "met": goal.met(value)} for value, goal in judged if goal is not None]
        self.figures.append({"section": self._section, "name": name, **values, "goals": goals})


def _shown(value: float, unit: str) -> str:
    if unit == "%":
        return f"{100 * value:.2f} %"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 3
    return f"{value:,.{digits}f} {unit}".rstrip()


def _told(figure: Mapping[str, Any]) -> str:
    """A figure that was kept, for a table."""
    unit = figure["unit"]
    if "p50" in figure:
        return f"p50 {figure['p50']:.3f}, p99 {figure['p99']:.3f} {unit}"
    seeds = figure.get("seeds", ())
    spread = f" ({_shown(min(seeds), unit)} to {_shown(max(seeds), unit)})" if len(seeds) > 1 else ""
    return _shown(figure["value"], unit) + spread


def _told_goals(figure: Mapping[str, Any]) -> str:
    told = []
    for goal in figure["goals"]:
        than, bound = goal["goal"].split()
        shown = f"{than} {100 * float(bound):g} %" if figure["unit"] == "%" else goal["goal"]
        told.append(f"{shown}: {'met' if goal['met'] else 'NOT met'}")
    return ", ".join(told)


def _judged(judged: Sequence[tuple[float, Goal | None]]) -> str:
    several = len(judged) > 1
    texts = [
        f"{name} {goal}: {'met' if goal.met(value) else 'NOT met'}" if several else _verdict(goal, value)
        for name, (value, goal) in zip(("p50", "p99"), judged, strict=False)
        if goal is not None
    ]
    return f"  [goal {', '.join(texts)}]" if texts else ""


def _verdict(goal: Goal, value: float) -> str:
    return f"{goal}: {'met' if goal.met(value) else 'NOT met'}"


def _noted(note: str) -> str:
    return f"  ({note})" if note else ""
