"""A progress bar that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

_EVERY = 1000


@contextmanager
def counting(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, gone when it is through; to be told how many are done.

    Args:
        what: is being done.
        total: how many there are; None while that is not known.
    """
    from rich import progress
    from rich.console import Console

    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)

        def told(n_done: int) -> None:
            if n_done % _EVERY == 0:
                shown.update(task, completed=n_done)

        yield told


def counted(items: Iterable[T], told: Callable[[int], None]) -> Iterator[T]:
    """The items, of each of which it is told that it was taken."""
    for n_done, item in enumerate(items, 1):
        told(n_done)
        yield item
