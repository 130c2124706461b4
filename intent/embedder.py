"""The serving encoder: an int8 ONNX graph and a tokenizer, read from a folder that `intent.export` wrote.

A folder holds `manifest.json`, `model.int8.onnx` and `tokenizer.json`. The manifest names the digest of the other two,
and only bytes that match it are loaded: what was checked is what runs.
"""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
import onnxruntime as ort
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from tokenizers import Tokenizer

from models.errors import EncoderError
from models.ports import Embedded

MODEL_FILE = "model.int8.onnx"
TOKENIZER_FILE = "tokenizer.json"
MANIFEST_FILE = "manifest.json"

MAX_CHARS = 8192
"""Characters of a text that are tokenized; unless most are white space, the token limit is met long before."""

_FIX = "reinstall agency-router, or write the folder again with `agency-router models export`"
# its operator divides once for every number; a sum and a LayerNormalization are three times as fast
_SLOWER = ["SkipLayerNormFusion"]
_INT8_FLAGS = frozenset({"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"})


class FileRecord(BaseModel):
    """What the manifest says of one file.

    Attributes:
        sha256: Lower-case hex digest of the file's bytes.
        n_bytes: Its size.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    n_bytes: int = Field(ge=0)

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Describe `content`."""
        return cls(sha256=hashlib.sha256(content).hexdigest(), n_bytes=len(content))


class Manifest(BaseModel):
    """What an encoder folder holds.

    Attributes:
        name: The source model's name, for people.
        source_revision: Revision of the source model; None where the source had none.
        dim: Length of a vector.
        max_tokens: Tokens of a text that the encoder sees, special tokens included.
        pooling: How token vectors become one vector; the graph does it, and brings it to unit length.
        unknown_token: The token that stands for what the vocabulary does not know; None for a vocabulary that knows
            every byte.
        prompt: What the model wants to read before a text, its last blank included.
        languages: Languages that it was made for, as primary subtags of BCP 47; None where that is not known.
        files: Records of the graph and the tokenizer, by file name.
        encoder_id: `derive_encoder_id` of what shapes a vector; vectors of two ids are never compared.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    source_revision: str | None
    dim: int = Field(ge=1)
    max_tokens: int = Field(ge=3)
    pooling: Literal["mean", "cls"]
    unknown_token: str | None
    prompt: str = Field(default="", max_length=1000)
    languages: tuple[Annotated[str, Field(pattern=r"^[a-z]{2,3}$")], ...] | None = None
    files: dict[str, FileRecord]
    encoder_id: str

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if set(self.files) != {MODEL_FILE, TOKENIZER_FILE}:
            raise ValueError(f"files are {sorted(self.files)}, expected {[MODEL_FILE, TOKENIZER_FILE]}")
        derived = derive_encoder_id(self.files, self.max_tokens, self.pooling, self.prompt)
        if self.encoder_id != derived:
            raise ValueError(f"encoder_id is {self.encoder_id}, but the other fields give {derived}")
        return self


def derive_encoder_id(files: dict[str, FileRecord], max_tokens: int, pooling: str, prompt: str = "") -> str:
    """Digest of all that decides which vector a text gets: weights, tokenizer, token limit, pooling, prompt.

    Args:
        files: Records of the graph and the tokenizer, by file name.
        max_tokens: Token limit, special tokens included.
        pooling: `mean` or `cls`.
        prompt: What stands before every text; counts only where there is one.

    Returns:
        16 hex digits.
    """
    parts = {
        "model": files[MODEL_FILE].sha256,
        "tokenizer": files[TOKENIZER_FILE].sha256,
        "max_tokens": max_tokens,
        "pooling": pooling,
    } | ({"prompt": prompt} if prompt else {})
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class OnnxEmbedder:
    """An `Embedder` over onnxruntime, one thread per call; safe to call from many threads at once.

    Texts run singly and unpadded: with this model padding costs more than a batch saves, and dynamic int8 takes its
    scales from the whole input, so that in a batch a text's vector would depend on its neighbours.

    Args:
        folder: Where the manifest, the graph and the tokenizer are.

    Raises:
        EncoderError: A file is missing, is not what the manifest says, or the manifest is none.
    """

    def __init__(self, folder: Path | Traversable) -> None:
        self._manifest = read_manifest(folder)
        graph = _read_verified(folder, MODEL_FILE, self._manifest)
        self._session = ort.InferenceSession(
            graph, _session_options(), providers=["CPUExecutionProvider"], disabled_optimizers=_SLOWER
        )
        self._input_names = tuple(node.name for node in self._session.get_inputs())
        dim = self._session.get_outputs()[0].shape[-1]
        if dim != self._manifest.dim:
            raise EncoderError(f"{MODEL_FILE} gives {dim} values, {MANIFEST_FILE} says {self._manifest.dim}; {_FIX}")
        tokenizer = Tokenizer.from_buffer(_read_verified(folder, TOKENIZER_FILE, self._manifest))
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=self._manifest.max_tokens)
        self._tokenizer = tokenizer
        token = self._manifest.unknown_token
        self._unknown_id: int | None = None if token is None else tokenizer.token_to_id(token)
        languages = self._manifest.languages
        self._languages = None if languages is None else frozenset(languages)

    def __repr__(self) -> str:
        return f"OnnxEmbedder({self._manifest.name!r}, encoder_id={self.encoder_id!r}, dim={self.dim})"

    @property
    def manifest(self) -> Manifest:
        """What the folder said of itself."""
        return self._manifest

    @property
    def encoder_id(self) -> str:
        """Digest of weights, tokenizer, token limit, pooling and prompt, 16 hex digits."""
        return self._manifest.encoder_id

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._manifest.dim

    @property
    def languages(self) -> frozenset[str] | None:
        """Languages it was made for; None means all of which it knows the tokens."""
        return self._languages

    def embed(self, text: str) -> Embedded:
        """Encode one text.

        The manifest's prompt is put before it. Only the first `MAX_CHARS` characters and of these the first
        `max_tokens` tokens count. An empty text has an
        answer too: the vector of the special tokens alone, with an `unknown_share` of 0. A lone surrogate is read as
        a question mark.

        Args:
            text: Any string.

        Returns:
            The vector, `dim` little-endian float32 of unit length, and the share of the text's own tokens that the
            vocabulary does not know.
        """
        prompt = self._manifest.prompt
        encoding = self._tokenizer.encode(prompt + text[:MAX_CHARS].encode("utf-8", "replace").decode())
        columns = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {name: np.array([columns[name]], dtype=np.int64) for name in self._input_names}
        vector = self._session.run(None, feed)[0][0]
        seen = zip(encoding.ids, encoding.special_tokens_mask, encoding.offsets, strict=True)
        own = [token for token, special, (_, end) in seen if not special and end > len(prompt)]
        share = own.count(self._unknown_id) / len(own) if own and self._unknown_id is not None else 0.0
        return Embedded(vector=np.asarray(vector, dtype="<f4").tobytes(), unknown_share=share)


def bundled() -> OnnxEmbedder:
    """Open the encoder that the distribution ships.

    Returns:
        all-MiniLM-L6-v2, 384 values, 256 tokens.

    Raises:
        EncoderError: The installed files are damaged.
    """
    return OnnxEmbedder(files("intent").joinpath("weights"))


def read_manifest(folder: Path | Traversable) -> Manifest:
    """Read `manifest.json` without opening the files it names.

    Args:
        folder: An encoder folder.

    Returns:
        The manifest, its fields consistent with each other.

    Raises:
        EncoderError: It is missing, or no manifest.
    """
    path = folder.joinpath(MANIFEST_FILE)
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise EncoderError(f"{path} cannot be read ({error}); {_FIX}") from error
    except ValidationError as error:
        found = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'manifest'}: {each['msg']}" for each in error.errors())
        raise EncoderError(f"{path} is not an encoder's manifest ({found}); {_FIX}") from error


def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str] | None:
    """The instruction sets of the first CPU, as Linux names them.

    Args:
        cpuinfo: The file to read.

    Returns:
        Lower-case flags, such as `avx512_vnni`; None where there is no such file (not Linux) or it names none.
    """
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip().lower() in {"flags", "features"}:
            return frozenset(value.lower().split())
    return None


def int8_accelerated(features: frozenset[str] | None) -> bool | None:
    """Whether the CPU multiplies int8 in one instruction (VNNI, AMX, Arm's dot product).

    Without it the encoder works but is slower, and on x86 its sums of two 8-bit products may saturate: the bundled
    encoder's cosine to fp32 was 0.996 (min 0.987) on an emulated AVX2 CPU, 0.998 (min 0.992) with VNNI. So vectors of
    one `encoder_id` may differ a little between the two kinds of machines.

    Args:
        features: Of `cpu_features`.

    Returns:
        None where the features are not known.

    Example:
        >>> int8_accelerated(frozenset({"avx2", "avx512_vnni"})), int8_accelerated(frozenset({"avx2"}))
        (True, False)
    """
    return None if features is None else not _INT8_FLAGS.isdisjoint(features)


def _session_options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    return options


def _read_verified(folder: Path | Traversable, name: str, manifest: Manifest) -> bytes:
    path, expected = folder.joinpath(name), manifest.files[name].sha256
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EncoderError(f"{path} cannot be read ({error}), expected sha256 {expected}; {_FIX}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise EncoderError(f"{path} is not the file of the manifest: expected sha256 {expected}, found {found}; {_FIX}")
    return content
