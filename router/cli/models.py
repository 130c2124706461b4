"""`agency-router models`: encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from router.cli.output import emit_json, fail, say, table

app = typer.Typer(help="Encoders.", no_args_is_help=True)


@app.callback()
def models() -> None:
    """Encoders."""


@app.command()
def export(
    source: Annotated[str, typer.Argument(help="A sentence-transformers model: a folder, or a name on the hub.")],
    out: Annotated[Path, typer.Option(help="Folder for the encoder; name it in the setting `encoder`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn a sentence-transformers model into an int8 encoder, checked against its original (extra `train`)."""
    from intent.export import export_encoder, find_source
    from models.errors import RouterError

    say(f"exporting {source}; the check against the original takes a minute")
    try:
        exported = export_encoder(find_source(source), out)
    except RouterError as error:
        fail(str(error))
    cosines = exported.cosines
    result = {
        "encoder_id": exported.manifest.encoder_id,
        "dim": exported.manifest.dim,
        "mean_cosine": float(cosines.mean()),
        "min_cosine": float(cosines.min()),
        "out": str(out),
    }
    if as_json:
        emit_json(result)
    else:
        table(["figure", "value"], [[name, str(value)] for name, value in result.items()])
