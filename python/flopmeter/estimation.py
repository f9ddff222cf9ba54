# SPDX-License-Identifier: Apache-2.0
"""``flopmeter.estimate()``: FLOPs, parameters, ideal step time, and MFU of a model from its configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from flopmeter import _flopmeter
from flopmeter.models import find_model
from flopmeter.peaks import find_peaks


def estimate(
    model: Any,
    seq_len: int | None = None,
    batch: int = 1,
    *,
    seq_lens: Iterable[int] | None = None,
    image_grid_thw: Iterable[Sequence[int]] | None = None,
    device: Any = None,
    devices: int = 1,
    dtype: str = "bf16",
    sparse: bool = False,
    peak_tflops: float | str | None = None,
    step_time: float | None = None,
    tokens_per_second: float | None = None,
    convention: str = "model-v1",
    recompute: str = "none",
    trainable: str = "all",
    attention: str = "fused",
    forward_only: bool = False,
    mtp: bool | None = None,
) -> dict[str, Any]:
    """The object that ``flopmeter estimate --json`` prints; FLOPs are exact integers, unknown values are None.

    ``model``: a model name, a config.json or its folder, a dict, a Hugging Face config or model.
    Default of ``seq_len``: the maximum of the configuration, else 2048.
    """
    if seq_lens is not None and (seq_len is not None or batch != 1):
        raise ValueError("estimate: specify either seq_lens or seq_len and batch")
    if step_time is not None and tokens_per_second is not None:
        raise ValueError("estimate: specify either step_time or tokens_per_second")
    found, longest = find_model(model)
    sequences = [(int(n), 1) for n in seq_lens] if seq_lens is not None else [(longest or 2048 if seq_len is None else seq_len, batch)]
    dtype = _flopmeter.dtype_name(str(dtype))
    peaks = find_peaks(device or "", peak_tflops, sparse) if device is not None or peak_tflops is not None else None
    if peaks is not None and dtype not in peaks.peaks:
        known = ", ".join(peaks.peaks)
        raise ValueError(
            f"no {dtype} peak is published for {peaks.device}{f' (known: {known})' if known else ''}; "
            "specify peak_tflops= or another dtype, or measure it with `flopmeter peak`"
        )
    training = _flopmeter.Training(trainable, recompute, attention, forward_only, mtp)
    text = _flopmeter.estimate_json(
        found,
        sequences,
        [(int(t), int(h), int(w)) for t, h, w in image_grid_thw or ()],
        training,
        convention,
        dtype,
        peaks,
        devices,
        step_time,
        tokens_per_second,
    )
    return json.loads(text)
