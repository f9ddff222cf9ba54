# SPDX-License-Identifier: Apache-2.0
"""The module `torch.simgpu`, with the names that torch and training scripts expect of a device module."""

import contextlib
import os
import sys
import types

import torch

from . import _C

NAME = os.environ.get("SIMGPU_NAME", "simgpu")
COLLECTIVES = os.environ.get("SIMGPU_COLLECTIVES", "simccl")


class CUDAGraph(_C.Graph):
    """A graph, by the name that scripts written for CUDA use."""


is_current_stream_capturing = _C.is_current_stream_capturing


def is_available():
    return True


def is_initialized():
    return True


def _is_in_bad_fork():
    return False


def _lazy_init():
    pass


def device_count():
    return 1


def current_device():
    return 0


def set_device(device):
    if torch.device(NAME, device if isinstance(device, int) else torch.device(device).index or 0).index:
        raise RuntimeError("simgpu: there is one device, simgpu:0")


@contextlib.contextmanager
def device(index):
    set_device(index if index is not None else 0)
    yield


def get_device_name(device=None):
    return "Simulated GPU"


def synchronize(device=None):
    _C.synchronize()


def current_stream(device=None):
    return torch.accelerator.current_stream(NAME)


def default_stream(device=None):
    return torch.Stream(stream_id=0, device_index=0, device_type=torch._C._autograd.DeviceType.PrivateUse1.value)


def set_stream(stream):
    torch.accelerator.set_stream(stream)


def stream(stream):
    """Context in which `stream` is the current stream."""
    return stream if stream is not None else contextlib.nullcontext()


def Stream(device=None, priority=0):
    return torch.Stream(NAME, priority=priority)


def Event(enable_timing=False, blocking=False, interprocess=False):
    return torch.Event(NAME, enable_timing=enable_timing)


@contextlib.contextmanager
def graph(graph, pool=None, stream=None):
    """Captures what is launched inside into `graph`, on a side stream, as torch.cuda.graph does."""
    side = stream or Stream()
    synchronize()
    with side:
        graph.capture_begin()
        try:
            yield
        finally:
            graph.capture_end()


def _sleep(cycles):
    """A delay kernel of `cycles` nanoseconds, as torch.cuda._sleep at 1 GHz."""
    _C.launch("spin_kernel", cycles / 1e3)


def empty_cache():
    torch.accelerator.memory.empty_cache()


def memory_stats(device=None):
    return torch.accelerator.memory.memory_stats(NAME)


def memory_allocated(device=None):
    return torch.accelerator.memory.memory_allocated(NAME)


def max_memory_allocated(device=None):
    return torch.accelerator.memory.max_memory_allocated(NAME)


def memory_reserved(device=None):
    return torch.accelerator.memory.memory_reserved(NAME)


def max_memory_reserved(device=None):
    return torch.accelerator.memory.max_memory_reserved(NAME)


def reset_peak_memory_stats(device=None):
    torch.accelerator.memory.reset_peak_memory_stats(NAME)


def mem_get_info(device=None):
    return torch.accelerator.memory.get_memory_info(NAME)


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]


def manual_seed(seed):
    """The device draws from the CPU's generator, which torch.manual_seed seeds."""


manual_seed_all = manual_seed


def get_rng_state(device=None):
    return torch.get_rng_state()


def set_rng_state(state, device=None):
    torch.set_rng_state(state)


def _find_delay_kernel(name):
    if name == "_sleep" and _C.get("delay_kernel"):
        return _sleep
    raise AttributeError(f"torch.{NAME} has no {name}")


def _register():
    torch.utils.rename_privateuse1_backend(NAME)
    module = types.ModuleType(f"torch.{NAME}")
    hidden = ("_register", "_sleep", "_find_delay_kernel", "_C", "torch", "sys", "os", "types", "contextlib")
    for name, value in list(globals().items()):
        if not name.startswith("__") and name not in hidden:
            setattr(module, name, value)
    module.__getattr__ = _find_delay_kernel
    torch._register_device_module(NAME, module)
    sys.modules[f"torch.{NAME}"] = module
    torch.utils.generate_methods_for_privateuse1_backend(unsupported_dtype=[torch.quint8])


_register()


def _make_backend(store, rank, size, timeout):
    """The c10d backend; Gloo carries values and times between processes."""
    from torch.distributed import PrefixStore, ProcessGroupGloo

    gloo = ProcessGroupGloo(PrefixStore(COLLECTIVES, store), rank, size, timeout) if size > 1 else None
    return _C.make_backend(rank, size, gloo)


if torch.distributed.is_available():
    torch.distributed.Backend.register_backend(COLLECTIVES, _make_backend, devices=[NAME])
