# SPDX-License-Identifier: Apache-2.0
"""FLOPs of a dummy batch by counting (or by torch's own profiler), and the MFU that follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flopmeter import peaks
from flopmeter.counting import count
from flopmeter._flopmeter import dtype_name
from flopmeter.compat._dummy import (
    _create_dummy_batch_for_profiling,
    _torch,
    run_once,
    takes_labels,
    untouched,
    waits_for_ranks,
    without_ddp,
)
from flopmeter.compat._estimate import as_number, calculate_mfu, reason


def usual_dtype(device: Any = None) -> str:
    """What models on the device compute in, where nothing tells."""
    is_gpu = isinstance(device, str) and device != "cpu" or peaks.torch_device_name(device)
    return "bf16" if is_gpu else "fp32"


def get_gpu_peak_flops(device: Any = None, dtype: Any = None) -> float:
    """Peak of one device in FLOP/s: catalog by torch's name of it, else the CPU's formula; 0.0 and a line if unknown."""
    try:
        table = peaks.find_peaks(device)
        name = dtype_name(str(dtype)) if dtype is not None else usual_dtype(device)
    except Exception as error:  # a device or dtype that nobody knows
        print(f"The peak is not known, and MFU will be 0: {reason(error)}")
        return 0.0
    peak = table.peaks.get(name)
    if peak is None:
        print(f"The {name} peak of {table.device} is not known ({table.source}); MFU will be 0")
        return 0.0
    return peak


def device_and_dtype(model: Any) -> tuple[Any, Any]:
    """Where the model is and what it computes in; None where it has no parameters."""
    parameter = next(model.parameters(), None)
    if parameter is None:
        return None, None
    return parameter.device, _autocast_dtype(parameter.device.type) or parameter.dtype


def peak_of(model: Any) -> float:
    """Peak of the device that holds the model, in the dtype it computes in."""
    return get_gpu_peak_flops(*device_and_dtype(model))


def _autocast_dtype(device_type: str) -> Any:
    """The dtype that autocast computes in; None where it is off."""
    torch = _torch()
    if device_type == "meta":
        return None
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else None
    # torch 1.13: two names for each question
    if device_type == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def _by_torch_profiler(work: Callable[[], None]) -> float:
    """What torch.profiler sums up under with_flops: products and convolutions, forward only where it has no formula."""
    torch = _torch()
    with torch.profiler.profile(record_shapes=True, with_flops=True) as profiler:
        work()
    total = float(sum(event.flops for event in profiler.events() if event.flops))
    del profiler  # its events are large
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    return total


def _by_count(work: Callable[[], None]) -> float:
    with count() as counted:
        work()
    return float(counted.model_flops)


def _unmeasurable(model: Any, batch_size: Any, seq_length: Any) -> str:
    """Why no dummy batch can be run; empty where one can."""
    if not isinstance(model, _torch().nn.Module):
        return f"{type(model).__name__} is no torch module"
    for name, value in (("batch_size", batch_size), ("seq_length", seq_length)):
        number = as_number(value)
        if number is None or number < 1 or number != int(number):
            return f"{name} is {value!r} and must be a whole number above 0"
    if next(model.parameters(), None) is None:
        return f"{type(model).__name__} has no parameters"
    if part := waits_for_ranks(without_ddp(model)):
        return f"{part} runs on all ranks at once; leave model_ref unset to count the steps themselves"
    return ""


def _without_labels(model: Any, batch: dict[str, Any], measure: Callable[[], float], error: Exception) -> float:
    """Once more after an error, as for a head that gives one class a sequence; the error where that is none of the labels'."""
    if not takes_labels(model):
        raise error
    del batch["labels"]
    try:
        flops = measure()
    except Exception:
        raise error from None
    print(f"FLOPs are measured without labels, because one for each token does not fit: {reason(error)}")
    return flops


def _measure_flops_with_profiler(
    model: Any, batch_size: int, seq_length: int, forward_only: bool = False, flops_backend: str = "flopmeter"
) -> float:
    """FLOPs of forward and backward on a dummy batch; 0.0 and a line where the model cannot run one.

    ``flops_backend``: "flopmeter" counts, "torch_profiler" asks torch's own profiler.
    """
    if flops_backend not in ("flopmeter", "torch_profiler"):
        print(f"flops_backend '{flops_backend}': expected flopmeter or torch_profiler; flopmeter is used")
    measure = _by_torch_profiler if flops_backend == "torch_profiler" else _by_count
    try:
        if why := _unmeasurable(model, batch_size, seq_length):
            print(f"FLOPs cannot be measured: {why}")
            return 0.0
        inner = without_ddp(model)
        parameters = list(inner.parameters())
        if not forward_only and not any(parameter.requires_grad for parameter in parameters):
            print("No parameter is trained: FLOPs are those of the forward")
        with untouched(inner):
            batch = _create_dummy_batch_for_profiling(int(batch_size), int(seq_length), parameters[0].device)
            try:
                flops = measure(lambda: run_once(inner, batch, forward_only))
            except Exception as error:
                flops = _without_labels(inner, batch, lambda: measure(lambda: run_once(inner, batch, forward_only)), error)
        if flops <= 0:
            print(f"{type(inner).__name__} ran without any operation that counts as FLOPs")
        return flops
    except Exception as error:
        print(f"FLOPs cannot be measured: {reason(error)}")
        return 0.0


def calculate_mfu_with_profiler(
    model: Any, batch_size: int, seq_length: int, step_time: float, forward_only: bool = False, flops_backend: str = "flopmeter"
) -> float:
    """MFU of a step that took ``step_time`` seconds, with FLOPs measured on a dummy batch; at most 1.0."""
    return mfu_of(model, step_time, lambda: _measure_flops_with_profiler(model, batch_size, seq_length, forward_only, flops_backend))


def mfu_of(model: Any, step_time: Any, flops: Callable[[], float]) -> float:
    """MFU with FLOPs that are asked for only where the time is good."""
    try:
        seconds = as_number(step_time)
        if seconds is None or seconds <= 0:
            print(f"MFU is 0, because step_time is {step_time!r} and must be seconds above 0")
            return 0.0
        work = flops()
        peak = peak_of(model) if work else 0.0
        return calculate_mfu(work, seconds, peak) if peak else 0.0  # what is missing was said
    except Exception as error:
        print(f"MFU cannot be calculated: {reason(error)}")
        return 0.0
