# SPDX-License-Identifier: Apache-2.0
"""FLOPs from parameters times tokens: 2.5 per parameter and token in forward, twice that in backward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from flopmeter.batch import Batch, describe
from flopmeter.compat._language import print_line

COEFFICIENT = 2.5  # multimodal models; preset params-2.5 of `flopmeter estimate`
VISUAL_TOKENS = 576  # for an image with an unknown grid
_MERGED = 4  # patches of image_grid_thw per visual token


def reason(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"


def as_number(value: Any) -> float | None:
    """A finite number from any type that contains one; else None."""
    try:
        number = float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def parameters_of(model: Any) -> int:
    """All parameters, including frozen ones."""
    return sum(parameter.numel() for parameter in model.parameters())


def estimated_flops(model: Any, batch_size: int, seq_length: float) -> float:
    """Forward and backward from parameters times tokens."""
    return 3 * COEFFICIENT * parameters_of(model) * batch_size * seq_length


def _shape(value: Any) -> tuple[int, ...]:
    """Extents of a tensor, an array, or nested lists; empty for other types."""
    if (shape := getattr(value, "shape", None)) is not None:
        return tuple(int(extent) for extent in shape)
    if not isinstance(value, (list, tuple)):
        return ()
    return (len(value), *max((_shape(row) for row in value), default=()))


def _named(batch: Any) -> Mapping[str, Any]:
    """The batch by name; the first of several unnamed tensors is the input."""
    if isinstance(batch, Mapping):
        return batch
    if isinstance(batch, (list, tuple)) and any(hasattr(each, "shape") for each in batch):
        batch = next(each for each in batch if hasattr(each, "shape"))
    shape = _shape(batch)
    if "float" not in str(getattr(batch, "dtype", "")):
        return {"input_ids": batch} if shape else {}
    return {"pixel_values" if len(shape) > 3 else "inputs_embeds": batch}


def _visual_tokens(batch: Mapping[str, Any]) -> float | None:
    """Visual tokens of all images from their grids; None without a grid."""
    grid = batch.get("image_grid_thw")
    if grid is None:
        return None
    try:
        rows = grid.tolist() if hasattr(grid, "tolist") else list(grid)
        rows = [rows] if rows and not isinstance(rows[0], (list, tuple)) else rows
        return sum(int(t) * int(h) * int(w) for t, h, w in rows) / _MERGED
    except (TypeError, ValueError) as error:
        print_line(
            f"image_grid_thw is ignored, because it does not contain rows of t, h, w: {reason(error)}",
            f"忽略 image_grid_thw：其中没有 t、h、w 的行：{reason(error)}",
        )
        return None


def _masked(mask: Any) -> Batch:
    """Lengths from the mask, which is read even if it is on a device."""
    on_device = getattr(getattr(mask, "device", None), "type", "cpu") not in ("cpu", "meta")
    return describe(attention_mask=mask.cpu() if on_device else mask)


def _sequences(batch: Any) -> tuple[int, float]:
    """Number of sequences and their mean length, including visual tokens; zeros if the batch contains neither."""
    named = _named(batch)
    masked = _masked(named.get("attention_mask"))
    if masked.padded_length:
        return len(masked.lengths), sum(masked.lengths) / max(len(masked.lengths), 1)
    visual = _visual_tokens(named)
    pictures = _shape(named.get("pixel_values"))
    text: tuple[int, ...] = ()
    for name, least in (("input_ids", 1), ("inputs_embeds", 2), ("labels", 2)):
        if len(shape := _shape(named.get(name))) >= least:
            is_row = name == "input_ids" and len(shape) == 1
            text = (1, shape[0]) if is_row else (shape[0], 1 if name == "inputs_embeds" and len(shape) == 2 else shape[1])
            break
    if not text and masked.lengths:
        text = (len(masked.lengths), masked.lengths[0])
    if text:
        each = visual / max(text[0], 1) if visual is not None else VISUAL_TOKENS if pictures else 0
        return text[0], text[1] + each
    if visual is not None:
        return 1, visual
    return (pictures[0], VISUAL_TOKENS) if pictures else (0, 0)


def _get_actual_sequence_length(batch_example: Any) -> float:
    """Tokens per sequence, including visual tokens: mean over the attention mask, else the input length."""
    try:
        return float(_sequences(batch_example)[1])
    except Exception as error:
        print_line(f"The sequence length is unknown: {reason(error)}", f"序列长度未知：{reason(error)}")
        return 0.0


def _estimate_forward_flops(model: Any, batch_example: Any) -> float:
    """Forward: 2.5 × parameters × batch size × sequence length; 0.0 and a line if it is unknown."""
    try:
        sequences, length = _sequences(batch_example)
        if not sequences * length:
            print_line(
                "FLOPs cannot be estimated: the batch contains no number of tokens (input_ids, attention_mask, labels, …)",
                "无法估算FLOPs：批次中没有token数（input_ids、attention_mask、labels 等）",
            )
            return 0.0
        return estimated_flops(model, sequences, length) / 3
    except Exception as error:
        print_line(f"FLOPs cannot be estimated: {reason(error)}", f"FLOPs估算错误: {reason(error)}")
        return 0.0


def _estimate_flops_fallback(model: Any, batch_example: Any) -> float:
    """Forward and backward, which is twice forward."""
    return 3 * _estimate_forward_flops(model, batch_example)


def profile_model_flops(model: Any, batch_example: Any) -> float:
    """Estimated FLOPs of a training step on the batch; 0.0 and a line if they are unknown."""
    return _estimate_flops_fallback(model, batch_example)


def calculate_mfu(flops: float, compute_time: float, gpu_peak_flops: float) -> float:
    """MFU of ``flops`` in ``compute_time`` seconds, at most 1.0; 0.0 unless time and peak are positive."""
    given = {"flops": flops, "compute_time": compute_time, "gpu_peak_flops": gpu_peak_flops}
    numbers = {name: as_number(value) for name, value in given.items()}
    for name, number in numbers.items():
        if number is None or number <= 0:
            print_line(
                f"MFU is 0, because {name} is {given[name]!r} and must be a number above 0",
                f"MFU为0：{name} 是 {given[name]!r}，必须是大于0的数",
            )
            return 0.0
    work, seconds, peak = (number or 0.0 for number in numbers.values())
    return min(work / seconds / peak, 1.0)
