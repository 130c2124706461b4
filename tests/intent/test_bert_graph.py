from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnxruntime as ort
import pytest

from intent.bert_graph import is_bert, quantize_columns, write_bert
from tests.intent.test_embedder import WEIGHTS

SMALL = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "initializer_range": 0.3,
}
IDS = ([2, 3], [2, 17, 9, 3], [2, *range(5, 35), 3])


def model(kind: str, **changes: Any) -> Any:
    torch = pytest.importorskip("torch", reason="needs the extra `train`")
    import transformers

    torch.manual_seed(5)
    config = getattr(transformers, f"{kind}Config")(**(SMALL | changes))
    made = getattr(transformers, f"{kind}Model")(config).eval()
    for name, values in made.named_parameters():
        if "LayerNorm" in name or name.endswith("bias"):  # a new model's are ones and zeros, which hide mistakes
            torch.nn.init.normal_(values, mean=1.0 if name.endswith("LayerNorm.weight") else 0.0, std=0.3)
    return made


def written(transformer: Any, pooling: Literal["mean", "cls"], path: Path, inverses: dict[Any, Any]) -> Any:
    pytest.importorskip("onnx", reason="needs the extra `train`")
    write_bert(transformer, inverses, pooling, 32, path)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda ids: session.run(None, {"input_ids": np.array([ids])})[0][0]


def own_vector(transformer: Any, pooling: str, ids: list[int]) -> Any:
    import torch

    with torch.no_grad():
        hidden = transformer(torch.tensor([ids])).last_hidden_state[0]
    pooled = hidden[0] if pooling == "cls" else hidden.mean(0)
    return torch.nn.functional.normalize(pooled, dim=0).numpy()


def test_the_bundled_graph_reads_the_tokens_and_nothing_else() -> None:
    session = ort.InferenceSession(WEIGHTS / "model.int8.onnx", providers=["CPUExecutionProvider"])
    assert [(node.name, node.shape) for node in session.get_inputs()] == [("input_ids", [1, "n_tokens"])]
    assert [(node.name, node.shape) for node in session.get_outputs()] == [("vector", [1, 384])]


def test_columns_are_within_half_a_step_of_what_they_were() -> None:
    weights = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
    weights *= np.array([1, 9, 1e-3, 1e3, 1, 0], dtype=np.float32)
    numbers, scales = quantize_columns(weights)
    assert numbers.dtype == np.int8
    assert np.abs(numbers[:, :5]).max(axis=0).tolist() == [127] * 5
    assert (np.abs(numbers * scales - weights) <= 0.501 * scales).all()
    assert not numbers[:, 5].any()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("kind", ["Bert", "Roberta", "XLMRoberta"])
def test_the_graph_computes_what_the_model_computes(tmp_path: Path, kind: str, pooling: Literal["mean", "cls"]) -> None:
    transformer = model(kind)
    assert is_bert(transformer)
    vector = written(transformer, pooling, tmp_path / "graph.onnx", {})
    for ids in IDS:
        assert abs(float(np.linalg.norm(vector(ids))) - 1.0) < 1e-5
        assert float(vector(ids) @ own_vector(transformer, pooling, ids)) > 0.998


@pytest.mark.filterwarnings("ignore")
def test_weights_of_sixteen_bits_are_taken(tmp_path: Path) -> None:
    transformer = model("Bert")
    own = [own_vector(transformer, "mean", ids) for ids in IDS]
    vector = written(transformer.bfloat16(), "mean", tmp_path / "graph.onnx", {})
    for ids, expected in zip(IDS, own, strict=True):
        assert float(vector(ids) @ expected) > 0.998


@pytest.mark.filterwarnings("ignore")
def test_weights_times_a_scale_and_inputs_times_its_inverse_are_the_same_graph(tmp_path: Path) -> None:
    transformer = model("Bert")
    import torch

    own = [own_vector(transformer, "mean", ids) for ids in IDS]
    inverses = {}
    with torch.no_grad():
        for layer in transformer.encoder.layer:
            inner = layer.attention.self
            groups = ((inner.query, inner.key, inner.value), (layer.attention.output.dense,))
            for group in (*groups, (layer.intermediate.dense,), (layer.output.dense,)):
                scale = torch.rand(group[0].in_features) + 0.5
                for part in group:
                    part.weight.mul_(scale)
                    inverses[part] = 1 / scale
    vector = written(transformer, "mean", tmp_path / "graph.onnx", inverses)
    for ids, expected in zip(IDS, own, strict=True):
        assert float(vector(ids) @ expected) > 0.998


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("Bert", {"hidden_act": "gelu_new"}),
        ("Bert", {"hidden_act": "relu"}),
        ("Bert", {"is_decoder": True}),
        ("Bert", {"position_embedding_type": "relative_key"}),
        ("MPNet", {}),
        ("Electra", {}),
    ],
)
def test_other_models_are_not_taken_for_one(kind: str, changes: dict[str, Any]) -> None:
    assert not is_bert(model(kind, **changes))


@pytest.mark.filterwarnings("ignore")
def test_a_model_with_other_layers_is_not_taken_for_one() -> None:
    torch = pytest.importorskip("torch", reason="needs the extra `train`")
    transformer = model("Bert")

    class Wrapped(torch.nn.Linear):  # type: ignore[misc, name-defined]
        """A layer that computes something of its own, as an adapter does."""

    transformer.encoder.layer[1].intermediate.dense = Wrapped(32, 64)
    assert not is_bert(transformer)
