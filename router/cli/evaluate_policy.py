"""`agency-router evaluate policy`: what a policy would have made of the decisions in a store."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from router.cli.output import fail, say, table
from router.cli.progress import counting

if TYPE_CHECKING:
    from router.evaluate_policy import Kind

_AGO = re.compile(r"([0-9]{1,6})([dhm])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


def since_ms(since: str | None, now: datetime) -> int:
    """The instant (epoch) that `--since` names, as ISO 8601 or as time before now; None means the beginning.

    >>> now = datetime(1970, 1, 3, tzinfo=UTC)
    >>> since_ms("1970-01-01T00:00:02", now), since_ms("1d", now)
    (2000, 86400000)

    Ends the command where it is neither.
    """
    if since is None:
        return 0
    ago = _AGO.fullmatch(since)
    if ago is not None:
        at = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    else:
        try:
            at = datetime.fromisoformat(since)
        except ValueError:
            fail(f"--since {since!r}: write a time as 2026-11-30 or 2026-11-30T12:00:00, or as 7d, 12h or 90m ago", 2)
    return max(0, int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000))


def kind_of(choices: str | None) -> Kind | None:
    """Whose choices `--choices` names; None leaves it to the log. Ends the command where it names neither."""
    if choices not in (None, "router", "callers"):
        fail(f"--choices {choices!r}: write router or callers", 2)
    return cast("Kind | None", choices)


async def evaluated(
    url: str,
    policy: Path,
    *,
    namespace: str | None,
    from_ms: int,
    kind: Kind | None,
    limit: int,
    margin: float,
) -> dict[str, Any]:
    """The figures.

    Raises:
        RouterError: the store or the policy cannot be read.
    """
    from router.evaluate_policy import evaluate_policy, known_policies
    from router.policy_file import read_policy
    from router.stores.feedback_log import LogQuery, open_log

    wanted = await asyncio.to_thread(read_policy, policy)
    query = LogQuery(from_ms=from_ms, namespace=namespace, newest_first=True)
    async with open_log(url) as log:
        with counting("reading decisions") as told:
            report = await evaluate_policy(
                log,
                wanted,
                await log.cards(),
                query,
                deciding=known_policies(await log.policies()),
                kind=kind,
                limit=limit,
                margin=margin,
                told=told,
            )
    return {"log": url, "policy": str(policy), "namespace": namespace, "from_ms": from_ms, **report}


def show(report: dict[str, Any]) -> None:
    """Print the figures for people."""
    of = "callers" if report["choices_of"] == "callers" else "logged policy"
    rows = [
        [name, _number(report["logged"][name]), _interval(report["new"][name]), _interval(report["difference"][name])]
        for name in report["logged"]
    ]
    table(["figure", of, "new policy (95 %)", "difference (95 %)"], rows)
    support, flips = report["support"], report["flips"]
    effective = support["effective_changes"]
    table(
        ["evidence", "value"],
        [
            ["decisions", f"{report['n_decisions']} ({_skipped(report)})"],
            ["outcomes", str(report["n_outcomes"])],
            ["effective sample size", f"{report['effective_size']:.1f}"],
            ["choices tried in the log", f"{support['choices']:.1%}"],
            ["changes tried in the log", f"{support['changes']:.1%}"],
            ["effective size of the changes", "" if effective is None else f"{effective:.1f}"],
            ["decisions that flip", f"{flips['n']} ({flips['share']:.1%})"],
        ],
    )
    if flips["examples"]:
        table(
            ["decision", "intent", "utterance", "was", "would be", "reward"], [_flip(one) for one in flips["examples"]]
        )
    for note in report["notes"]:
        say(f"note: {note}")
    for refusal in report["refusals"]:
        say(f"missing: {refusal['code']}: {refusal['text']}")
    say(_conclusion(report))


def _conclusion(report: dict[str, Any]) -> str:
    verdict = report["verdict"]
    if verdict == "refused":
        return "refused: the log does not hold the evidence, and nothing is guessed"
    success = report["difference"]["success"]
    if report["choices_of"] == "callers" and success is not None:
        gained = f"{success['value']:+.3f} ({success['low95']:+.3f} to {success['high95']:+.3f})"
        return f"{verdict}: with the router the callers would have gained {gained} in success"
    meant = {
        "same": "no decision would be another",
        "better": "success is shown to rise",
        "not_worse": f"success is shown not to fall by more than {report['margin']:g}",
        "worse": "success is shown to fall",
        "undecided": "the policy is shown to be neither worse nor not worse",
    }
    return f"{verdict}: {meant[verdict]}"


def _number(estimate: dict[str, Any] | None) -> str:
    return "unknown" if estimate is None else f"{estimate['value']:.4g} (n {estimate['n']})"


def _interval(estimate: dict[str, Any] | None) -> str:
    if estimate is None:
        return "not known"
    # what rounding leaves of nothing is nothing
    value, low, high = (0.0 if abs(x) < 1e-12 else x for x in (estimate[name] for name in ("value", "low95", "high95")))
    return f"{value:.4g} ({low:.4g} to {high:.4g})"


def _skipped(report: dict[str, Any]) -> str:
    skipped = {**report["n_skipped"], "unknown": report["n_unknown"]}
    told = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in skipped.items() if n)
    return f"{report['n_read']} read" + (f"; skipped: {told}" if told else "")


def _flip(one: dict[str, Any]) -> list[str]:
    reward = "" if one["reward"] is None else f"{one['reward']:.2f}"
    return [
        one["decision_id"],
        one["intent"],
        one["utterance"] or "",
        one["was"],
        one["would_be"] or "nobody",
        reward,
    ]
