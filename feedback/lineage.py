"""Lineage: which version of an agent came before which."""

from __future__ import annotations

from functools import lru_cache

from models.card import AgentKey


@lru_cache(maxsize=4096)
def order(version: str) -> tuple[object, ...]:
    """Sorts versions by precedence (semver.org 2.0.0, 11), equals by their text.

    >>> sorted(["1.10.0", "1.9.0", "1.9.0-rc.1", "1.9.0-2", "1.9.0+b"], key=order)
    ['1.9.0-2', '1.9.0-rc.1', '1.9.0', '1.9.0+b', '1.10.0']
    """
    core, _, before = version.partition("+")[0].partition("-")
    numbers = tuple(int(part) if part.isdecimal() else 0 for part in core.split("."))
    # (0, n) numbers come before (1, 0, text); a version without such a part comes after all that have one
    marks = (
        tuple((0, int(mark), "") if mark.isdecimal() else (1, 0, mark) for mark in before.split(".")) if before else ()
    )
    return (numbers, not before, marks, version)


class Lineage:
    """The known versions of each agent."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], list[AgentKey]] = {}

    def __contains__(self, agent: AgentKey) -> bool:
        return agent in self._versions.get(agent[:2], ())

    def learn_one(self, agent: AgentKey) -> bool:
        """Takes note of a version; whether it was new beside another one of the same agent."""
        known = self._versions.setdefault(agent[:2], [])
        if agent in known:
            return False
        known.append(agent)
        known.sort(key=lambda key: order(key[2]))
        return len(known) > 1

    def agents(self) -> list[AgentKey]:
        """All known versions."""
        return [agent for versions in self._versions.values() for agent in versions]

    def until(self, agent: AgentKey) -> list[AgentKey]:
        """The versions up to this one, itself included, oldest first."""
        known = self._versions.get(agent[:2], [])
        return known[: known.index(agent) + 1] if agent in known else [agent]

    def since(self, agent: AgentKey) -> list[AgentKey]:
        """The versions from this one on, itself included, oldest first."""
        known = self._versions.get(agent[:2], [])
        return known[known.index(agent) :] if agent in known else [agent]
