from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.learning_replay import filled, replayed
from models.settings import Settings


def test_decisions_of_all_modes_are_replayed_equal_by_a_later_service(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/store.db", watch=False, classifier=False)
    made = asyncio.run(filled(settings, 300))
    assert made.n_outcomes > 50
    assert {"selected", "explored", "shared"} <= set(made.reasons)
    found = asyncio.run(replayed(settings))
    assert dict(found.counts) == {"equal": 300}
    assert found.chain.broken is None
