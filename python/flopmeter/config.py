# SPDX-License-Identifier: Apache-2.0
"""What a monitor is made of: options, model, peaks, counter, and its place among the ranks."""

from __future__ import annotations

import atexit
import importlib
import json
import os
import sys
import weakref
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from flopmeter import _flopmeter
from flopmeter.torch.adapter import AdapterUnavailable, torch_adapter
from flopmeter.parallelism import learn_layout
from flopmeter.models import config_of, find_model, stored_form
from flopmeter.torch.modules import ModuleHooks
from flopmeter.peaks import find_peaks

Sink = Callable[[dict[str, Any]], None]
_sinks: dict[str, Sink] = {}
_alive: weakref.WeakSet[Any] = weakref.WeakSet()
_said: set[str] = set()


def say(text: str) -> None:
    """One line for people, once."""
    if text in _said:
        return
    _said.add(text)
    bars = getattr(sys.modules.get("tqdm"), "tqdm", None)  # on a line of its own, not behind a bar
    (bars.write if bars else print)(f"flopmeter: {text}", file=sys.stderr)


def torch_module() -> ModuleType | None:
    """Torch, if the program has imported it."""
    return sys.modules.get("torch")


def can_find_phases() -> bool:
    """Whether the program's torch, if it has one, has the hooks that tell forward, backward and optimizer; says so where not."""
    torch = torch_module()
    if torch is None:
        return False
    if hasattr(importlib.import_module("torch.optim.optimizer"), "register_optimizer_step_pre_hook"):
        return True
    say(f"torch {torch.__version__} has no hooks for optimizers: phases are not found, and a step is what the loop marks, or a batch")
    return False


def register_sink(name: str, write: Sink) -> None:
    """Make ``sinks=["name"]`` an output: ``write(record)`` gets each record as a dict, in a thread of its own."""
    _sinks[name] = write


def python_sinks(named: dict[str, Any]) -> list[Sink]:
    """Takes the outputs written in Python from the options; leaves the others."""
    wanted = named.pop("sinks", None) or []
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    named["sink"] = [name for name in wanted if name not in _sinks]
    return [_sinks[name] for name in wanted if name in _sinks]


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def make_options(
    named: Mapping[str, Any], config: str | os.PathLike[str] | Mapping[str, Any] | None, model: str
) -> _flopmeter.Options:
    """Options from the environment, then ``config``, then keywords."""
    options = _flopmeter.Options()
    options.apply_environment()
    if isinstance(config, Mapping):
        options.apply_yaml(json.dumps(config, default=str), "config")
    elif config is not None:
        text = os.fspath(config)
        if "\n" in text:
            options.apply_yaml(text, "config")
        else:
            options.apply_yaml_file(text)
    if model and not options.values()["model"]:
        options.set("model", model)
    for name, value in named.items():
        if value is None:
            continue
        for each in value if isinstance(value, (list, tuple)) else [value]:
            options.set(name, _as_text(each))
    return options


def run_directory(root: str | os.PathLike[str]) -> str | None:
    """``root``/perf_monitor, unless the environment names a directory."""
    options = _flopmeter.Options()
    unnamed = options.values()["directory"]
    options.apply_environment()
    return os.path.join(root, "perf_monitor") if options.values()["directory"] == unnamed else None


def model_name(model: Any) -> str:
    """What people would call it."""
    if model is None or isinstance(model, Mapping):
        return ""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    while _module(inner := getattr(model, "module", None) or getattr(model, "_orig_mod", None)) is not None:
        model = inner  # what DDP, FSDP and torch.compile put around it
    return getattr(getattr(model, "config", model), "name_or_path", "") or type(model).__name__


class Parts(NamedTuple):
    """What a monitor is connected to."""

    model: _flopmeter.Model | None
    training: _flopmeter.Training
    peaks: _flopmeter.PeakTable
    dtype: str
    device: Any  # a torch device with memory of its own, else None
    source: Any  # _torch.FlopCounter, else None
    model_source: _flopmeter.ModelSource  # for run.json
    gpu: str | None  # NVML's name of an NVIDIA GPU
    known_work: Callable[[], int] | None  # for mode hybrid


def _module(model: Any) -> Any:
    torch = torch_module()
    return model if torch is not None and isinstance(model, torch.nn.Module) else None


def _device_and_dtype(module: Any, device: Any, dtype: Any) -> tuple[Any, str]:
    torch = torch_module()
    parameter = next(module.parameters(), None) if module is not None else None
    if device is None and parameter is not None:
        device = parameter.device
    if dtype is None:
        dtype = parameter.dtype if parameter is not None else "fp32" if device is None or str(device) == "cpu" else "bf16"
    name = _flopmeter.dtype_name(str(dtype))
    if name == "fp32" and torch is not None and str(device).startswith("cuda") and torch.backends.cuda.matmul.allow_tf32:
        name = "tf32"
    return device, name


def _find_model(model: Any, module: Any, frozen: bool, mode: str) -> _flopmeter.Model | None:
    if model is None or frozen and mode != "estimate":
        return None  # which gradients are formed is not known from names alone: the count tells
    try:
        found, _ = find_model(model)
    except ValueError:
        if module is None or mode == "estimate":
            raise
        found = None
    if found is not None and found.known:
        return found
    if config_of(model) is not None:
        say(f"{type(module or model).__name__} is of no family in the catalog: its FLOPs are counted, but not estimated")
    return None


def _attention_is_eager(model: Any, device: Any) -> bool:
    """Chosen so, or because of what the fused kernel of the CPU cannot do: torch then runs plain products."""
    config = getattr(model, "config", None)

    def size(name: str) -> float:
        return getattr(config, name, 0) or 0

    widths_differ = size("v_head_dim") != size("qk_nope_head_dim") + size("qk_rope_head_dim")
    one_key_head = size("multi_query") and not size("new_decoder_architecture") and size("num_attention_heads") > 1
    dropout = size("attn_pdrop") or size("attention_dropout")
    refused = dropout or widths_differ or one_key_head
    return getattr(config, "_attn_implementation", None) == "eager" or bool(str(device) == "cpu" and refused)


def parts_of(
    model: Any,
    device: Any,
    dtype: Any,
    peak_tflops: Any,
    trainable: str | None,
    recompute: str | None,
    attention: str | None,
    mtp: bool | None,
    options: _flopmeter.Options,
    count: bool,
) -> Parts:
    """Everything that the monitor needs to know about model and device."""
    values = options.values()
    mode = values["mode"]
    device = values["device"] or None if device is None else device
    dtype = values["dtype"] or None if dtype is None else dtype
    peak_tflops = values["peak"] or None if peak_tflops is None else peak_tflops
    module = _module(model)
    device, dtype = _device_and_dtype(module, device, dtype)
    frozen = trainable is None and module is not None and not all(p.requires_grad for p in module.parameters())
    found = _find_model(model, module, frozen, mode)
    checkpointed = bool(getattr(module, "is_gradient_checkpointing", False))
    how = {
        "recompute": recompute or ("full" if checkpointed else "none"),
        "attention": attention or ("eager" if _attention_is_eager(model, device) else "fused"),
    }
    training = _flopmeter.Training(trainable or "all", recompute=how["recompute"], attention=how["attention"], mtp=mtp)
    parameters = sum(p.numel() for p in module.parameters()) if module is not None else found.parameters if found else None
    kept = _flopmeter.ModelSource(
        **stored_form(model),
        **how,
        family=found.family if found is not None else "",
        trainable=trainable or ("" if frozen else "all"),
        mtp=mtp,
        dtype=dtype,
        parameters=parameters,
    )
    peaks = find_peaks(device, peak_tflops)
    replicated = bool(options.values()["replicated_modules"])
    source = _source(replicated) if count and mode != "estimate" and options.values()["enabled"] == "true" else None
    memory = device if str(device).split(":")[0] in ("cuda", "xpu", "npu") and torch_module() else None
    work = _known_work(device, dtype) if mode == "hybrid" and torch_module() else None
    return Parts(found, training, peaks, dtype, memory, source, kept, _gpu(device), work)


def _gpu(device: Any) -> str | None:
    """The name by which NVML knows a CUDA device; None for any other."""
    torch = torch_module()
    if torch is None or not str(device).startswith("cuda") or torch.version.cuda is None or not torch.cuda.is_initialized():
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def _known_work(device: Any, dtype: str) -> Callable[[], int]:
    """Matrix products in the dtype of the run: what mode hybrid calibrates hardware counters with."""
    torch = torch_module()
    assert torch is not None
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


def _source(replicated: bool) -> Any:
    if torch_module() is None:
        return None
    try:
        return torch_adapter().FlopCounter(replicated)
    except (AdapterUnavailable, RuntimeError) as error:
        say(f"no FLOPs are counted: {error}")
        return None


def _distributed() -> Any:
    """torch.distributed, where it is initialized."""
    distributed = getattr(torch_module(), "distributed", None)
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def world_of(
    rank: int | None, world_size: int | None, data_parallel: int | None, model: Any, options: _flopmeter.Options
) -> _flopmeter.World:
    """This process among its ranks: as given, as torch knows it, as the launcher says, or alone."""
    world = _flopmeter.World()
    if (distributed := _distributed()) is not None:
        if rank is None:
            rank, world_size = distributed.get_rank(), world_size or distributed.get_world_size()
        sizes = {split: int(options.values()[f"{split}_parallel"]) for split in ("tensor", "pipeline", "context", "expert")}
        learn_layout(world, distributed, _module(model), {split: size for split, size in sizes.items() if size > 0})
    if rank is not None:
        world.rank = rank
    world.size = world_size or max(world.size, world.rank + 1)
    world.data_parallel = data_parallel or 0
    if not 0 <= world.rank < world.size:
        raise ValueError(f"rank is {world.rank} and world_size {world.size}: ranks are numbered from 0 to world_size - 1")
    return world


def exchange_of(options: _flopmeter.Options) -> int:
    """The address of what broadcasts rank 0's measurement, on a process group of its own; 0 where nothing does.

    All ranks must come here alike: making a group is a collective.
    """
    if options.values()["broadcast"] != "true" or options.values()["enabled"] != "true":
        return 0
    distributed = _distributed()
    if distributed is None:
        say("broadcast: torch.distributed is not initialized, so each rank measures for itself; make the monitor after it")
        return 0
    group = distributed.new_group(backend="gloo")
    return torch_adapter().make_exchange(group.group_name)


def replicated_hooks(model: Any, options: _flopmeter.Options) -> ModuleHooks | None:
    """Hooks that mark the modules which all tensor-parallel ranks run alike."""
    patterns = options.values()["replicated_modules"]
    if not patterns:
        return None
    if _module(model) is None:
        raise ValueError("replicated_modules names modules of the model: give the model itself as model=")
    return ModuleHooks.replicated(torch_adapter(), model, patterns)


def number_of(value: Any) -> float | None:
    """A number, if reading it does not wait for a device."""
    if value is None or isinstance(value, (int, float)):
        return None if value is None else float(value)
    if getattr(getattr(value, "device", None), "type", "cpu") != "cpu":
        say("a loss on a device is not recorded, because reading it would wait; give loss.item() where you have it")
        return None
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        return None


def device_memory(device: Any) -> tuple[int, int, int]:
    """Bytes that torch's allocator holds now, held at most, and has reserved."""
    torch = torch_module()
    driver = getattr(torch, str(device).split(":")[0])
    return driver.memory_allocated(device), driver.max_memory_allocated(device), driver.memory_reserved(device)


def finish_at_exit(monitor: Any) -> None:
    """Finish the monitor when the program ends, if it still exists."""
    if not _alive:
        atexit.register(_finish_all)
    _alive.add(monitor)


def _finish_all() -> None:
    for monitor in list(_alive):
        monitor.finish()


def active_monitors() -> list[Any]:
    """Monitors that watch now."""
    return [monitor for monitor in _alive if monitor.enabled]


def finish_automatic() -> None:
    """End the monitors that nobody in the program asked for."""
    for monitor in active_monitors():
        if monitor._automatic:
            monitor.finish()
