# SPDX-License-Identifier: Apache-2.0
"""Runs a model's forward and backward on a dummy batch without side effects and without waiting for other ranks."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from flopmeter.torch.hooks import suspended
from flopmeter.ranks import initialized_distributed

# Their forward or backward waits for all ranks, and an error in between would leave them partly gathered.
_WAIT_FOR_RANKS = {"FullyShardedDataParallel", "FSDPModule", "DistributedDataParallel", "DeepSpeedEngine", "PipelineModule"}
_COLLECTIVES = ("c10d", "_c10d_functional", "c10d_functional")  # torch's namespaces of collectives


def _torch() -> Any:
    import torch

    return torch


def _create_dummy_batch_for_profiling(batch_size: int, seq_length: int, device: Any) -> dict[str, Any]:
    """Token IDs, a full mask, and labels; uses no random numbers."""
    torch = _torch()
    ids = torch.zeros(batch_size, seq_length, dtype=torch.long, device=device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


def without_ddp(model: Any) -> Any:
    """The model inside DistributedDataParallel, which one rank can run alone."""
    inner = getattr(model, "_orig_mod", model)
    return inner.module if isinstance(inner, _torch().nn.parallel.DistributedDataParallel) else model


def waits_for_ranks(model: Any) -> str:
    """Name of a part of the model that only all ranks together can run; else empty."""
    for module in model.modules():
        if names := _WAIT_FOR_RANKS.intersection(kind.__name__ for kind in type(module).__mro__):
            return min(names)
    return "DTensor" if any(hasattr(parameter, "device_mesh") for parameter in model.parameters()) else ""


def _no_collectives() -> AbstractContextManager[Any]:
    """Makes a collective raise instead of waiting for ranks that do not take part."""
    distributed = initialized_distributed()
    if distributed is None or distributed.get_world_size() == 1:
        return nullcontext()
    from torch.utils._python_dispatch import TorchDispatchMode

    class Refusal(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func._schema.name.partition("::")[0] in _COLLECTIVES:
                raise RuntimeError(f"{func._schema.name} would wait for the other ranks")
            return func(*args, **(kwargs or {}))

    return Refusal()


def _names(model: Any) -> tuple[list[inspect.Parameter], bool]:
    """The arguments of forward, and whether it accepts other names."""
    parameters = list(inspect.signature(model.forward).parameters.values())
    return parameters, any(p.kind is p.VAR_KEYWORD for p in parameters)


def takes_labels(model: Any) -> bool:
    """Whether forward accepts labels."""
    parameters, takes_any = _names(model)
    return takes_any or any(p.name == "labels" for p in parameters)


def _run(model: Any, batch: dict[str, Any]) -> Any:
    """Calls the model with the parts of the batch that forward accepts; a module without such names gets one tensor."""
    torch = _torch()
    parameters, takes_any = _names(model)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    others = any(p.kind in kinds and p.default is p.empty and p.name not in batch for p in parameters)
    if not others:
        if takes_any:
            return model(**batch)
        if accepted := {p.name: batch[p.name] for p in parameters if p.name in batch}:
            return model(**accepted)
    if any(isinstance(module, torch.nn.Embedding) for module in model.modules()):
        return model(batch["input_ids"])
    linear = next((module for module in model.modules() if isinstance(module, torch.nn.Linear)), None)
    if linear is None:
        raise ValueError("its forward does not accept input_ids, and it has no embedding or linear layer to derive an input from")
    shape = (*batch["input_ids"].shape, linear.in_features)
    return model(torch.ones(shape, dtype=linear.weight.dtype, device=linear.weight.device))


def _loss(output: Any) -> Any:
    loss = getattr(output, "loss", None)
    if loss is not None:
        return loss
    values = output.values() if isinstance(output, Mapping) else output if isinstance(output, (list, tuple)) else [output]
    for value in values:
        if hasattr(value, "is_floating_point") and value.is_floating_point():
            return value.float().sum()
    raise ValueError("its output contains no floating-point tensor")


def _recomputes_by_backward(loss: Any) -> bool:
    """Whether the graph contains a checkpoint that calls backward() itself: it does not support autograd.grad."""
    seen, nodes = set(), [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name().startswith("CheckpointFunction"):
            return True
        nodes.extend(following for following, _ in node.next_functions)
    return False


def run_once(model: Any, batch: dict[str, Any], forward_only: bool) -> None:
    """Forward, and backward unless nothing is trained."""
    torch = _torch()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if forward_only or not trained:
        with torch.no_grad():
            _run(model, batch)
        return
    with torch.enable_grad():
        loss = _loss(_run(model, batch))
        if not loss.requires_grad:
            return
        if _recomputes_by_backward(loss):
            loss.backward()
        else:  # computes the same gradients without running hooks that step an optimizer
            torch.autograd.grad(loss, trained, allow_unused=True)


def _random_states() -> list[Callable[[], None]]:
    """Function that restores the random state of Python and numpy."""
    state = random.getstate()
    restore: list[Callable[[], None]] = [lambda: random.setstate(state)]
    if (numpy := sys.modules.get("numpy")) is not None:
        numbers = numpy.random.get_state()
        restore.append(lambda: numpy.random.set_state(numbers))
    return restore


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Preserves random state, gradients, buffers, and train mode, and calls no optimizer."""
    torch = _torch()
    modes = [(module, module.training) for module in model.modules()]
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    buffers = [(module._buffers, dict(module._buffers)) for module in model.modules()]
    values = [(buffer, buffer.clone()) for buffer in model.buffers()]
    hooks = [(held, dict(held)) for p in model.parameters() if (held := getattr(p, "_post_accumulate_grad_hooks", None))]
    restore_random = _random_states()
    devices = sorted({p.device.index for p in model.parameters() if p.device.type == "cuda"})
    for parameter, _ in gradients:
        parameter.grad = None
    for held, _ in hooks:
        held.clear()
    try:
        with torch.inference_mode(False), torch.random.fork_rng(devices=devices), suspended(), _no_collectives():
            yield
    finally:
        for restore in restore_random:
            restore()
        for held, kept in hooks:
            held.update(kept)
        with torch.no_grad():
            for buffer, value in values:
                buffer.copy_(value)
        for names, kept in buffers:
            names.clear()
            names.update(kept)
        for parameter, gradient in gradients:
            parameter.grad = gradient
        for module, training in modes:
            module.training = training
