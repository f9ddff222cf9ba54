# SPDX-License-Identifier: Apache-2.0
"""Measures the overhead of flopmeter and comparable tools on a training loop, interleaved in one run.

    python benchmarks/bench_torch_overhead.py [--loops tiny,small,large] [--seconds N]

A round is one step without a tool, one more as the control, and one with each variant, in random order, on the same
model. The slowdown of a variant is the median over the rounds of its step time divided by that of the step without a
tool, with the distribution-free 95 % interval of a median. The control shows the noise. flopmeter and the control take
turns for `--seconds`, hundreds of rounds; the slower tools have fewer, separate rounds. The benchmark uses one thread on
one processor, no garbage collection, and an allocator that keeps its memory.

"always on" measures steps while the tool is active. "each step" starts and stops the tool, and for the profiler reads
the result, in each step.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib.util
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tests"))
from small_gpt import SmallGpt, step_flops  # noqa: E402

import flopmeter  # noqa: E402

LOOPS = {  # layers, width, heads, length, vocabulary, batch
    "tiny": (2, 64, 4, 32, 64, 1),
    "small": (4, 256, 4, 128, 1000, 1),
    "large": (2, 512, 8, 128, 1000, 1),
}
NO_TOOL, CONTROL, OURS = "no tool", "no tool again", "flopmeter, always on"


class Loop:
    """A training loop whose step always touches the same memory."""

    def __init__(self, name: str) -> None:
        layers, width, heads, length, vocabulary, self.batch = LOOPS[name]
        torch.manual_seed(0)
        self.model = SmallGpt(vocabulary, layers, width, heads, length)
        self.tokens = torch.randint(vocabulary, (self.batch, length))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)

    def step(self) -> None:
        self.model(self.tokens).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)


@contextlib.contextmanager
def record_function() -> Iterator[None]:
    from flopmeter.torch.adapter import torch_adapter

    profile = torch_adapter().OpProfiler(1e-5)
    yield
    profile.stop()


def flop_counter_mode() -> AbstractContextManager:
    from torch.utils.flop_counter import FlopCounterMode

    return FlopCounterMode(display=False)


def profiler() -> AbstractContextManager:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_flops=True)


@contextlib.contextmanager
def profiler_read() -> Iterator[None]:
    with profiler() as active:
        yield
    sum(event.flops or 0 for event in active.events())


def deepspeed(model: nn.Module) -> AbstractContextManager:
    from deepspeed.profiling.flops_profiler import FlopsProfiler

    @contextlib.contextmanager
    def profile() -> Iterator[None]:
        profiler = FlopsProfiler(model)
        profiler.start_profile()
        yield
        profiler.get_total_flops()
        profiler.end_profile()

    return profile()


Timed = Callable[[Loop], float]


def always_on(tool: Callable[[], AbstractContextManager]) -> Timed:
    def seconds(loop: Loop) -> float:
        with tool():
            begin = time.perf_counter()
            loop.step()
            return time.perf_counter() - begin

    return seconds


def each_step(tool: Callable[[], AbstractContextManager]) -> Timed:
    def seconds(loop: Loop) -> float:
        begin = time.perf_counter()
        with tool():
            loop.step()
        return time.perf_counter() - begin

    return seconds


def ours() -> dict[str, Timed]:
    return {
        CONTROL: always_on(contextlib.nullcontext),
        OURS: always_on(flopmeter.count),
        "flopmeter, each step": each_step(flopmeter.count),
    }


def others(loop: Loop) -> dict[str, Timed]:
    tools = {
        "RecordFunction, all ops": always_on(record_function),
        "FlopCounterMode, always on": always_on(flop_counter_mode),
        "FlopCounterMode, each step": each_step(flop_counter_mode),
        "torch.profiler, always on": always_on(profiler),
        "torch.profiler, read each step": each_step(profiler_read),
    }
    if importlib.util.find_spec("deepspeed"):  # tools/setup.sh bench installs it
        tools["DeepSpeed, each step"] = each_step(lambda: deepspeed(loop.model))
    return tools


class Slowdown:
    """Median over the rounds in percent and its 95 % interval from order statistics (binomial)."""

    def __init__(self, taken: list[float], nothing: list[float]) -> None:
        self.milliseconds = 1e3 * statistics.median(taken)
        change = sorted(100 * (t / base - 1) for t, base in zip(taken, nothing, strict=True))
        self.rounds = len(change)
        self.median = statistics.median(change)
        reach = 0.98 * self.rounds**0.5
        self.low = change[max(0, int(self.rounds / 2 - reach))]
        self.high = change[min(self.rounds - 1, int(self.rounds / 2 + reach))]


def compare(loop: Loop, variants: dict[str, Timed], seconds: float, rounds: int) -> dict[str, Slowdown]:
    """Runs a few rounds, then more until the time or the number of rounds is reached."""
    runs = {NO_TOOL: always_on(contextlib.nullcontext), **variants}
    times: dict[str, list[float]] = {variant: [] for variant in runs}
    for run in runs.values():
        run(loop)
    end = time.monotonic() + seconds
    while len(times[NO_TOOL]) < 5 or (time.monotonic() < end and len(times[NO_TOOL]) < rounds):
        if len(times[NO_TOOL]) % 50 == 0:
            gc.collect()
        for variant in random.sample(list(runs), len(runs)):
            times[variant].append(runs[variant](loop))
    return {variant: Slowdown(taken, times[NO_TOOL]) for variant, taken in times.items()}


def show(found: dict[str, Slowdown], ours_at_most: float | None = None) -> None:
    for variant, slowdown in found.items():
        times = f"  {slowdown.median / ours_at_most:6.0f} x ours or more" if ours_at_most else ""
        print(
            f"  {variant:32} {slowdown.milliseconds:9.3f} ms/step  {slowdown.median:+9.2f} %  "
            f"[{slowdown.low:+.2f}, {slowdown.high:+.2f}]  n={slowdown.rounds}{times}",
            flush=True,
        )


def measure(name: str, seconds: float) -> None:
    loop = Loop(name)
    with flopmeter.count() as c:
        loop.step()
    print(f"{name}: {c.hardware_flops} FLOPs per step, expected {step_flops(loop.model, loop.batch)}", flush=True)
    found = compare(loop, ours(), seconds, rounds=10_000)
    show(found)
    tools = compare(loop, others(loop), seconds / 2, rounds=25)
    del tools[NO_TOOL]
    show(tools, max(found[OURS].high, 0.01))


def settle_process() -> None:
    """One thread on one processor, garbage collection only between rounds, freed memory stays in the process."""
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gc.disable()
    mallopt = ctypes.CDLL(None).mallopt
    m_trim_threshold, m_mmap_max = -1, -4  # malloc.h
    mallopt(m_trim_threshold, 1 << 30)
    mallopt(m_mmap_max, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", default="tiny,small,large")
    parser.add_argument("--seconds", type=float, default=100, help="duration of flopmeter and the control per loop")
    options = parser.parse_args()
    settle_process()
    for name in options.loops.split(","):
        measure(name, options.seconds)


if __name__ == "__main__":
    main()
