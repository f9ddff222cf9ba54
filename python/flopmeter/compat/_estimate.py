# SPDX-License-Identifier: Apache-2.0
"""FLOPs from parameters times tokens: 2.5 for each parameter and token forward, twice that backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COEFFICIENT = 2.5  # multimodal models: text and vision meet; the preset params-2.5 of `flopmeter estimate`
VISUAL_TOKENS = 576  # of an image whose grid is not known
_MERGED = 4  # patches of image_grid_thw that become one visual token


def parameters_of(model: Any) -> int:
    """All parameters, frozen ones too."""
    return sum(parameter.numel() for parameter in model.parameters())


def _visual_tokens(batch: Mapping[str, Any], sequences: int) -> float:
    """Visual tokens of a sequence, on average."""
    grid = batch.get("image_grid_thw")
    if grid is not None:
        rows = grid.tolist() if hasattr(grid, "tolist") else grid
        return sum(t * h * w for t, h, w in rows) / _MERGED / max(sequences, 1)
    return VISUAL_TOKENS if batch.get("pixel_values") is not None else 0


def _get_actual_sequence_length(batch_example: Mapping[str, Any]) -> float:
    """Tokens of a sequence, visual ones included: the mean over the attention mask's rows, else the input's length."""
    mask = batch_example.get("attention_mask")
    if mask is not None:
        return float((mask != 0).sum(dim=1).double().mean())
    ids = batch_example.get("input_ids")
    if ids is None:
        return float(_visual_tokens(batch_example, 1))
    return float(ids.size(1) + _visual_tokens(batch_example, ids.size(0)))


def _batch_size(batch_example: Mapping[str, Any]) -> int:
    for name in ("input_ids", "attention_mask", "pixel_values", "labels"):
        if batch_example.get(name) is not None:
            return int(batch_example[name].shape[0])
    return 1


def _estimate_forward_flops(model: Any, batch_example: Mapping[str, Any]) -> float:
    """Forward: 2.5 × parameters × batch size × sequence length."""
    return COEFFICIENT * parameters_of(model) * _batch_size(batch_example) * _get_actual_sequence_length(batch_example)


def _estimate_flops_fallback(model: Any, batch_example: Mapping[str, Any]) -> float:
    """Forward and backward, which is twice forward."""
    return 3 * _estimate_forward_flops(model, batch_example)


def profile_model_flops(model: Any, batch_example: Mapping[str, Any]) -> float:
    """FLOPs of a training step on the batch, by estimate; 0.0 and a line where it cannot be told."""
    try:
        return _estimate_flops_fallback(model, batch_example)
    except Exception as error:
        print(f"FLOPs cannot be estimated: {type(error).__name__}: {error}")
        return 0.0


def calculate_mfu(flops: float, compute_time: float, gpu_peak_flops: float) -> float:
    """MFU of ``flops`` done in ``compute_time`` seconds, at most 1.0; 0.0 where time or peak is not positive."""
    if not (flops > 0 and compute_time > 0 and gpu_peak_flops > 0):
        return 0.0
    return min(flops / compute_time / gpu_peak_flops, 1.0)
