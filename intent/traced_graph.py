"""The int8 graph of any transformer, traced: for models that `bert_graph` does not know."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Literal

# quantize_dynamic's own list takes in more operators and moves the vectors ten times as far.
_QUANTIZED_OPS = ["MatMul", "Gemm", "Gather"]


def write_traced(reference_model: Any, pooling: Literal["mean", "cls"], path: Path) -> None:
    """Trace the model with torch, then quantize by `quantize_dynamic`.

    Args:
        reference_model: The sentence-transformers model, already smoothed.
        pooling: How token vectors become one vector.
        path: Where to write; the fp32 graph stays beside it.
    """
    torch: Any = importlib.import_module("torch")
    quantization: Any = importlib.import_module("onnxruntime.quantization")
    transformer = reference_model[0].auto_model.eval()
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
            opset_version=17,
            dynamo=False,
        )
    quantization.quantize_dynamic(
        full, path, op_types_to_quantize=_QUANTIZED_OPS, per_channel=True, weight_type=quantization.QuantType.QInt8
    )
