# SPDX-License-Identifier: Apache-2.0
"""FLOPs of a dummy batch by counting (or by torch's own profiler), and the MFU that follows."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flopmeter import _peaks
from flopmeter._count import count
from flopmeter._flopmeter import dtype_name
from flopmeter._hooks import suspended
from flopmeter.compat._estimate import COEFFICIENT, calculate_mfu, parameters_of

RECALIBRATION_FREQUENCY = 1000  # calls of calculate_precise_mfu in mode smart between two measurements
_calibrations: weakref.WeakKeyDictionary[Any, tuple[float, int]] = weakref.WeakKeyDictionary()


def _torch() -> Any:
    import torch

    return torch


def get_gpu_peak_flops(device: Any = None, dtype: Any = None) -> float:
    """Peak of one device in FLOP/s: catalog by torch's name of it, else the CPU's formula; 0.0 and a line if unknown."""
    table = _peaks.find_peaks(device)
    gpu = device if isinstance(device, str) and device != "cpu" else _peaks.torch_device_name(device)
    name = dtype_name(str(dtype)) if dtype is not None else "bf16" if gpu else "fp32"
    peak = table.peaks.get(name)
    if peak is None:
        print(f"The {name} peak of {table.device} is not known ({table.source}); MFU will be 0")
        return 0.0
    return peak


def peak_of(model: Any) -> float:
    """Peak of the device that holds the model, in the dtype it computes in."""
    parameter = next(model.parameters(), None)
    if parameter is None:
        return get_gpu_peak_flops()
    return get_gpu_peak_flops(parameter.device, _autocast_dtype(parameter.device.type) or parameter.dtype)


def _autocast_dtype(device_type: str) -> Any:
    """The dtype that autocast computes in; None where it is off."""
    torch = _torch()
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else None
    # torch 1.13: two names for each question
    if device_type == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def _create_dummy_batch_for_profiling(batch_size: int, seq_length: int, device: Any) -> dict[str, Any]:
    """Token ids, a full mask and labels; draws no random numbers."""
    torch = _torch()
    ids = torch.zeros(batch_size, seq_length, dtype=torch.long, device=device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


def _run(model: Any, batch: dict[str, Any]) -> Any:
    """Calls the model with what its forward takes of the batch; a module without such names gets one tensor."""
    torch = _torch()
    parameters = inspect.signature(model.forward).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return model(**batch)
    accepted = {p.name: batch[p.name] for p in parameters if p.name in batch}
    if accepted:
        return model(**accepted)
    if any(isinstance(module, torch.nn.Embedding) for module in model.modules()):
        return model(batch["input_ids"])
    linear = next(module for module in model.modules() if isinstance(module, torch.nn.Linear))
    shape = (*batch["input_ids"].shape, linear.in_features)
    return model(torch.ones(shape, dtype=linear.weight.dtype, device=linear.weight.device))


def _loss(output: Any) -> Any:
    loss = getattr(output, "loss", None)
    if loss is not None:
        return loss
    values = output.values() if isinstance(output, Mapping) else output if isinstance(output, (list, tuple)) else [output]
    return next(v for v in values if hasattr(v, "is_floating_point") and v.is_floating_point()).float().sum()


@contextmanager
def _untouched(model: Any) -> Iterator[None]:
    """Whatever runs inside leaves random numbers, gradients, buffers and train mode as they were."""
    torch = _torch()
    modes = [(module, module.training) for module in model.modules()]
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    for parameter, _ in gradients:
        parameter.grad = None
    try:
        with torch.random.fork_rng(), suspended():
            yield
    finally:
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        for parameter, gradient in gradients:
            parameter.grad = gradient
        for module, training in modes:
            module.training = training


def _by_torch_profiler(work: Any) -> float:
    """What torch.profiler sums up under with_flops: products and convolutions, forward only where it has no formula."""
    torch = _torch()
    with torch.profiler.profile(record_shapes=True, with_flops=True) as profiler:
        work()
    total = float(sum(event.flops for event in profiler.events() if event.flops))
    del profiler  # its events are large
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    return total


def _measure_flops_with_profiler(
    model: Any, batch_size: int, seq_length: int, forward_only: bool = False, flops_backend: str = "flopmeter"
) -> float:
    """FLOPs of forward and backward on a dummy batch; 0.0 and a line where the model cannot run one.

    ``flops_backend``: "flopmeter" counts, "torch_profiler" asks torch's own profiler.
    """
    if flops_backend not in ("flopmeter", "torch_profiler"):
        print(f"flops_backend '{flops_backend}': expected flopmeter or torch_profiler; flopmeter is used")
        flops_backend = "flopmeter"
    try:
        torch = _torch()
        parameter = next(model.parameters(), None)
        batch = _create_dummy_batch_for_profiling(batch_size, seq_length, parameter.device if parameter is not None else "cpu")

        def work() -> None:
            if forward_only:
                with torch.no_grad():
                    _run(model, batch)
            else:
                with torch.enable_grad():
                    _loss(_run(model, batch)).backward()

        with _untouched(model):
            if flops_backend == "torch_profiler":
                return _by_torch_profiler(work)
            with count() as counted:
                work()
            return float(counted.model_flops)
    except Exception as error:
        print(f"FLOPs cannot be measured: {type(error).__name__}: {error}")
        return 0.0


def calculate_mfu_with_profiler(
    model: Any, batch_size: int, seq_length: int, step_time: float, forward_only: bool = False, flops_backend: str = "flopmeter"
) -> float:
    """MFU of a step that took ``step_time`` seconds, with FLOPs measured on a dummy batch; at most 1.0."""
    try:
        flops = _measure_flops_with_profiler(model, batch_size, seq_length, forward_only, flops_backend)
        if flops <= 0:
            print("The profiler measured no FLOPs; MFU is 0")
            return 0.0
        return calculate_mfu(flops, step_time, peak_of(model))
    except Exception as error:
        print(f"MFU cannot be calculated: {type(error).__name__}: {error}")
        return 0.0


def estimated_flops(model: Any, batch_size: int, seq_length: int) -> float:
    """Forward and backward from parameters times tokens."""
    return 3 * COEFFICIENT * parameters_of(model) * batch_size * seq_length


def smart_flops(model: Any, batch_size: int, seq_length: int) -> float:
    """Measured once, then the estimate times what the measurement was to it; measured again every 1000 calls."""
    factor, calls = _calibrations.get(model, (0.0, 0))
    if factor == 0 or calls >= RECALIBRATION_FREQUENCY:
        estimated = estimated_flops(model, batch_size, seq_length)
        measured = _measure_flops_with_profiler(model, batch_size, seq_length)
        factor, calls = (measured / estimated if measured and estimated else 0.0), 0
    _calibrations[model] = (factor, calls + 1)
    return estimated_flops(model, batch_size, seq_length) * (factor or 1.0)


def calculate_precise_mfu(
    model: Any,
    batch_size: int,
    seq_length: int,
    step_time: float,
    measurement_mode: str = "smart",
    actual_flops: float | None = None,
) -> float:
    """MFU in one of four modes; ``actual_flops`` is used as it is.

    "smart" measures once and calibrates the estimate, "profiler" measures at every call, "estimate" never does,
    "hybrid" reads hardware counters where there are any, and else measures.
    """
    try:
        if actual_flops is not None:
            flops = float(actual_flops)
        elif measurement_mode == "estimate":
            flops = estimated_flops(model, batch_size, seq_length)
        elif measurement_mode == "smart":
            flops = smart_flops(model, batch_size, seq_length)
        elif measurement_mode in ("profiler", "hybrid"):
            # A counter of the device sees whatever runs beside the model too; a single call cannot tell them apart.
            flops = _measure_flops_with_profiler(model, batch_size, seq_length)
        else:
            print(f"measurement_mode '{measurement_mode}': expected smart, profiler, estimate or hybrid; MFU is 0")
            return 0.0
        return calculate_mfu(flops, step_time, peak_of(model))
    except Exception as error:
        print(f"MFU cannot be calculated: {type(error).__name__}: {error}")
        return 0.0
