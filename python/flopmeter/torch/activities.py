# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and generation: library functions whose time is not the time of a train step."""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

from flopmeter.torch.patch import Patch

# Module, class in it or "", function, activity, stage that it is or "".
_FUNCTIONS = (
    ("torch", "", "save", "checkpoint", ""),
    ("torch.distributed.checkpoint", "", "save", "checkpoint", ""),
    ("safetensors.torch", "", "save_file", "checkpoint", ""),
    ("safetensors.torch", "", "save_model", "checkpoint", ""),
    ("transformers.generation.utils", "GenerationMixin", "generate", "generation", ""),
    ("trl.trainer.grpo_trainer", "GRPOTrainer", "_generate", "generation", "rollout"),
    ("trl.trainer.grpo_trainer", "GRPOTrainer", "_calculate_rewards", "generation", "reward"),
    ("trl.trainer.rloo_trainer", "RLOOTrainer", "_generate", "generation", "rollout"),
    ("trl.trainer.rloo_trainer", "RLOOTrainer", "_calculate_rewards", "generation", "reward"),
)
_AFTER_STAGE = "update"  # of the steps that follow


def _generated(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, int]:
    """Sequences and new tokens that ``generate`` returned, with those after the end of a sequence; from shapes only."""
    model, *positional = args
    prompt: Any = positional[0] if positional else kwargs.get("inputs", kwargs.get("input_ids"))
    ids: Any = getattr(result, "sequences", result)
    tensor = sys.modules["torch"].Tensor
    if type(prompt) is not tensor or type(ids) is not tensor or model.config.is_encoder_decoder:
        return {}
    samples, length = ids.shape
    return {"samples": samples, "tokens": samples * (length - prompt.shape[1])}


def _reported(
    emit: weakref.WeakMethod[Callable[..., Any]], activity: str, stage: str, original: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        report = emit()
        if report is None:
            return original(*args, **kwargs)
        report(f"{activity}_begin", stage)
        facts: dict[str, int] = {}
        try:
            result = original(*args, **kwargs)
            if original.__name__ == "generate":
                with contextlib.suppress(Exception):  # another result than tokens
                    facts = _generated(result, args, kwargs)
            return result
        finally:
            report(f"{activity}_end", stage and _AFTER_STAGE, **facts)

    return call


def report_activities(method: Callable[..., Any]) -> list[Patch]:
    """Report checkpoints and generation by the libraries that the program has imported to a method of a monitor.

    The method gets an event, the stage that begins with it or "", and facts of the event.  The monitor is not kept alive.
    """
    emit = weakref.WeakMethod(method)
    patches = []
    for module, kind, name, activity, stage in _FUNCTIONS:
        owner = sys.modules.get(module)
        if kind:
            owner = getattr(owner, kind, None)
        if owner is not None and callable(getattr(owner, name, None)):
            patches.append(Patch(owner, name, functools.partial(_reported, emit, activity, stage)))
    return patches
