"""Training from the command line: what `train` and `evaluate intents` share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from intent.examples import Labelled
    from intent.fit_classifiers import Example
    from intent.train import Trained
    from intent.vector_cache import Progress
    from models.ports import Embedder


@contextmanager
def bar(what: str) -> Iterator[Progress]:
    """A progress bar on stderr, gone when it is through; where that is no terminal, a line."""
    from rich import progress
    from rich.console import Console

    from router.cli.progress import said_instead

    if said_instead(what):
        yield lambda n_done, n: None
        return
    with progress.Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)

        def told(n_done: int, n: int) -> None:
            shown.update(task, completed=n_done, total=n)

        yield told


def embedder_of(encoder: str | None, model: Path | None = None) -> Embedder:
    """The encoder of this name, else that of the settings, else the one tuned for a model, else the bundled one."""
    from router.cli.settings import settings_of
    from router.reading_parts import encoder_of

    return encoder_of(settings_of(encoder=encoder, model=model))


def card_examples(paths: Sequence[Path]) -> tuple[list[Example], dict[str, str]]:
    """Examples and descriptions of all enabled cards, and the digest of each file.

    Raises:
        CardError: a card cannot be used.
    """
    from intent.fit_classifiers import Example
    from router.assemble import capability_texts
    from router.card_files import read_card_files

    found = read_card_files(paths)
    examples = [
        Example(text, capability.intent)
        for card in found.cards
        if card.enabled
        for capability in card.capabilities
        for text in capability_texts(capability)
    ]
    return examples, {str(path): sha256(path.read_bytes()).hexdigest() for path in found.files}


def trained(
    examples: Sequence[Example],
    given: Labelled,
    held_out: Labelled,
    *,
    embedder: Embedder,
    cache: Path | None,
    seed: int,
) -> Trained:
    """Train with a progress bar.

    Raises:
        ModelError: the examples cannot be used, or the cache cannot.
    """
    from intent.multi import Multi
    from intent.train import train
    from intent.vector_cache import VectorCache

    with bar("embedding") as told:
        return train(
            [*examples, *given.examples],
            VectorCache(embedder, cache),
            held_out=held_out.examples,
            out_of_scope=(*given.out_of_scope, *held_out.out_of_scope),
            seed=seed,
            progress=told,
            multi=Multi(given.multi, held_out.multi, given.out_of_scope),
        )


def flat(figures: dict[str, Any], above: str = "") -> list[list[str]]:
    """Figures as rows of a table, nested ones one a line under the names of what they are in."""
    rows = []
    for name, value in figures.items():
        if isinstance(value, dict):
            rows += flat(value, f"{above}{name} ")
        else:
            rows.append([f"{above}{name}", _shown(value)])
    return rows


def _shown(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
