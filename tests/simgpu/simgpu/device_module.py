# SPDX-License-Identifier: Apache-2.0
"""The module `torch.simgpu`, with the names that torch and training scripts expect of a device module."""

import contextlib
import sys
import types

import torch

from . import _C



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
    if torch.device("simgpu", device if isinstance(device, int) else torch.device(device).index or 0).index:
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
    return torch.accelerator.current_stream("simgpu")


def default_stream(device=None):
    return torch.Stream(stream_id=0, device_index=0, device_type=torch._C._autograd.DeviceType.PrivateUse1.value)


def set_stream(stream):
    torch.accelerator.set_stream(stream)


def stream(stream):
    """Context in which `stream` is the current stream."""
    return stream if stream is not None else contextlib.nullcontext()


def Stream(device=None, priority=0):
    return torch.Stream("simgpu", priority=priority)


def Event(enable_timing=False, blocking=False, interprocess=False):
    return torch.Event("simgpu", enable_timing=enable_timing)


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
    return torch.accelerator.memory.memory_stats("simgpu")


def memory_allocated(device=None):
    return torch.accelerator.memory.memory_allocated("simgpu")


def max_memory_allocated(device=None):
    return torch.accelerator.memory.max_memory_allocated("simgpu")


def memory_reserved(device=None):
    return torch.accelerator.memory.memory_reserved("simgpu")


def max_memory_reserved(device=None):
    return torch.accelerator.memory.max_memory_reserved("simgpu")


def reset_peak_memory_stats(device=None):
    torch.accelerator.memory.reset_peak_memory_stats("simgpu")


def mem_get_info(device=None):
    return torch.accelerator.memory.get_memory_info("simgpu")


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]


def manual_seed(seed):
    """The device draws from the CPU's generator, which torch.manual_seed seeds."""


manual_seed_all = manual_seed


def get_rng_state(device=None):
    return torch.get_rng_state()


def set_rng_state(state, device=None):
    torch.set_rng_state(state)


def _register():
    torch.utils.rename_privateuse1_backend("simgpu")
    module = types.ModuleType("torch.simgpu")
    for name, value in list(globals().items()):
        if not name.startswith("__") and name not in ("_register", "_C", "torch", "sys", "types", "contextlib"):
            setattr(module, name, value)
    torch._register_device_module("simgpu", module)
    sys.modules["torch.simgpu"] = module
    torch.utils.generate_methods_for_privateuse1_backend(unsupported_dtype=[torch.quint8])


_register()


def _make_backend(store, rank, size, timeout):
    """The c10d backend `simccl`; Gloo carries values and times between processes."""
    from torch.distributed import PrefixStore, ProcessGroupGloo

    gloo = ProcessGroupGloo(PrefixStore("simccl", store), rank, size, timeout) if size > 1 else None
    return _C.make_backend(rank, size, gloo)


if torch.distributed.is_available():
    torch.distributed.Backend.register_backend("simccl", _make_backend, devices=["simgpu"])
