"""`agency-router train`: classifiers from cards and example files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from router.cli.output import emit_json, fail, say, table
from router.cli.training import card_examples, embedder_of, flat, trained


def train(
    out: Annotated[Path, typer.Option(help="Folder for the model; serve it with `serve --model`.")],
    cards: Annotated[list[Path] | None, typer.Option(help="Card file or folder; may be given several times.")] = None,
    examples: Annotated[
        list[Path] | None,
        typer.Option(help='JSON Lines of {"text", "intent"}, optionally gzipped; the intent "oos" is out of scope.'),
    ] = None,
    val: Annotated[
        list[Path] | None, typer.Option(help="The same, held out to fit confidences on; none: cross-validation.")
    ] = None,
    encoder: Annotated[Path | None, typer.Option(help="Folder of an encoder; none: the bundled one.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="File that keeps vectors for the next run. [default: OUT.vectors.npz]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds and clusters.")] = 0,
    fine_tune: Annotated[bool, typer.Option("--fine-tune", help="Tune the encoder too; not in this version.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Fit classifiers and confidences, examine them, and write a model folder."""
    from models.errors import RouterError

    if fine_tune:
        fail("--fine-tune: this version cannot tune the encoder; leave it out to train on the encoder as it is", 2)
    if not cards and not examples:
        fail("there is nothing to train on: name --cards or --examples", 2)
    kept = cache or out.with_name(f"{out.name}.vectors.npz")
    try:
        result = _train(out, cards or [], examples or [], val or [], encoder, kept, seed)
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json(result)
    else:
        table(["figure", "value"], flat(result))
    say(f"written to {out}")


def _train(
    out: Path,
    cards: list[Path],
    examples: list[Path],
    val: list[Path],
    encoder: Path | None,
    cache: Path,
    seed: int,
) -> dict[str, Any]:
    from intent.examples import read_examples
    from intent.model_folder import Origin, check_writable, save_heads

    check_writable(out)
    from_cards, data = card_examples(cards) if cards else ([], {})
    given, held_out = read_examples(examples), read_examples(val)
    embedder = embedder_of(encoder)
    found = trained(from_cards, given, held_out, embedder=embedder, cache=cache, seed=seed)
    origin = Origin(
        encoder_id=embedder.encoder_id if found.heads.semantic is not None else None,
        seed=seed,
        n_examples=found.n_examples,
        data={**data, **given.digests, **held_out.digests},
        metrics=found.metrics,
    )
    save_heads(found.heads, out, origin)
    return {"out": str(out), **found.metrics}
