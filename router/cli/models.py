"""`agency-router models`: encoders."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from router.cli.output import emit_json, fail, say, table

app = typer.Typer(help="Encoders.", no_args_is_help=True)

_LANGUAGE = re.compile("[a-z]{2,3}")


@app.callback()
def models() -> None:
    """Encoders."""


@app.command()
def export(
    source: Annotated[str, typer.Argument(help="A sentence-transformers model: a folder, or a name on the hub.")],
    out: Annotated[Path, typer.Option(help="Folder for the encoder; name it in the setting `encoder`.")],
    prompt: Annotated[
        str | None,
        typer.Option(help="What the model wants before every text, such as 'query: '. [default: the model's own]"),
    ] = None,
    language: Annotated[
        list[str] | None,
        typer.Option(help="What it was made for, such as en; may be given several times. Other texts get no vector."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn a sentence-transformers model into an int8 encoder, checked against its original (extra `train`)."""
    from intent.export import export_encoder, find_source
    from models.errors import RouterError

    wrong = [each for each in language or [] if not _LANGUAGE.fullmatch(each)]
    if wrong:
        fail(f"--language {wrong[0]}: expected a language tag of two or three small letters, such as en", 2)
    say(f"exporting {source}; the check against the original takes a minute")
    try:
        found = find_source(source)
        languages = tuple(language) if language else found.languages
        exported = export_encoder(replace(found, prompt=prompt, languages=languages), out)
    except RouterError as error:
        fail(str(error))
    cosines = exported.cosines
    result = {
        "encoder_id": exported.manifest.encoder_id,
        "dim": exported.manifest.dim,
        "prompt": exported.manifest.prompt,
        "mean_cosine": float(cosines.mean()),
        "min_cosine": float(cosines.min()),
        "out": str(out),
    }
    if as_json:
        emit_json(result)
    else:
        table(["figure", "value"], [[name, str(value)] for name, value in result.items()])
