"""Goals: the goal hash first seen under each task; a task that changes its goal is not routed on (SPEC G1)."""

from __future__ import annotations

from collections import OrderedDict

from models.ports import RecordStore


class Goals:
    """Remembers recent tasks in memory and looks older ones up in the store."""

    def __init__(self, store: RecordStore, *, max_tasks: int = 100_000) -> None:
        self._store = store
        self._max_tasks = max_tasks
        self._first: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def claim(self, namespace: str, task_id: str, goal_hash: str, *, keep: bool = True) -> str:
        """The goal hash first seen under the task, which is `goal_hash` itself where the task is new.

        Args:
            namespace: tasks of two namespaces never meet.
            task_id: the task.
            goal_hash: the hash that this request carries.
            keep: False looks only (dry runs).
        """
        task = (namespace, task_id)
        known = self._first.get(task)
        if known is None:
            known = await self._store.goal(namespace, task_id)
        if not keep:
            return known or goal_hash
        # Set only after the look-up: of two requests that race, the one that comes first here is the first seen.
        first = self._first.setdefault(task, known or goal_hash)
        if len(self._first) > self._max_tasks:
            self._first.popitem(last=False)
        return first
