"""The int8 graph of a BERT encoder, written from its weights with onnxruntime's own operators.

A traced graph has four times as many nodes: masks and token types that are the same for every text that runs alone,
shapes read and put together again, one multiplication each for query, key and value. This one takes `input_ids` of one
text and computes the same. Scales of the activations are taken at run time, those of the weights one a column, as
onnxruntime's `quantize_dynamic` does.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.int8]]

_FUSED = "com.microsoft"
_OPSET = 17
_IR_VERSION = 8
_FAMILY = ("BertModel", "RobertaModel", "XLMRobertaModel")
"""Classes of transformers whose layers are the ones written here; they count positions from different numbers."""


def is_bert(transformer: Any) -> bool:
    """Whether `write_bert` knows a model of the library transformers: its class, its activation and plain layers."""
    linear: Any = importlib.import_module("torch").nn.Linear
    config, known = transformer.config, type(transformer).__name__ in _FAMILY
    if not known or config.hidden_act != "gelu" or config.is_decoder:
        return False
    if getattr(config, "position_embedding_type", None) not in (None, "absolute"):
        return False
    return all(type(part) is linear for layer in transformer.encoder.layer for part in _linear_parts(layer))


def write_bert(
    transformer: Any, inverses: Mapping[Any, Any], pooling: Literal["mean", "cls"], max_tokens: int, path: Path
) -> None:
    """Write the graph: `input_ids`, shape (1, n_tokens), to `vector`, shape (1, dim), of unit length.

    Args:
        transformer: A model for which `is_bert` holds; weights already multiplied by the scales of `smooth`.
        inverses: Linear layer → what its input is to be multiplied by, shape (n_inputs,), as `smooth` returned it.
        pooling: How token vectors become one vector.
        max_tokens: Tokens of the longest text; positions beyond are left out.
        path: Where to.
    """
    onnx = importlib.import_module("onnx")
    graph = _Graph(onnx)
    hidden = _embeddings(graph, transformer, max_tokens)
    for layer in transformer.encoder.layer:
        hidden = _layer(graph, layer, inverses, hidden, transformer.config)
    if pooling == "cls":
        pooled = graph.add("Gather", hidden, graph.constant(np.array(0)), axis=1)
    else:
        pooled = graph.add("ReduceMean", hidden, axes=[1], keepdims=0)
    graph.add("LpNormalization", pooled, outputs=["vector"], axis=1, p=2)
    graph.save(path, transformer.config.hidden_size)


def quantize_columns(weights: Floats) -> tuple[Bytes, Floats]:
    """Symmetric int8, one scale a column.

    Args:
        weights: Shape (n_inputs, n_outputs).

    Returns:
        Whole numbers -127..127 of the same shape, and scales, shape (n_outputs,): their product is near the weights.

    Example:
        >>> numbers, scales = quantize_columns(np.array([[1.27, 0.0], [-0.5, 0.0]], dtype=np.float32))
        >>> numbers.tolist(), [round(float(scale), 4) for scale in scales]
        ([[127, 0], [-50, 0]], [0.01, 1.0])
    """
    peaks = np.abs(weights).max(axis=0)
    scales = np.where(peaks > 0, peaks / 127, 1).astype(np.float32)
    return np.clip(np.rint(weights / scales), -127, 127).astype(np.int8), scales


@dataclass
class _Graph:
    """Nodes and constants so far; names are numbers in order, so that the same weights give the same bytes."""

    onnx: Any
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, values: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def add(self, operator: str, *inputs: str, outputs: list[str] | None = None, **attributes: Any) -> str:
        """Add a node; returns its first output."""
        outputs = outputs or [f"{operator}_{len(self.nodes)}"]
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, outputs, **attributes))
        return outputs[0]

    def save(self, path: Path, dim: int) -> None:
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        inputs = [helper.make_tensor_value_info("input_ids", kinds.INT64, [1, "n_tokens"])]
        outputs = [helper.make_tensor_value_info("vector", kinds.FLOAT, [1, dim])]
        graph = helper.make_graph(self.nodes, "encoder", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        self.onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION), str(path))


def _embeddings(graph: _Graph, transformer: Any, max_tokens: int) -> str:
    """Word, position and the only token type; the words are int8."""
    part = transformer.embeddings
    # RoBERTa counts positions from the number after that of its padding
    first = 0 if type(transformer).__name__ == "BertModel" else part.padding_idx + 1
    places = _floats(part.position_embeddings.weight)[first : first + max_tokens]
    words, scales = quantize_columns(_floats(part.word_embeddings.weight))
    rows = graph.add("Cast", graph.add("Gather", graph.constant(words), "input_ids"), to=graph.onnx.TensorProto.FLOAT)
    rows = graph.add("Mul", rows, graph.constant(scales))
    table = graph.constant(places + _floats(part.token_type_embeddings.weight)[0])
    zero = graph.constant(np.array([0]))
    used = graph.add("Slice", table, zero, graph.add("Shape", "input_ids", start=1, end=2), zero)
    return _normalized(graph, part.LayerNorm, graph.add("Add", rows, used))


def _linear_parts(layer: Any) -> tuple[Any, ...]:
    attention = layer.attention
    inner = attention.self
    return inner.query, inner.key, inner.value, attention.output.dense, layer.intermediate.dense, layer.output.dense


def _layer(graph: _Graph, layer: Any, inverses: Mapping[Any, Any], hidden: str, config: Any) -> str:
    query, key, value, output, widen, narrow = _linear_parts(layer)
    weights = [_floats(part.weight).T for part in (query, key, value)]
    biases = [_floats(part.bias) for part in (query, key, value)]
    if output in inverses:  # attention is linear in the values, so that their weights take the factor
        factor = _floats(inverses[output])
        weights[2], biases[2] = weights[2] * factor, biases[2] * factor
    mixed = _attention(
        graph,
        _scaled(graph, query, inverses, hidden),
        np.concatenate(weights, axis=1),
        np.concatenate(biases),
        config.num_attention_heads,
    )
    # the sum and its normalization stay two nodes: onnxruntime's fused one divides once for every number
    attended = graph.add("Add", _linear(graph, output, mixed), hidden)
    hidden = _normalized(graph, layer.attention.output.LayerNorm, attended)
    wide = _linear(graph, widen, _scaled(graph, widen, inverses, hidden))
    wide = _scaled(graph, narrow, inverses, graph.add("Gelu", wide, domain=_FUSED))
    return _normalized(graph, layer.output.LayerNorm, graph.add("Add", _linear(graph, narrow, wide), hidden))


def _attention(graph: _Graph, source: str, weights: Floats, biases: Floats, n_heads: int) -> str:
    numbers, scales = quantize_columns(weights)
    number = f"quantized_{len(graph.nodes)}"
    source = graph.add("DynamicQuantizeLinear", source, outputs=[number, f"{number}_scale", f"{number}_zero"])
    return graph.add(
        "QAttention",
        source,
        graph.constant(numbers),
        graph.constant(biases),
        f"{number}_scale",
        graph.constant(scales),
        "",  # no mask: every token counts
        f"{number}_zero",
        graph.constant(np.zeros(len(scales), dtype=np.int8)),
        domain=_FUSED,
        num_heads=n_heads,
    )


def _linear(graph: _Graph, part: Any, source: str) -> str:
    numbers, scales = quantize_columns(_floats(part.weight).T)
    constants = (graph.constant(numbers), graph.constant(scales), "", graph.constant(_floats(part.bias)))
    return graph.add("DynamicQuantizeMatMul", source, *constants, domain=_FUSED)


def _scaled(graph: _Graph, part: Any, inverses: Mapping[Any, Any], source: str) -> str:
    return graph.add("Mul", source, graph.constant(_floats(inverses[part]))) if part in inverses else source


def _normalized(graph: _Graph, part: Any, source: str) -> str:
    gain, shift = graph.constant(_floats(part.weight)), graph.constant(_floats(part.bias))
    return graph.add("LayerNormalization", source, gain, shift, epsilon=float(part.eps))


def _floats(tensor: Any) -> Floats:
    return np.asarray(tensor.detach().cpu().float().numpy(), dtype=np.float32)
