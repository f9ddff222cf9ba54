# SPDX-License-Identifier: Apache-2.0
"""Megatron-Bridge without an edit: adds callbacks to those that ``pretrain()`` and ``finetune()`` are called with.

Both pass their callbacks through ``normalize_callbacks()``.  Bridge lets exceptions of callbacks pass, so each added one
is guarded.  Checkpoints have no callback where they begin, so the function of the loop that saves them is wrapped.
"""

from __future__ import annotations

import functools
import sys
import weakref
from argparse import Namespace
from collections.abc import Callable
from types import ModuleType
from typing import Any

from flopmeter.guard import guarded, log_failure
from flopmeter.integrations.megatron_loop import Loop, loss_of, on_host
from flopmeter.ranks import initialized_distributed

_FLOPS = "megatron.bridge.training.utils.flop_utils"
_LOOP = "megatron.bridge.training.train"
_known: weakref.WeakSet[Any] = weakref.WeakSet()  # managers that have the callbacks
_running: Callbacks | None = None  # while Bridge's train() runs


def _arguments(config: Any) -> Namespace:
    """Bridge's configuration under the names of Megatron's arguments."""
    model, train = config.model, config.train
    values = {name: value for name, value in vars(model).items() if not name.startswith("_")}
    peft = getattr(config, "peft", None)
    heads, groups = values.get("num_attention_heads"), values.get("num_query_groups")
    values |= {
        "num_experts": values.get("num_moe_experts"),
        "swiglu": values.get("gated_linear_unit"),
        "group_query_attention": groups is not None and groups != heads,
        "untie_embeddings_and_output_weights": not values.get("share_embeddings_and_output_weights", True),
        "micro_batch_size": train.micro_batch_size,
        "global_batch_size": train.global_batch_size,
        "peft_type": peft and type(peft).__name__,
        "lora_dim": getattr(peft, "dim", None),
        "lora_target_modules": getattr(peft, "target_modules", None) or [],  # none: all but those it excludes
        "vision_pretraining": values.get("vision_config") is not None,
    }
    if (distributed := initialized_distributed()) is not None:
        values |= {"rank": distributed.get_rank(), "world_size": distributed.get_world_size()}
    return Namespace(**values)


def _own_flops(config: Any) -> Any:
    """Bridge's own figure for a number of samples, if it has one."""
    function = getattr(sys.modules.get(_FLOPS), "num_floating_point_operations", None)
    return function and (lambda _args, samples: function(config, samples))


def _learning_rate(optimizer: Any) -> Any:
    """The rate that Bridge logs: of the last parameter group without a decoupled rate."""
    groups = getattr(optimizer, "param_groups", ())
    return next((group["lr"] for group in reversed(groups) if "lr" in group and not group.get("is_decoupled_lr")), None)


class Callbacks:
    """One method per event of Bridge."""

    def __init__(self) -> None:
        self._loop: Loop | None = None

    def detach(self) -> None:
        """Called by the guard after a failure: the loop runs on without a monitor."""
        if self._loop is not None:
            self._loop.detach()

    @guarded
    def emit(self, event: str) -> None:
        """Report an event outside a step."""
        if self._loop is not None:
            self._loop.monitor.emit(event)

    @guarded
    def on_train_start(self, context: Any) -> None:
        global _running
        _running = self
        config = context.state.cfg
        self._loop = Loop(_arguments(config), modules=context.model, own_flops=_own_flops(config), own_convention="megatron-bridge")

    @guarded
    def on_train_step_start(self, context: Any) -> None:
        if self._loop is not None:
            self._loop.begin(int(context.state.train_state.step) + 1)

    @guarded
    def on_train_step_end(self, context: Any) -> None:
        if self._loop is not None:
            values = {
                "loss": loss_of(context.loss_dict),
                "grad_norm": context.grad_norm,
                "learning_rate": _learning_rate(context.optimizer),
            }
            known = {name: value for name, value in values.items() if on_host(value)}
            self._loop.end(int(context.state.train_state.step) + 1, getattr(context.state, "wandb_logger", None), known)

    @guarded
    def on_train_end(self, context: Any) -> None:
        global _running
        _running = None
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.finish(getattr(context.state, "wandb_logger", None))

    def on_eval_start(self, _context: Any) -> None:
        self.emit("evaluation_begin")

    def on_eval_end(self, _context: Any) -> None:
        self.emit("evaluation_end")

    on_test_start, on_test_end = on_eval_start, on_eval_end


def _wrapped_save(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def save_checkpoint_and_time(*args: Any, **kwargs: Any) -> Any:
        running = _running
        if running is None:
            return original(*args, **kwargs)
        running.emit("checkpoint_begin")
        try:
            return original(*args, **kwargs)
        finally:
            running.emit("checkpoint_end")

    save_checkpoint_and_time.marks_checkpoints = True  # type: ignore[attr-defined]
    return save_checkpoint_and_time


def _mark_checkpoints() -> None:
    """Wrap the function that saves a checkpoint; ``pretrain()`` and ``finetune()`` import its module before they are called."""
    loop = sys.modules.get(_LOOP)
    original = getattr(loop, "save_checkpoint_and_time", None)
    if callable(original) and not hasattr(original, "marks_checkpoints"):
        vars(loop)["save_checkpoint_and_time"] = _wrapped_save(original)


def install(module: ModuleType) -> None:
    """Wrap ``normalize_callbacks``; an AttributeError if it, or what it needs, is missing."""
    missing = [name for name in ("normalize_callbacks", "CallbackManager") if not callable(getattr(module, name, None))]
    if missing or not hasattr(module.CallbackManager, "register"):
        raise AttributeError(f"it has no {', '.join(missing) or 'CallbackManager.register'}")
    original = module.normalize_callbacks

    @functools.wraps(original)
    def normalize_callbacks(callbacks: Any = None) -> Any:
        manager = original(callbacks)
        try:
            _mark_checkpoints()
            ours = module.CallbackManager() if manager is None else manager
            if ours not in _known:
                listeners = Callbacks()
                for event in sorted(ours.events):
                    if (listener := getattr(listeners, event, None)) is not None:
                        ours.register(event, listener)
                _known.add(ours)
            return ours
        except Exception as error:  # the run continues without a monitor
            log_failure(error)
            return manager

    module.normalize_callbacks = normalize_callbacks  # type: ignore[attr-defined]
