# SPDX-License-Identifier: Apache-2.0
"""The monitor of a Megatron loop: its model, its batches, and the values that Megatron logs."""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flopmeter._flopmeter import StepTotals
from flopmeter.batch import Batch, describe
from flopmeter.estimation import estimate
from flopmeter.guard import describe_error, guarded
from flopmeter.integrations.megatron_flags import MODEL_TYPE_REASON
from flopmeter.integrations.megatron_model import low_dtype, model_config, needed, recompute_of, trainable_of
from flopmeter.integrations.megatron_vision import has_vision_tower
from flopmeter.log import log_once
from flopmeter.metrics import Window, total_metrics
from flopmeter.models import find_model
from flopmeter.monitor import Monitor, StepSource
from flopmeter.options import make_options
from flopmeter.values import as_count

# Several documents per sequence; the arguments do not contain their lengths.
_PACKED = ("reset_attention_mask", "sft", "rl_use_sequence_packing", "use_packed_sequence")

# Arguments of fp8 and fp4 recipes, the value that counts, and what is recorded all the same.
_RECIPES = {
    "fp8_wgrad": (False, "fp8_wgrad is off: gradients of the weights count as fp8"),
    "fp8_output_proj": (True, "fp8_output_proj: the LM head counts as bf16"),
    "fp8_dot_product_attention": (True, "fp8_dot_product_attention: attention counts as bf16"),
}


def is_first_rank(args: argparse.Namespace) -> bool:
    """Whether this process is the one that logs."""
    rank = getattr(args, "rank", None)
    return int(os.environ.get("RANK", "0") if rank is None else rank) == 0


def _sizes(args: argparse.Namespace) -> dict[str, int]:
    """Ranks, and how the work is split over them."""
    sizes = {
        "tensor_parallel": "tensor_model_parallel_size",
        "pipeline_parallel": "pipeline_model_parallel_size",
        "context_parallel": "context_parallel_size",
        "expert_parallel": "expert_model_parallel_size",
    }
    layout = {ours: int(getattr(args, name, None) or 1) for ours, name in sizes.items()}
    world = int(getattr(args, "world_size", None) or os.environ.get("WORLD_SIZE") or 1)
    split = layout["tensor_parallel"] * layout["pipeline_parallel"] * layout["context_parallel"]
    replicas = int(getattr(args, "data_parallel_size", None) or 0) * int(getattr(args, "gtp_weight_remat_size", None) or 1)
    return {"world_size": world, "data_parallel": replicas or max(1, world // split), **layout}


def _dtype(args: argparse.Namespace) -> str:
    if (low := low_dtype(args)) is not None:
        return low
    return "bf16" if getattr(args, "bf16", False) else "fp16" if getattr(args, "fp16", False) else "fp32"


def _remarks(args: argparse.Namespace, recompute: str) -> list[str]:
    """Arguments that are approximated or ignored, one line each."""
    remarks = [recompute] if recompute else []
    for name in _PACKED:
        if getattr(args, name, None):
            remarks.append(f"{name}: attention is counted over whole sequences, as Megatron does, not over the documents inside")
    if low_dtype(args):
        remarks += [line for name, (value, line) in _RECIPES.items() if getattr(args, name, None) is value]
    if (getattr(args, "perf_model_type", None) or "auto") != "auto":
        remarks.append(f"--perf-model-type has no effect: {MODEL_TYPE_REASON}")
    return remarks


def on_host(value: Any) -> bool:
    """Whether the value can be read without waiting for a device."""
    return value is not None and getattr(getattr(value, "device", None), "type", "cpu") == "cpu"


def loss_of(losses: Any) -> Any:
    """The first of Megatron's losses; some releases keep a sum and its divisor."""
    value: Any = next(iter(losses.values()), None) if isinstance(losses, Mapping) else None
    if on_host(value) and getattr(value, "numel", lambda: 1)() == 2:
        return value[0] / value[1]
    return value


def memory_metrics(record: str | None) -> dict[str, float]:
    """Memory of the device, or of the process on a CPU, in a record."""
    memory = json.loads(record or "{}").get("memory_bytes") or {}
    place = "rss" if memory.get("device") is None else "device"
    values = {"memory/current_gb": memory.get(place), "memory/peak_gb": memory.get(place + "_peak")}
    return {name: value / 2**30 for name, value in values.items() if value is not None}


def flagscale_metrics(totals: StepTotals, last: str | None, world_size: int, replicas: int) -> dict[str, float]:
    """The seven values that FlagScale logs, of all ranks: totals over the train steps, memory from the last record.

    Unknown values are omitted.
    """
    if not totals.step_seconds:
        return {}

    def scaled(value: float | None, factor: float) -> float | None:
        return None if value is None else factor * value

    values = {
        "performance/tflops_per_gpu": scaled(totals.flops_per_second, 1e-12),
        "performance/tflops_total": scaled(totals.flops_per_second, 1e-12 * world_size),
        "performance/avg_step_time_ms": 1e3 * totals.step_seconds,
        "performance/samples_per_second": scaled(totals.samples_per_second, replicas),
        "performance/tokens_per_second": scaled(totals.tokens_per_second, replicas),
    }
    return {name: value for name, value in values.items() if value is not None} | memory_metrics(last)


def length_coefficients(config: Any, convention: str, mtp: bool | None, trainable: str = "all") -> tuple[int, int] | None:
    """Twice the model FLOPs per token and per squared length.

    FLOPs of a decoder with full attention are a x length + b x length squared; None if those of this model are not.
    """
    one, two, three = (
        estimate(config, seq_len=n, convention=convention, mtp=mtp, trainable=trainable)["flops"]["model"] for n in (1, 2, 3)
    )
    twice_b = two - 2 * one
    twice_a = 2 * one - twice_b
    return (twice_a, twice_b) if 3 * twice_a + 9 * twice_b == 2 * three else None


class Loop:
    """One run of Megatron's loop.

    ``modules``: the chunks of the model, whose passes become phases; without them there are no phases.
    ``own_flops(args, samples)``: Megatron's own figure, whose convention is ``own_convention``.  It replaces the catalog's if the
    catalog has no family for the model, or if this convention is requested and the figures differ.
    ``more``: arguments of Monitor, which override those that follow from ``args``.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        modules: Sequence[Any] = (),
        own_flops: Callable[..., Any] | None = None,
        own_convention: str = "megatron",
        **more: Any,
    ) -> None:
        self._args = args
        sizes = _sizes(args)
        recompute, remark = recompute_of(args)
        self._own_flops: Callable[..., Any] | None = None
        self._has_images = has_vision_tower(args)
        # The images are not in the arguments, and Megatron's own function does not know the tower: the operators are counted.
        counted = bool(modules) and self._has_images
        own_flops = None if self._has_images else own_flops
        self._mtp = True if getattr(args, "mtp_num_layers", None) else None
        model = None if counted else self._model(own_flops)
        requested = more.get("convention") or make_options({}, more.get("config"), "").values()["convention"]
        if model is not None and requested == own_convention and self._differs(model, own_convention, own_flops):
            self._own_flops = own_flops
        if is_first_rank(args):
            for line in _remarks(args, remark):
                log_once(line)
        arguments: dict[str, Any] = {
            "model": model,
            "model_flops": "count" if counted else "estimate" if self._own_flops is None else "framework",
            "mtp": self._mtp,
            "dtype": _dtype(args),
            "recompute": recompute,
            "trainable": trainable_of(args) if model is not None else None,
            "attention": "eager" if getattr(args, "transformer_impl", "") == "local" else None,
            "mode": None if modules else "estimate",  # without the passes of the model, a count has no beginning and end
            "find_phases": bool(modules),
            "total_steps": as_count(getattr(args, "train_iters", None)),
            "steps": StepSource(policy="framework", modules=tuple(modules), loader_hook=bool(modules)),
            **sizes,
        }
        if self._own_flops is not None:
            arguments["convention"] = own_convention
        if getattr(args, "rank", None) is not None:
            arguments["rank"] = args.rank
        self.monitor = Monitor(**{**arguments, **more})
        has_rows = self.monitor.rank == 0 and "wandb" in sys.modules  # the monitor's own
        self._wandb = more.get("wandb") is not False and not has_rows
        self._world, self._replicas, self._config = sizes["world_size"], sizes["data_parallel"], model
        self._convention = str(self.monitor.options["convention"])
        of_a_replica = int(getattr(args, "global_batch_size", None) or 0) // sizes["data_parallel"]
        self._size = int(getattr(args, "micro_batch_size", None) or of_a_replica or 1)
        self._tokens = self._size * int(getattr(args, "seq_length", None) or 0) or None
        self._micro_batches = int(getattr(args, "num_micro_batches", None) or max(1, of_a_replica // self._size))
        self._coefficients: tuple[int, int] | None = None  # of packed sequences
        self._window: Window | None = None
        self._iteration = 0
        self.monitor.emit("loop_begin")

    def _model(self, own_flops: Callable[..., Any] | None) -> dict[str, Any] | None:
        """The model of the arguments; without one, FLOPs are Megatron's own, if any."""
        try:
            needed(self._args, "seq_length")
            config = model_config(self._args)
            find_model(config)
        except ValueError as error:
            what = "FLOPs and MFU are empty"
            if own_flops is not None:
                self._own_flops = own_flops
                what = "model FLOPs are those of Megatron's num_floating_point_operations()"
            if is_first_rank(self._args):
                log_once(f"{error}; {what}")
            return None
        return config

    def _differs(self, model: dict[str, Any], convention: str, own_flops: Callable[..., Any] | None) -> bool:
        """Whether the function of this release has another figure for a sample than the catalog."""
        if own_flops is None or (own := self._call(own_flops, 1)) is None:
            return False
        trainable, length = trainable_of(self._args), int(self._args.seq_length)
        ours = estimate(model, seq_len=length, convention=convention, mtp=self._mtp, trainable=trainable)["flops"]["model"]
        if math.isclose(own, ours, rel_tol=1e-12):  # Megatron rounds: it computes in floating point
            return False
        if is_first_rank(self._args):
            log_once(f"model FLOPs are those of Megatron's num_floating_point_operations(): {own / ours:.4f} of the catalog's")
        return True

    def _count(self) -> int:
        """Micro-batches of this iteration: their number grows if the batch is ramped up."""
        calculator = sys.modules.get("megatron.core.num_microbatches_calculator")
        try:
            return int(calculator.get_num_microbatches())  # type: ignore[union-attr]
        except (AttributeError, TypeError):  # Megatron is not there, or has not made its calculator
            return self._micro_batches

    def detach(self) -> None:
        """Called by the guard after a failure."""
        self.monitor.detach()

    @guarded
    def begin(self, iteration: int, image_grid_thw: Any = None) -> None:
        """Iteration number ``iteration``, counted from 1, begins; ``image_grid_thw``: the images of all its micro-batches."""
        self._iteration, count = iteration, self._count()
        self._samples = count * self._size
        flops = self._share(self._framework_flops(self._samples * self._replicas))
        if self._has_images and self._config is not None and image_grid_thw is None and is_first_rank(self._args):
            log_once("the images of a batch are not known: one of 576 visual tokens is assumed per sample")
        self.monitor.begin_step(samples=self._size, tokens=self._tokens, flops=flops, step=iteration, image_grid_thw=image_grid_thw)
        batch = describe(self._size, self._tokens)
        for _ in range(count - 1):
            self.monitor.core.micro_batch(batch)

    def _call(self, own_flops: Callable[..., Any], samples: int, *lengths: float) -> int | None:
        """Megatron's own figure for this number of samples.  Its function changes the arguments that it gets."""
        try:
            return int(own_flops(copy.copy(self._args), samples, *lengths))
        except Exception as error:  # Megatron's own code
            if is_first_rank(self._args):
                log_once(f"Megatron's num_floating_point_operations() failed: {describe_error(error)}; its figure is missing")
            return None

    def _framework_flops(self, samples: int, *lengths: float) -> int | None:
        """Megatron's own figure for a global batch, if it is the one to record."""
        return None if self._own_flops is None else self._call(self._own_flops, samples, *lengths)

    def _share(self, flops: int | None) -> int | None:
        """This rank's part of the FLOPs of a global batch; the parts of all ranks sum to the whole."""
        return None if flops is None else flops // self._world + (self.monitor.rank < flops % self._world)

    def _packed(self, tokens: float, squares: float) -> Batch:
        """The batch of a step whose sequences hold several documents: their lengths and squared lengths over all ranks."""
        if self._own_flops is not None:
            flops = self._framework_flops(self._samples * self._replicas, squares, tokens)
        else:
            if self._coefficients is None and self._config is not None:
                self._coefficients = length_coefficients(self._config, self._convention, self._mtp, trainable_of(self._args))
            a, b = self._coefficients or (0, 0)
            flops = (a * round(tokens) + b * round(squares)) // 2 or None
        return Batch(samples=self._samples, tokens=round(tokens) // self._replicas, flops=self._share(flops))

    @guarded
    def end(
        self,
        iteration: int,
        wandb_writer: Any = None,
        values: Mapping[str, Any] | None = None,
        packed: tuple[float, float] | None = None,
    ) -> None:
        """The iteration has ended.

        ``values``: loss, grad_norm, learning_rate.  ``packed``: the tokens of all documents of the global batch, and the
        sum of their squared lengths.
        """
        if wandb_writer is not None and self._wandb and self._window is None:
            self._window = Window(self.monitor)
        if iteration > self._iteration + 1:  # a loop that increments before it calls is ahead by one
            log_once(f"iteration {self._iteration} ended as {iteration}: the time of the skipped iterations is not recorded")
            self.monitor.abandon_step()
            return
        self.monitor.end_step(**(values or {}), batch=None if packed is None else self._packed(*packed))
        if iteration % self.monitor.log_interval == 0:
            self._log_to_wandb(iteration, wandb_writer)

    @guarded
    def abandon(self) -> None:
        """The iteration ended without a result."""
        self.monitor.abandon_step()

    @guarded
    def finish(self, wandb_writer: Any = None) -> None:
        """Write the remaining records."""
        self.monitor.finish()
        self._log_to_wandb(self._iteration, wandb_writer)

    def _log_to_wandb(self, iteration: int, wandb_writer: Any) -> None:
        """Log what is known to the W&B run that Megatron keeps on its last rank, under Megatron's own step."""
        if wandb_writer is None or self._window is None:
            return
        try:
            totals = self._window.take(wait=0)
            if values := {**total_metrics(totals), **flagscale_metrics(totals, self._window.last, self._world, self._replicas)}:
                wandb_writer.log(values, iteration)
        except Exception as error:  # a logger must not end the run
            log_once(f"W&B did not accept a row: {describe_error(error)}")
