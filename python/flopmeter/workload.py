# SPDX-License-Identifier: Apache-2.0
"""Description of the work for the monitor: model, training, device, dtype, peaks, and counter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from flopmeter import _flopmeter
from flopmeter.log import log_once
from flopmeter.models import config_of, find_model, stored_form
from flopmeter.peaks import find_peaks
from flopmeter.torch import as_module, loaded_torch
from flopmeter.torch.adapter import AdapterUnavailable, torch_adapter
from flopmeter.torch.device import gpu_uuid, has_own_memory, memory_bytes


def _device_and_dtype(module: Any, device: Any, dtype: Any) -> tuple[Any, str]:
    torch = loaded_torch()
    parameter = next(module.parameters(), None) if module is not None else None
    if device is None and parameter is not None:
        device = parameter.device
    if dtype is None:
        dtype = parameter.dtype if parameter is not None else "fp32" if device is None or str(device) == "cpu" else "bf16"
    name = _flopmeter.dtype_name(str(dtype))
    if name == "fp32" and torch is not None and str(device).startswith("cuda") and torch.backends.cuda.matmul.allow_tf32:
        name = "tf32"
    return device, name


def _catalog_model(model: Any, module: Any, frozen: bool, mode: str) -> _flopmeter.Model | None:
    if model is None or frozen and mode != "estimate":
        return None  # names alone do not show which gradients are computed: the count does
    try:
        found, _ = find_model(model)
    except ValueError:
        if module is None or mode == "estimate":
            raise
        found = None
    if found is not None and found.known:
        return found
    if config_of(model) is not None:
        log_once(f"{type(module or model).__name__} is of no family in the catalog: its FLOPs are counted, but not estimated")
    return None


def _attention_is_eager(model: Any, device: Any) -> bool:
    """Chosen so, or because the fused kernel of the CPU does not support it: torch then runs plain matmuls."""
    config = getattr(model, "config", None)

    def size(name: str) -> float:
        return getattr(config, name, 0) or 0

    widths_differ = size("v_head_dim") != size("qk_nope_head_dim") + size("qk_rope_head_dim")
    one_key_head = size("multi_query") and not size("new_decoder_architecture") and size("num_attention_heads") > 1
    dropout = size("attn_pdrop") or size("attention_dropout")
    refused = dropout or widths_differ or one_key_head
    return getattr(config, "_attn_implementation", None) == "eager" or bool(str(device) == "cpu" and refused)


def _matmuls(device: Any, dtype: str) -> Callable[[], int]:
    """Matmuls of known FLOPs in the dtype of the run, with which mode hybrid calibrates hardware counters."""
    torch: Any = loaded_torch()
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp64": torch.float64}.get(dtype, torch.float32)
    on_gpu = str(device).startswith("cuda")
    size, times = (8192, 50) if on_gpu else (512, 8)

    def work() -> int:
        a = torch.ones(size, size, dtype=kind, device=device)
        with torch.no_grad():
            for _ in range(times):
                torch.mm(a, a)
        if on_gpu:
            torch.cuda.synchronize(device)
        return 2 * size**3 * times

    return work


def _counter(replicated: bool) -> Any:
    if loaded_torch() is None:
        return None
    try:
        return torch_adapter().FlopCounter(replicated)
    except (AdapterUnavailable, RuntimeError) as error:
        log_once(f"FLOPs are not counted: {str(error).removeprefix('flopmeter: ')}")
        return None


def describe_workload(
    config: _flopmeter.MonitorConfig,
    model: Any,
    *,
    device: Any,
    dtype: Any,
    peak_tflops: Any,
    trainable: str | None,
    recompute: str | None,
    attention: str | None,
    mtp: bool | None,
    count: bool,
) -> None:
    """Fill in everything about model and device; ``config.options`` must be set."""
    options = config.options.values()
    device = options["device"] or None if device is None else device
    dtype = options["dtype"] or None if dtype is None else dtype
    peak_tflops = options["peak"] or None if peak_tflops is None else peak_tflops
    module = as_module(model)
    device, dtype = _device_and_dtype(module, device, dtype)
    frozen = trainable is None and module is not None and not all(p.requires_grad for p in module.parameters())
    config.model = _catalog_model(model, module, frozen, options["mode"])
    checkpointed = bool(getattr(module, "is_gradient_checkpointing", False))
    how = {
        "recompute": recompute or ("full" if checkpointed else "none"),
        "attention": attention or ("eager" if _attention_is_eager(model, device) else "fused"),
    }
    config.training = _flopmeter.Training(trainable or "all", recompute=how["recompute"], attention=how["attention"], mtp=mtp)
    found = config.model
    parameters = sum(p.numel() for p in module.parameters()) if module is not None else found.parameters if found else None
    config.model_source = _flopmeter.ModelSource(
        **stored_form(model),
        **how,
        family=found.family if found is not None else "",
        trainable=trainable or ("" if frozen else "all"),
        mtp=mtp,
        dtype=dtype,
        parameters=parameters,
    )
    config.dtype = dtype
    config.peaks = find_peaks(device, peak_tflops)
    config.replicated = bool(options["replicated_modules"])
    if count and options["mode"] != "estimate" and options["enabled"] == "true":
        config.counter = _counter(config.replicated)
        if config.counter is not None and _flopmeter.counts_in_python() and options["mode"] in ("auto", "profiler"):
            config.options.set("mode", "smart")  # counts one step per batch shape
    config.gpu = gpu_uuid(device)
    if has_own_memory(device):
        config.device_memory = partial(memory_bytes, device)
    if options["mode"] == "hybrid" and loaded_torch():
        config.known_work = _matmuls(device, dtype)
