"""Makes a transformer easier to quantize, without changing what it computes in fp32.

Dynamic int8 takes one scale for all channels of a layer's input, and a transformer's channels differ in size by orders
of magnitude: the small ones lose their digits. In short texts ("yes", "thanks :-)") nothing averages that out. So the
channels of each linear layer's input are divided by s and the matching columns of its weights, which have scales of
their own, multiplied by it (Xiao et al., 2023, SmoothQuant, equation 4).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

ALPHA = 0.7
"""Share of the difficulty that moves from inputs to weights, 0..1. Mean and least cosine to fp32 on 400 held-out texts
of one to three words: 0.987 and 0.967 without smoothing, 0.985 and 0.959 with 0.5, 0.995 and 0.983 with 0.7, 0.995 and
0.981 with 0.8."""

_TINY = 1e-5


def smooth(reference_model: Any, texts: Sequence[str]) -> None:
    """Scale inputs and weights of all linear layers of a sentence-transformers model, in place.

    Args:
        reference_model: The model; its fp32 vectors stay the same up to rounding.
        texts: What to measure the channels on; should hold short and long texts.
    """
    torch: Any = importlib.import_module("torch")
    transformer = reference_model[0].auto_model.eval()
    layers = [module for module in transformer.modules() if isinstance(module, torch.nn.Linear)]
    inputs: dict[Any, Any] = {}  # layer → its last input, kept so that no address is used twice in a pass
    peaks: dict[Any, Any] = {}  # layer → largest magnitude of each input channel

    def look(layer: Any, arguments: tuple[Any, ...]) -> None:
        inputs[layer] = arguments[0]
        peak = arguments[0].abs().flatten(0, -2).amax(0)
        peaks[layer] = torch.maximum(peaks[layer], peak) if layer in peaks else peak

    hooks = [layer.register_forward_pre_hook(look) for layer in layers]
    reference_model.encode(list(texts), batch_size=1, show_progress_bar=False)
    for hook in hooks:
        hook.remove()
    groups: dict[int, list[Any]] = {}  # query, key and value share an input, and so must share a scale
    for layer, seen in inputs.items():
        groups.setdefault(seen.data_ptr(), []).append(layer)
    with torch.no_grad():
        for group in groups.values():
            _rescale(torch, group, peaks[group[0]].clone().clamp(min=_TINY))


def _rescale(torch: Any, group: Sequence[Any], peak: Any) -> None:
    columns = torch.stack([layer.weight.abs().amax(0) for layer in group]).amax(0).clamp(min=_TINY)
    scale = peak**ALPHA / columns ** (1 - ALPHA)
    inverse = 1 / scale
    for layer in group:
        layer.weight.mul_(scale)
        layer.register_forward_pre_hook(lambda _, arguments: (arguments[0] * inverse, *arguments[1:]))
