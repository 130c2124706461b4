"""What one caller's false outcomes do: each agent's share of the others' decisions, with them and without them.

The fixture with twelve callers that tell the truth: 5,000 outcomes, then 1,000 more, beside each of which one caller
posts a false one of the intent of that request, against the agent that has the largest share, or in favour of the agent
with the smallest. The stated cap is `learning.caller_share`. Both arms have the same requests and the same luck.
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
        for name, reward in (("against the agent most used", 0.0), ("for the agent least used", 1.0)):
            moved = [most_moved(mode, reward, seed) for seed in range(n_seeds)]
            goal = Goal("<=", cap)
            report.add_spread(f"{mode}, {name}: most that a share moves", moved, "", goal, f"most {max(moved):.3f}")


def most_moved(mode: LearningMode, reward: float, seed: int) -> float:
    """The largest change of any agent's share of the last 1,000 decisions."""
    table = fixture()
    stream = stream_of(table, N_WARM + N_FALSE, seed)
    honest = shares(stream, mode, seed)
    target = int(honest.argmax() if reward == 0 else honest.argmin())
    return float(np.abs(shares(stream, mode, seed, (target, reward)) - honest).max())


def shares(stream: Stream, mode: LearningMode, seed: int, attack: tuple[int, float] | None = None) -> Floats:
    """Of each agent; `attack` is (place of the agent, the reward that is claimed of it)."""
    table = fixture()
    learner = learner_of(stream, declared_of(table.success.mean(axis=0), seed))
    keys = keys_of(stream.agents)

    def beside(step: int) -> Lesson | None:
        if attack is None or step < N_WARM:
            return None
        return Lesson(keys[attack[0]], stream.intents[step], attack[1], "forger", None, None, step)

    played = play(stream, learner, LearningPolicy(mode=mode), seed, n_callers=N_CALLERS, beside=beside)
    counts = np.bincount(played.choices[N_WARM:], minlength=len(keys))
    found: Floats = counts / counts.sum()
    return found
