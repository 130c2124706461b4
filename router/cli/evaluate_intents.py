"""`agency-router evaluate intents`: trains or loads classifiers and reads labelled texts with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from router.cli.output import say
from router.cli.training import bar, embedder_of, trained


def evaluate_intents(
    test: Sequence[Path],
    oos_test: Sequence[Path],
    *,
    train: Sequence[Path],
    val: Sequence[Path],
    model: Path | None,
    encoder: str | None,
    cache: Path | None,
    seed: int,
) -> dict[str, Any]:
    """The figures of the exam.

    Raises:
        RouterError: a file, the model or the encoder cannot be used.
    """
    from intent.evaluate import Meant, figures, figures_of_sets, read_all, unknown_labels
    from intent.examples import read_examples
    from intent.model_folder import load_heads
    from models.errors import ModelError

    labelled, outside = read_examples(test), read_examples(oos_test)
    if not labelled.examples and not labelled.multi:
        raise ModelError(f"there are no labelled texts in {', '.join(map(str, test))}")
    embedder = embedder_of(encoder, model)
    about: dict[str, Any] = {}
    if model is not None:
        heads = load_heads(model, encoder_id=embedder.encoder_id)
    else:
        given, held_out = read_examples(train), read_examples(val)
        heads, metrics, n_examples = trained([], given, held_out, embedder=embedder, cache=cache, seed=seed)
        about = {"n_train": n_examples, "embed_s": metrics["embed_s"], "fit_s": metrics["fit_s"]}
    out_of_scope = [*labelled.out_of_scope, *outside.out_of_scope]
    out_of_scope += [text for text, _ in (*outside.examples, *outside.multi)]
    texts: list[tuple[str, Meant]] = [*labelled.examples, *((text, None) for text in out_of_scope)]
    texts += [(text, frozenset(intents)) for text, intents in labelled.multi]
    _tell_unknown(unknown_labels(heads, texts))
    with bar("reading") as told:
        readings = read_all(heads, embedder.embed, texts, told, embedder.languages)
    sets = figures_of_sets(readings) if labelled.multi or heads.relevance is not None else {}
    return {**figures(heads, readings), **sets, **about}


def _tell_unknown(unknown: Mapping[str, int]) -> None:
    if unknown:
        names = ", ".join(sorted(unknown)[:10])
        say(f"{sum(unknown.values())} texts have intents that are not known and count as wrong: {names}")
