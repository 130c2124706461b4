from __future__ import annotations

from random import Random

from feedback.learner import Learner
from feedback.lessons import Lesson
from models.card import AgentKey
from models.events import LearnerRow, WeightRow
from models.learning_policy import LearningPolicy

POLICY = LearningPolicy()
AGENTS: list[AgentKey] = [("default", name, "1.0.0") for name in ("a", "b", "c")]
INTENTS = ("billing", "refund", "return", "status")
BILLING = (("billing", 1.0),)


def learner(max_caller_cells: int = 1000) -> Learner:
    made = Learner(max_caller_cells)
    made.declare({agent: dict.fromkeys(INTENTS, 0.5) for agent in AGENTS})
    return made


def lesson(agent: AgentKey, caller: str, reward: float = 1.0, intent: str = "billing") -> Lesson:
    return Lesson(agent, [(intent, 1.0)], reward, caller, None, None, at_ms=0)


def restarted(own: Learner, max_caller_cells: int = 1000) -> Learner:
    made, rows = learner(max_caller_cells), own.rows(0)
    made.load([row for row in rows if isinstance(row, WeightRow)], [row for row in rows if isinstance(row, LearnerRow)])
    return made


def test_what_was_put_without_a_leader_is_not_kept_for_one_that_leads_again() -> None:
    own = learner()
    for agent, intent in [(AGENTS[0], intent) for intent in INTENTS] + [(AGENTS[1], "billing")]:
        for _ in range(10):
            own.learn_one(lesson(agent, "web", intent=intent), POLICY)
    for _ in range(12):
        own.learn_one(lesson(AGENTS[2], "shop"), POLICY)
    amended = [own.learn_one(lesson(AGENTS[2], "shop", intent="refund"), POLICY).contribution for _ in range(10)]
    assert own.n_counted(AGENTS[0], "billing", POLICY) == 10  # web leads: it told 50 of 70 that count
    own.posterior(AGENTS, BILLING, POLICY)

    for _ in range(8):
        own.learn_one(lesson(AGENTS[0], "app", 0.0, intent="status"), POLICY)
    own.learn_one(lesson(AGENTS[0], "app", 0.0), POLICY)  # 50 of 79: nobody leads
    assert own.n_counted(AGENTS[0], "billing", POLICY) == 2
    for each in amended:
        assert each is not None
        own.unlearn_one(each, POLICY, at_ms=0)  # 50 of 69 again

    assert own.n_counted(AGENTS[0], "billing", POLICY) == 11
    assert own.posterior(AGENTS, BILLING, POLICY) == restarted(own).posterior(AGENTS, BILLING, POLICY)


def test_posteriors_follow_what_is_folded() -> None:
    own, draw, n_folded = learner(max_caller_cells=12), Random(1), 0
    for _ in range(150):
        caller = draw.choice("ABCDEFG")
        reward = float(draw.random() < (0.1 if caller == "A" else 0.8))
        learnt = own.learn_one(lesson(draw.choice(AGENTS), caller, reward, draw.choice(INTENTS)), POLICY)
        n_folded += sum(isinstance(row, WeightRow) and not row.caller for row in learnt.rows)
        again = restarted(own, max_caller_cells=12)
        for asker in ("", "A", "B"):
            assert own.posterior(AGENTS, BILLING, POLICY, asker) == again.posterior(AGENTS, BILLING, POLICY, asker)

    assert n_folded > 50


def test_who_tells_a_little_of_everything_does_not_lead_callers_with_work_of_their_own() -> None:
    own = learner()
    for nth in range(400):  # each has an intent of its own, and one agent for it
        own.learn_one(lesson(AGENTS[0], f"c{nth % 4}", intent=INTENTS[nth % 4]), POLICY)
    for nth in range(120):  # twelve sums of sixteen, 120 outcomes of 520
        own.learn_one(lesson(AGENTS[nth % 3], "eve", intent=INTENTS[nth // 3 % 4]), POLICY)

    assert [own.n_counted(agent, "billing", POLICY) for agent in AGENTS] == [20, 0, 0]
    alone = learner()
    for nth in range(120):
        alone.learn_one(lesson(AGENTS[nth % 3], "eve", intent=INTENTS[nth // 3 % 4]), POLICY)
    assert [alone.n_counted(agent, "billing", POLICY) for agent in AGENTS] == [10, 10, 10]
