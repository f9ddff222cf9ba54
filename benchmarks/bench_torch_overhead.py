# SPDX-License-Identifier: Apache-2.0
"""What watching a training loop costs: ours and the tools one would use instead, interleaved in one run.

    python benchmarks/bench_torch_overhead.py [--loops tiny,small,large] [--seconds N]

A round is one step without a watch, one more as the control, and one with each variant, in random order, on the same
model; a variant's slowdown is the median over rounds of its time over that of the step without a watch, with the
distribution-free 95 % interval of a median.  What the control shows is noise.  Our variants and the control take
turns for `--seconds`, hundreds of rounds; the other tools, which are further from nothing, have a few rounds of their
own.  One thread on one processor, no garbage collection, memory kept by the allocator.

"always on" times steps inside an open watch; "each step" starts and stops (and for the profiler, reads) it in each.
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
NOTHING, CONTROL, OURS = "nothing", "nothing again", "flopmeter, always on"


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
    with profiler() as watch:
        yield
    sum(event.flops or 0 for event in watch.events())


def deepspeed(model: nn.Module) -> AbstractContextManager:
    from deepspeed.profiling.flops_profiler import FlopsProfiler

    @contextlib.contextmanager
    def watch() -> Iterator[None]:
        watcher = FlopsProfiler(model)
        watcher.start_profile()
        yield
        watcher.get_total_flops()
        watcher.end_profile()

    return watch()


Timed = Callable[[Loop], float]


def always_on(watch: Callable[[], AbstractContextManager]) -> Timed:
    def seconds(loop: Loop) -> float:
        with watch():
            begin = time.perf_counter()
            loop.step()
            return time.perf_counter() - begin

    return seconds


def each_step(watch: Callable[[], AbstractContextManager]) -> Timed:
    def seconds(loop: Loop) -> float:
        begin = time.perf_counter()
        with watch():
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
    """In percent: the median over rounds and its interval, whose ends are order statistics (binomial, 95 %)."""

    def __init__(self, taken: list[float], nothing: list[float]) -> None:
        self.milliseconds = 1e3 * statistics.median(taken)
        change = sorted(100 * (t / base - 1) for t, base in zip(taken, nothing, strict=True))
        self.rounds = len(change)
        self.median = statistics.median(change)
        reach = 0.98 * self.rounds**0.5
        self.low = change[max(0, int(self.rounds / 2 - reach))]
        self.high = change[min(self.rounds - 1, int(self.rounds / 2 + reach))]


def compare(loop: Loop, variants: dict[str, Timed], seconds: float, rounds: int) -> dict[str, Slowdown]:
    """At least a few rounds, then until the time or the number of rounds is used up."""
    runs = {NOTHING: always_on(contextlib.nullcontext), **variants}
    times: dict[str, list[float]] = {variant: [] for variant in runs}
    for run in runs.values():
        run(loop)
    end = time.monotonic() + seconds
    while len(times[NOTHING]) < 5 or (time.monotonic() < end and len(times[NOTHING]) < rounds):
        if len(times[NOTHING]) % 50 == 0:
            gc.collect()
        for variant in random.sample(list(runs), len(runs)):
            times[variant].append(runs[variant](loop))
    return {variant: Slowdown(taken, times[NOTHING]) for variant, taken in times.items()}


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
    print(f"{name}: {c.executed} FLOPs a step, expected {step_flops(loop.model, loop.batch)}", flush=True)
    found = compare(loop, ours(), seconds, rounds=10_000)
    show(found)
    tools = compare(loop, others(loop), seconds / 2, rounds=25)
    del tools[NOTHING]
    show(tools, max(found[OURS].high, 0.01))


def settle_process() -> None:
    """One thread on one processor; no collection but between rounds; freed memory stays with the process."""
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
    parser.add_argument("--seconds", type=float, default=100, help="for ours and the control on one loop")
    options = parser.parse_args()
    settle_process()
    for name in options.loops.split(","):
        measure(name, options.seconds)


if __name__ == "__main__":
    main()
