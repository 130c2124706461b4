"""Sentences that join wishes, and such as only look so, read by the served path over the bundled example set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data_sets import permissions_of
from benchmarks.report import Goal, Report
from benchmarks.serving import router_in_process
from intent.normalize import normalize
from intent.split import split
from models.decision import Action, RouteDecision
from models.request import RouteRequest
from router.permit import Grants

SENTENCES = Path(__file__).parents[1] / "tests" / "data" / "parts.jsonl"
PRECISION, RECALL = Goal(">=", 0.95), Goal(">=", 0.85)


@dataclass(frozen=True, slots=True)
class Joined:
    """A sentence and what it wants.

    Attributes:
        intents: in order; none where no agent serves it.
        lang: en or zh.
    """

    text: str
    intents: tuple[str, ...]
    lang: str

    @property
    def is_several(self) -> bool:
        """Whether it wants several things."""
        return len(self.intents) > 1


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence and what the service made of it."""

    sentence: Joined
    decision: RouteDecision

    @property
    def named(self) -> tuple[str, ...]:
        """The intents of the decision and its parts, in order."""
        each = (self.decision, *self.decision.parts)
        return tuple(part.intent.name for part in each if part.intent is not None)

    @property
    def is_apart(self) -> bool:
        """Whether it was taken to want several things."""
        return bool(self.decision.parts)

    @property
    def is_silent_pick(self) -> bool:
        """Whether one of several wishes was acted on and nothing said of the others."""
        return self.sentence.is_several and not self.is_apart and self.decision.action is Action.INVOKE


def sentences() -> list[Joined]:
    """Those of our own."""
    rows = [json.loads(line) for line in SENTENCES.read_text(encoding="utf-8").split("\n") if line]
    return [Joined(row["text"], tuple(row["intents"]), row["lang"]) for row in rows]


async def told_of(asked: Sequence[Joined]) -> list[Told]:
    """What the service with the bundled example set answers, all permissions given."""
    async with router_in_process([]) as parts:
        grants = Grants("bench", permissions_of(parts["registry"].snapshot.cards))
        return [
            Told(each, (await parts["service"].route(RouteRequest(utterance=each.text), grants))[0]) for each in asked
        ]


def precision_of(told: Sequence[Told]) -> float:
    """Of the sentences that came apart, the share that wants several things; 1 of none."""
    apart = [each for each in told if each.is_apart]
    return sum(each.sentence.is_several for each in apart) / len(apart) if apart else 1.0


def recall_of(told: Sequence[Told]) -> float:
    """Of the sentences that want several things, the share that came apart."""
    several = [each for each in told if each.sentence.is_several]
    return sum(each.is_apart for each in several) / len(several)


async def report_joined(report: Report, *, misses: bool = False) -> None:
    """Detection, order and silent picks, by language."""
    asked = sentences()
    told = await told_of(asked)
    for lang in ("en", "zh"):
        some = [each for each in told if each.sentence.lang == lang]
        several = [each for each in some if each.sentence.is_several]
        report.section(
            f"sentences of our own, {lang}: {len(several)} of several wishes, {len(some) - len(several)} of one"
        )
        cut = [len(split(normalize(each.sentence.text))) > 1 for each in some]
        n_cut_rightly = sum(is_cut for is_cut, each in zip(cut, some, strict=True) if each.sentence.is_several)
        report.add("cut at joints: precision", n_cut_rightly / sum(cut), "%", None, "before the pieces are read")
        report.add("cut at joints: recall", n_cut_rightly / len(several), "%")
        report.add("detected: precision", precision_of(some), "%", PRECISION)
        report.add("detected: recall", recall_of(some), "%", RECALL)
        exact = sum(each.named == each.sentence.intents for each in several)
        report.add("all wishes right, in order", exact / len(several), "%")
        report.add("one of several acted on, nothing said of the rest", sum(e.is_silent_pick for e in several), "")
    for each in told if misses else ():
        if each.is_apart is not each.sentence.is_several or (each.is_apart and each.named != each.sentence.intents):
            report.say(
                f"  {each.sentence.text}: wants {each.sentence.intents}, read {each.named} {each.decision.action}"
            )
