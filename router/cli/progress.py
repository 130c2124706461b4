"""Progress on stderr: a bar that counts on a terminal, a line elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from router.cli.output import say

T = TypeVar("T")

_EVERY = 1000


@contextmanager
def counting(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, gone when it is through; to be told how many are done. See `said_instead`.

    Args:
        what: is being done.
        total: how many there are; None while that is not known.
    """
    from rich import progress
    from rich.console import Console

    if said_instead(what):
        yield lambda n_done: None
        return
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


def said_instead(what: str) -> bool:
    """Whether stderr is no terminal: a bar would leave nothing there but an empty line, so what is done is said."""
    from rich.console import Console

    if Console(stderr=True).is_terminal:
        return False
    say(f"{what} …")
    return True


def counted(items: Iterable[T], told: Callable[[int], None]) -> Iterator[T]:
    """The items, of each of which it is told that it was taken."""
    for n_done, item in enumerate(items, 1):
        told(n_done)
        yield item
