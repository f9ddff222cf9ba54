# SPDX-License-Identifier: Apache-2.0
"""FLOPs of a dummy batch by counting (or by the torch profiler), and the resulting MFU."""

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
from flopmeter.compat._language import print_line


def usual_dtype(device: Any = None) -> str:
    """Default compute dtype of a device."""
    is_gpu = isinstance(device, str) and device != "cpu" or peaks.torch_device_name(device)
    return "bf16" if is_gpu else "fp32"


def get_gpu_peak_flops(device: Any = None, dtype: Any = None) -> float:
    """Peak of one device in FLOP/s: catalog, else the CPU formula; 0.0 and a line if it is unknown."""
    try:
        table = peaks.find_peaks(device)
        name = dtype_name(str(dtype)) if dtype is not None else usual_dtype(device)
    except Exception as error:  # unknown device or dtype
        print_line(f"The peak is unknown, MFU will be 0: {reason(error)}", f"峰值未知，MFU将为0：{reason(error)}")
        return 0.0
    peak = table.peaks.get(name)
    if peak is None:
        print_line(
            f"The {name} peak of {table.device} is unknown ({table.source}); MFU will be 0",
            f"{table.device} 的 {name} 峰值未知（{table.source}），MFU将为0",
        )
        return 0.0
    return peak


def device_and_dtype(model: Any) -> tuple[Any, Any]:
    """Device and compute dtype of the model; None if it has no parameters."""
    parameter = next(model.parameters(), None)
    if parameter is None:
        return None, None
    return parameter.device, _autocast_dtype(parameter.device.type) or parameter.dtype


def peak_of(model: Any) -> float:
    """Peak of the device of the model in its compute dtype."""
    return get_gpu_peak_flops(*device_and_dtype(model))


def _autocast_dtype(device_type: str) -> Any:
    """The dtype of autocast; None if it is off."""
    torch = _torch()
    if device_type == "meta":
        return None
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else None
    # torch 1.13 has two names for each function
    if device_type == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def _by_torch_profiler(work: Callable[[], None]) -> float:
    """FLOPs of torch.profiler with with_flops: matmuls and convolutions, without operators that have no formula."""
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
    """Why a dummy batch cannot run; empty if it can."""
    if not isinstance(model, _torch().nn.Module):
        return f"{type(model).__name__} is not a torch module"
    for name, value in (("batch_size", batch_size), ("seq_length", seq_length)):
        number = as_number(value)
        if number is None or number < 1 or number != int(number):
            return f"{name} is {value!r} and must be a positive integer"
    if next(model.parameters(), None) is None:
        return f"{type(model).__name__} has no parameters"
    if part := waits_for_ranks(without_ddp(model)):
        return f"{part} runs on all ranks at once; do not set model_ref, to count the steps themselves"
    return ""


def _without_labels(model: Any, batch: dict[str, Any], measure: Callable[[], float], error: Exception) -> float:
    """Repeats without labels after an error, for a head with one class per sequence; raises if the labels are not the reason."""
    if not takes_labels(model):
        raise error
    del batch["labels"]
    try:
        flops = measure()
    except Exception:
        raise error from None
    print_line(
        f"FLOPs are measured without labels, because labels per token do not fit: {reason(error)}",
        f"每个token一个标签不适用，测量FLOPs时不使用标签：{reason(error)}",
    )
    return flops


def _measure_flops_with_profiler(
    model: Any, batch_size: int, seq_length: int, forward_only: bool = False, flops_backend: str = "flopmeter"
) -> float:
    """FLOPs of forward and backward on a dummy batch; 0.0 and a line if the model cannot run it.

    ``flops_backend``: "flopmeter" counts, "torch_profiler" uses the torch profiler.
    """
    if flops_backend not in ("flopmeter", "torch_profiler"):
        print_line(
            f"flops_backend '{flops_backend}': expected flopmeter or torch_profiler; flopmeter is used",
            f"flops_backend '{flops_backend}'：应为 flopmeter 或 torch_profiler；使用 flopmeter",
        )
    measure = _by_torch_profiler if flops_backend == "torch_profiler" else _by_count
    try:
        if why := _unmeasurable(model, batch_size, seq_length):
            print_line(f"FLOPs cannot be measured: {why}", f"⚠️  Profiler无法测量FLOPs，返回0：{why}")
            return 0.0
        inner = without_ddp(model)
        parameters = list(inner.parameters())
        if not forward_only and not any(parameter.requires_grad for parameter in parameters):
            print_line("No parameter is trained: only the forward pass is counted", "没有可训练的参数：只计算前向")
        with untouched(inner):
            batch = _create_dummy_batch_for_profiling(int(batch_size), int(seq_length), parameters[0].device)
            try:
                flops = measure(lambda: run_once(inner, batch, forward_only))
            except Exception as error:
                flops = _without_labels(inner, batch, lambda: measure(lambda: run_once(inner, batch, forward_only)), error)
        if flops <= 0:
            print_line(f"{type(inner).__name__} ran no operator with a FLOP cost", f"⚠️  Profiler无法测量FLOPs，返回0：{type(inner).__name__} 没有计FLOPs的算子")
        return flops
    except Exception as error:
        print_line(f"FLOPs cannot be measured: {reason(error)}", f"Profiler FLOPs测量错误: {reason(error)}")
        return 0.0


def calculate_mfu_with_profiler(
    model: Any, batch_size: int, seq_length: int, step_time: float, forward_only: bool = False, flops_backend: str = "flopmeter"
) -> float:
    """MFU of a step of ``step_time`` seconds, with FLOPs measured on a dummy batch; at most 1.0."""
    return mfu_of(model, step_time, lambda: _measure_flops_with_profiler(model, batch_size, seq_length, forward_only, flops_backend))


def mfu_of(model: Any, step_time: Any, flops: Callable[[], float]) -> float:
    """MFU; requests the FLOPs only if the time is valid."""
    try:
        seconds = as_number(step_time)
        if seconds is None or seconds <= 0:
            print_line(
                f"MFU is 0, because step_time is {step_time!r} and must be a positive number of seconds",
                f"MFU为0：step_time 是 {step_time!r}，必须是大于0的秒数",
            )
            return 0.0
        work = flops()
        peak = peak_of(model) if work else 0.0
        return calculate_mfu(work, seconds, peak) if peak else 0.0  # the reason was printed
    except Exception as error:
        print_line(f"MFU cannot be calculated: {reason(error)}", f"Profiler MFU计算错误: {reason(error)}")
        return 0.0
