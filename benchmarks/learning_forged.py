"""What one caller's false outcomes do: each agent's share of the others' decisions, with them and without them.

The fixture with twelve callers that tell the truth: 5,000 outcomes, then 1,000 more, beside each of which one caller
posts a false one of the intent of that request, against the agent that has the largest share, or in favour of the agent
with the smallest. The stated cap is `learning.caller_share`. All arms have the same requests and the same luck; the
control, in which that caller tells the truth of the most used agent, shows how far shares move by themselves.
"""

from __future__ import annotations

import numpy as np

from benchmarks.learning_fixture import fixture, stream_of
from benchmarks.learning_stream import Floats, Stream, declared_of, keys_of, learner_of, play
from benchmarks.report import Goal, Report
from feedback.lessons import Lesson
from models.learning_policy import LearningMode, LearningPolicy

N_WARM, N_FALSE, N_CALLERS = 5000, 1000, 12


def forged_row(report: Report, n_seeds: int) -> None:
    """In both modes that act on what is learned."""
    cap = LearningPolicy().caller_share
    report.section(f"{N_FALSE:,} false outcomes of one caller beside {N_CALLERS} honest ones, {n_seeds} seeds")
    modes: tuple[LearningMode, ...] = ("exploit", "explore")
    for mode in modes:
        moved = [most_moved(mode, seed) for seed in range(n_seeds)]
        for name, goal in (("against", Goal("<=", cap)), ("in favour", Goal("<=", cap)), ("control: the truth", None)):
            found = [each[name] for each in moved]
            note = f"the most of all seeds; {min(found):.3f} at least"
            report.add(f"{mode}, {name}: how far a share moves", max(found), "", goal, note)


def most_moved(mode: LearningMode, seed: int) -> dict[str, float]:
    """Attack → the largest change of any agent's share of the last 1,000 decisions."""
    stream = stream_of(fixture(), N_WARM + N_FALSE, seed)
    honest = shares(stream, mode, seed)
    most, least = int(honest.argmax()), int(honest.argmin())
    attacks = {"against": (most, 0.0), "in favour": (least, 1.0), "control: the truth": (most, None)}
    return {name: float(np.abs(shares(stream, mode, seed, attack) - honest).max()) for name, attack in attacks.items()}


def shares(stream: Stream, mode: LearningMode, seed: int, attack: tuple[int, float | None] | None = None) -> Floats:
    """Of each agent; `attack` is (place of the agent, the reward that is claimed of it, None for the true one)."""
    table = fixture()
    learner = learner_of(stream, declared_of(table.success.mean(axis=0), seed))
    keys = keys_of(stream.agents)

    def beside(step: int) -> Lesson | None:
        if attack is None or step < N_WARM:
            return None
        place, claimed = attack
        reward = float(stream.rewards[step, place]) if claimed is None else claimed
        return Lesson(keys[place], stream.intents[step], reward, "forger", None, None, step)

    played = play(stream, learner, LearningPolicy(mode=mode), seed, n_callers=N_CALLERS, beside=beside)
    counts = np.bincount(played.choices[N_WARM:], minlength=len(keys))
    found: Floats = counts / counts.sum()
    return found
