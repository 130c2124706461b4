"""A page of failure clusters: one file that loads nothing, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

_BAR_PX, _HEIGHT_PX = 6, 28

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --faint: #5b6570; --line: #d5dae0; --back: #ffffff; --card: #f5f7f9;
  --mark: #1f6feb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --faint: #9aa5b1; --line: #39424d; --back: #14181d;
  --card: #1c2229; --mark: #6cb0ff; } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 0; overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem; margin: 1rem 0; }
.head { display: flex; gap: 1rem; justify-content: space-between; align-items: start; }
.faint { color: var(--faint); font-size: .9rem; overflow-wrap: anywhere; }
.fix { border-left: 3px solid var(--mark); padding-left: .75rem; overflow-wrap: anywhere; }
svg { flex: none; } rect { fill: var(--mark); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { text-align: left; padding: .2rem .5rem .2rem 0; vertical-align: top; overflow-wrap: anywhere;
  border-top: 1px solid var(--line); }
"""


def failures_page(told: Mapping[str, Any]) -> str:
    """A report as HTML. What callers sent is text in it and nothing else: no markup, no control characters.

    Args:
        told: as `router.failures.told` gives it.
    """
    clusters = "".join(_cluster(cluster) for cluster in told["clusters"])
    rest = told["rest"]
    n = told["n_failures"]
    span = f"{_when(told['from_ms'])} to {_when(told['until_ms'])}" if told["until_ms"] else "an empty log"
    left_out = f" {told['n_left_out']} older ones are left out." if told["n_left_out"] else ""
    head = f"{n} failure(s) among {told['n_outcomes']} outcome(s), {span}.{left_out}"
    if not n:
        head = f"Nothing failed among {told['n_outcomes']} outcome(s), {span}."
    others = f"<section><h2>Rest: {rest['size']}</h2>{_examples(rest['examples'])}</section>" if rest["size"] else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Failure clusters</title>'
        f"<style>{_STYLE}</style></head><body><h1>Failure clusters</h1><p>{_text(head)}</p>{clusters}{others}"
        "</body></html>\n"
    )


def _cluster(cluster: Mapping[str, Any]) -> str:
    trend, fix = cluster["trend"], cluster["fix"]
    figures = (
        f"{cluster['size']} failure(s), {cluster['share']:.1%}; stage {cluster['stage']}; {trend['change']}: "
        f"{trend['n_recent']} in the last {_length(trend['window_ms'])}, {trend['n_before']} in those before; "
        f"{_when(cluster['first_seen'])} to {_when(cluster['last_seen'])}"
    )
    lists = "".join(
        f'<p class="faint">{title}: {_text(_counted(cluster[name]))}</p>'
        for title, name in (("Agents", "agents"), ("Errors", "errors"), ("Intents", "intents"))
        if cluster[name]
    )
    return (
        f'<section><div class="head"><h2>{_text(cluster["name"])}</h2>{_sparkline(trend["bars"])}</div>'
        f'<p class="faint">{_text(figures)}</p>'
        f'<p class="fix"><strong>{_text(fix["kind"])}</strong>: {_text(fix["text"])}<br>'
        f'<span class="faint">{_text(fix["reason"])}</span></p>{lists}{_examples(cluster["examples"])}</section>'
    )


def _sparkline(bars: Sequence[int]) -> str:
    most = max(bars, default=0) or 1
    width = _BAR_PX * len(bars)
    drawn = "".join(
        f'<rect x="{_BAR_PX * place}" y="{_HEIGHT_PX - height:.1f}" width="{_BAR_PX - 1}" height="{height:.1f}"/>'
        for place, n in enumerate(bars)
        if (height := _HEIGHT_PX * n / most)
    )
    label = f"failures over time: {', '.join(map(str, bars))}"
    return f'<svg width="{width}" height="{_HEIGHT_PX}" role="img" aria-label="{label}">{drawn}</svg>'


def _examples(examples: Iterable[Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{_when(each['at_ms'])}</td><td>{_text(each['utterance'] or '(no text is kept)')}</td>"
        f"<td><code>{_text(each['trace_id'])}</code></td><td><code>{_text(each['decision_id'])}</code></td></tr>"
        for each in examples
    )
    return f"<table><tr><th>when</th><th>utterance</th><th>trace</th><th>decision</th></tr>{rows}</table>"


def _counted(values: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{each['value']} ({each['n']})" for each in values)


def _when(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(sep=" ", timespec="minutes")


def _length(ms: int) -> str:
    """A length of time as people say it.

    >>> _length(604_800_000), _length(5_400_000), _length(900)
    ('7 d', '1.5 h', '0.9 s')
    """
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= size:
            return f"{ms / size:.3g} {unit}"
    return f"{ms / 1000:.3g} s"


def _text(text: str) -> str:
    # marks that turn the direction of text are not printable either
    return escape("".join(char if char.isprintable() else "\ufffd" for char in text))
