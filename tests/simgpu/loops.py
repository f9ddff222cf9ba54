# SPDX-License-Identifier: Apache-2.0
"""Training loops on the simulated device, each with one cause of lost time, and the truth about them.

    truth = run("item10", steps=30)                     # the loop with its cause
    truth = run("item10", steps=30, fixed=True)         # the same loop with the cause removed
    truth = run("item10", wrap=lambda model, optimizer, loader: monitor.wrap(loader))
"""

from contextlib import nullcontext
from dataclasses import dataclass, field, fields

import simgpu
from training import Options, train


@dataclass(frozen=True)
class Loop:
    """One loop: what it does, how it differs from the plain loop, and what removes its cause."""

    about: str
    changes: dict = field(default_factory=dict)  # of Options, or settings of the device
    fix: dict = field(default_factory=dict)
    finding: str = ""  # the rule that should fire first; empty: none


SMALL = {"width": 512, "heads": 8, "rows": 2, "length": 256, "vocabulary": 1024}
SLOW_LINK = {"pinned_gbs": 1.0, "pageable_gbs": 1.0}

LOOPS = {
    "none": Loop("no synchronization at all"),
    "unlimited_queue": Loop("the launch queue never fills", {"queue_depth": 1e9}),
    "item1": Loop("loss.item() every step", {"item_every": 1}, {"item_every": 0}),
    "item10": Loop("loss.item() every 10 steps", {"item_every": 10}, {"item_every": 0}),
    "clip_item": Loop("gradient clipping that reads the norm", {"clip": "item"}, {"clip": "device"}),
    "item_slow_loop": Loop(
        "loss.item() every step, then 15 ms of loop code",
        {"item_every": 1, "loop_seconds": 0.015},
        {"item_every": 0, "loop_seconds": 0.0},
        "loop",
    ),
    "loader_hidden": Loop("a loader of 20 ms, hidden by the queue", {"loader_seconds": 0.02}),
    "loader_half": Loop(
        "a loader of 60 ms, partly hidden", {"loader_seconds": 0.06}, {"loader_seconds": 0.0}, "data_loading"
    ),
    "loader_exposed": Loop(
        "a loader of 40 ms after a synchronization every step: all of it is exposed",
        {"loader_seconds": 0.04, "item_every": 1},
        {"loader_seconds": 0.0, "item_every": 1},
        "data_loading",
    ),
    "loader_cpu": Loop(
        "2 loader workers that burn 250 ms of CPU per batch",
        {"workers": 2, "worker_cpu_seconds": 0.25},
        {"worker_cpu_seconds": 0.0},
        "cpu_bound",
    ),
    "eager_attention": Loop(
        "attention written out where a fused kernel exists", {"fused": False}, {"fused": True}, "poor_implementation"
    ),
    "launch_bound": Loop("a tiny model: the host is the limit", SMALL, {"graph": True}, "launch_overhead"),
    "copy_pageable": Loop(
        "12.6 ms of copies from pageable memory each step",
        {"features": "pageable", **SLOW_LINK},
        {"features": ""},
        "host_to_device",
    ),
    "copy_pinned": Loop(
        "12.6 ms of non-blocking copies from pinned memory each step",
        {"features": "pinned", **SLOW_LINK},
        {"features": "prefetch"},
        "host_to_device",
    ),
    "copy_prefetch": Loop(
        "the same copies on a side stream, one step ahead", {"features": "prefetch", **SLOW_LINK}, {"features": ""}
    ),
    "ddp_fast": Loop("data parallel over a fast network", {"ddp": True, "network_gbs": 200.0}, {"ddp": False}),
    "ddp_slow": Loop(
        "data parallel over a slow network", {"ddp": True, "network_gbs": 8.0}, {"network_gbs": 200.0}, "communication"
    ),
    "reduce_wait": Loop(
        "gradients reduced without DDP over a slow network, one collective after the other",
        {"reduce": "wait", "network_gbs": 8.0},
        {"network_gbs": 200.0},
        "communication",
    ),
    "reduce_overlap": Loop(
        "the same with all collectives started first",
        {"reduce": "overlap", "network_gbs": 8.0},
        {"network_gbs": 200.0},
        "communication",
    ),
    "evaluation": Loop("evaluation every 5 steps", {"evaluate_every": 5}, {"evaluate_every": 0}),
    "checkpoint": Loop("a checkpoint every 5 steps", {"checkpoint_every": 5}, {"checkpoint_every": 0}),
    "accumulate_padding": Loop(
        "gradient accumulation over 3 micro-batches with 40 % padding",
        {"accumulate": 3, "padding": 0.4, "length": 512},
        {"padding": 0.0},
        "padding",
    ),
    "graph": Loop("forward and backward captured once and replayed", {"graph": True}),
    "graph_launch_bound": Loop("a tiny model, captured and replayed", {"graph": True, **SMALL}, finding="optimizer"),
    "compile": Loop('torch.compile(backend="aot_eager")', {"compile": "aot_eager"}),
}

# The same work written in other ways, and other devices. No cause is new here.
VARIANTS = {
    "read_list": Loop("loss.tolist() every step", {"item_every": 1, "read": "list"}),
    "read_cpu": Loop("loss.cpu() every step", {"item_every": 1, "read": "cpu"}),
    "read_print": Loop("print(loss) every step", {"item_every": 1, "read": "print"}),
    "read_check": Loop("a check for NaN every step", {"item_every": 1, "read": "check"}),
    "synchronize": Loop("torch.accelerator.synchronize() every step", {"item_every": 1, "read": "synchronize"}),
    "read_early": Loop("loss.item() before backward", {"item_every": 1, "read_early": True}),
    "own_to_copy": Loop(
        "loss.cpu() every step, by an operator of the backend", {"item_every": 1, "read": "cpu", "own_to_copy": 1}
    ),
    "loss_outside": Loop("the loss is computed after the model", {"loss_outside": True, "vocabulary": 32768}),
    "loss_outside_ddp": Loop(
        "the same in DDP over a slow network",
        {"loss_outside": True, "ddp": True, "network_gbs": 8.0},
        {"network_gbs": 200.0},
        "communication",
    ),
    "loss_outside_accumulate": Loop(
        "the same with gradient accumulation", {"loss_outside": True, "accumulate": 3, "vocabulary": 32768}
    ),
    "fused_optimizer": Loop("a fused optimizer", {"optimizer": "fused"}),
    "single_optimizer": Loop("an optimizer that handles one tensor after the other", {"optimizer": "single"}),
    "capturable_optimizer": Loop("an optimizer that a graph can capture", {"optimizer": "capturable"}),
    "sgd": Loop("SGD with momentum", {"optimizer": "SGD"}),
    "slow_prefetch": Loop(
        "copies on a side stream that take longer than a step",
        {"features": "prefetch", "pinned_gbs": 0.12},
        {"pinned_gbs": 24.0},
        "host_to_device",
    ),
    "clip_device": Loop("gradient clipping that stays on the device", {"clip": "device"}),
    "amp": Loop("autocast and GradScaler", {"amp": True, "dtype": "float32"}, finding="optimizer"),
    "ema": Loop("a moving average of the parameters", {"ema": True}),
    "two_optimizers": Loop("two optimizers", {"optimizers": 2}),
    "accumulate": Loop("gradient accumulation over 6 batches", {"accumulate": 6, "rows": 2}),
    "accumulate_split": Loop("gradient accumulation over parts of a batch", {"accumulate": 4, "split": True}),
    "accumulate_item": Loop(
        "gradient accumulation that reads each loss", {"accumulate": 3, "item_every": 1, "rows": 2}
    ),
    "accumulate_copies": Loop(
        "gradient accumulation with copies from pageable memory",
        {"accumulate": 3, "features": "pageable", **SLOW_LINK},
        {"features": ""},
        "host_to_device",
    ),
    "ddp_no_sync": Loop(
        "DDP over a slow network, gradients reduced once for 3 micro-batches",
        {"ddp": True, "network_gbs": 4.0, "accumulate": 3, "rows": 2, "sync_each": False},
        {"network_gbs": 200.0},
        "communication",
    ),
    "ddp_sync_each": Loop(
        "the same with gradients reduced for each micro-batch",
        {"ddp": True, "network_gbs": 8.0, "accumulate": 3, "sync_each": True},
        {"network_gbs": 200.0},
        "communication",
    ),
    "ddp_clip_item": Loop("DDP with clipping that reads the norm", {"ddp": True, "network_gbs": 200.0, "clip": "item"}),
    "no_pool": Loop("a device without a pool of streams", {"stream_pool": 0}),
    "busy_pool": Loop("a pool of streams on which others work", {"busy_pool_streams": 32}),
    "early_events": Loop(
        "events that an idle stream reaches immediately", {"event_latency": 0, "item_every": 1}
    ),
    "coarse_events": Loop("events with a resolution of 1 us", {"event_resolution_us": 1.0, "item_every": 1}),
    "queued_events": Loop("events that take a place in the launch queue", {"events_in_queue": 1}),
    "no_delay_kernel": Loop(
        "a tiny model on a device without a delay kernel",
        {"delay_kernel": 0, **SMALL},
        {"graph": True},
        "launch_overhead",
    ),
    "no_capture_state": Loop("a device that does not report captures", {"capture_state": 0}),
    "slow_launch": Loop("launches that take 30 us to reach the device", {"launch_us": 30, "item_every": 1}),
    "short_queue": Loop("a launch queue of 64", {"queue_depth": 64}),
    "costly_events": Loop("events that take 2 us of the device", {"event_device_us": 2.0, "item_every": 1}),
}
# Several processes only: a group of one has no collectives.
RANKS = {"fsdp": Loop("FSDP over a slow network", {"fsdp": True, "network_gbs": 8.0})}
ALL_LOOPS = {**LOOPS, **VARIANTS}

# Real values on the CPU need a model that is small in every way.
TINY = {"layers": 2, "width": 32, "heads": 2, "vocabulary": 64, "rows": 2, "length": 16, "dtype": "float32"}


def run(name, steps=20, wrap=None, fixed=False, values=False, device=simgpu.NAME, in_step=nullcontext, **changes):
    """Runs loop `name` and returns its Truth; with `values` a tiny model computes real losses (`truth.losses`).

    `wrap(model, optimizer, loader)` returns the loader to iterate, and each step runs in a context that `in_step()`
    returns. `changes` override options and settings.
    """
    loop = {**ALL_LOOPS, **RANKS}[name]
    wanted = {**loop.changes, **(loop.fix if fixed else {}), **(TINY if values else {}), **changes}
    names = {option.name for option in fields(Options)}
    options = Options(**{key: value for key, value in wanted.items() if key in names})
    settings = {key: value for key, value in wanted.items() if key not in names}
    old = simgpu.configure(values=values, **settings)
    try:
        simgpu.reset()
        losses = train(options, steps, wrap, device, in_step)
        truth = simgpu.truth()
        truth.losses = [loss.item() for loss in losses] if values else []
        return truth
    finally:
        simgpu.configure(**old)
