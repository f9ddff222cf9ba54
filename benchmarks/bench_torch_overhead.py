# SPDX-License-Identifier: Apache-2.0
"""What watching a training loop costs: ours and the tools one would use instead, interleaved in one run.

    python benchmarks/bench_torch_overhead.py [--rounds N] [--loops tiny,small,large]

Each round runs every variant once, in random order, on the same model; a variant's slowdown is the median over
rounds of its time over the plain time of the same round, with a bootstrap 95 % interval.  `nothing again` is the
control: what it shows is noise.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tests"))
from small_gpt import SmallGpt, step_flops  # noqa: E402

import flopmeter  # noqa: E402

LOOPS = {  # layers, width, heads, length, vocabulary, batch, steps a round
    "tiny": (2, 64, 4, 32, 64, 1, 20),
    "small": (4, 256, 4, 128, 1000, 4, 2),
    "large": (4, 768, 12, 256, 4096, 4, 1),
}


class Loop:
    """A training loop; each variant wraps `run` or `step`."""

    def __init__(self, name: str) -> None:
        layers, width, heads, length, vocabulary, self.batch, self.steps = LOOPS[name]
        torch.manual_seed(0)
        self.model = SmallGpt(vocabulary, layers, width, heads, length)
        self.tokens = torch.randint(vocabulary, (self.batch, length))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9)

    def step(self) -> None:
        self.model(self.tokens).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def plain(loop: Loop) -> None:
    for _ in range(loop.steps):
        loop.step()


def inside(context: Callable[[], contextlib.AbstractContextManager], *, each_step: bool) -> Callable[[Loop], None]:
    def run(loop: Loop) -> None:
        if each_step:
            for _ in range(loop.steps):
                with context():
                    loop.step()
        else:
            with context():
                plain(loop)

    return run


@contextlib.contextmanager
def record_function() -> Iterator[None]:
    from flopmeter._adapter import torch_adapter

    survey = torch_adapter().Survey(1e-5)
    yield
    survey.stop()


def flop_counter_mode() -> contextlib.AbstractContextManager:
    from torch.utils.flop_counter import FlopCounterMode

    return FlopCounterMode(display=False)


def profiler() -> contextlib.AbstractContextManager:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_flops=True)


@contextlib.contextmanager
def profiler_read() -> Iterator[None]:
    with profiler() as watch:
        yield
    sum(event.flops or 0 for event in watch.events())


def deepspeed(model: nn.Module) -> contextlib.AbstractContextManager:
    from deepspeed.profiling.flops_profiler import FlopsProfiler

    @contextlib.contextmanager
    def watch() -> Iterator[None]:
        watcher = FlopsProfiler(model)
        watcher.start_profile()
        yield
        watcher.get_total_flops()
        watcher.end_profile()

    return watch()


def variants(loop: Loop) -> dict[str, Callable[[Loop], None]]:
    return {
        "nothing": plain,
        "nothing again": plain,
        "flopmeter, always on": inside(flopmeter.count, each_step=False),
        "flopmeter, each step": inside(flopmeter.count, each_step=True),
        "RecordFunction, all ops": inside(record_function, each_step=False),
        "FlopCounterMode, always on": inside(flop_counter_mode, each_step=False),
        "FlopCounterMode, each step": inside(flop_counter_mode, each_step=True),
        "torch.profiler, always on": inside(profiler, each_step=False),
        "torch.profiler, read each step": inside(profiler_read, each_step=True),
        "DeepSpeed, each step": inside(lambda: deepspeed(loop.model), each_step=True),
    }


def interval(values: list[float], draws: int = 2000) -> tuple[float, float]:
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws) - 1]


def measure(name: str, rounds: int, slow_rounds: int) -> None:
    loop = Loop(name)
    with flopmeter.count() as c:
        loop.step()
    expected = step_flops(loop.model, loop.batch)
    print(f"{name}: {c.executed} FLOPs a step, expected {expected}", flush=True)
    runs = variants(loop)
    times: dict[str, list[float]] = {variant: [] for variant in runs}
    for done in range(-1, rounds):
        order = [v for v in runs if v.startswith(("nothing", "flopmeter")) or done < slow_rounds]
        random.shuffle(order)
        for variant in order:
            begin = time.perf_counter()
            runs[variant](loop)
            if done >= 0:
                times[variant].append((time.perf_counter() - begin) / loop.steps)
    for variant, taken in times.items():
        change = [100 * (t / base - 1) for t, base in zip(taken, times["nothing"], strict=False)]
        low, high = interval(change)
        print(
            f"  {variant:32} {1e3 * statistics.median(taken):9.3f} ms/step  "
            f"{statistics.median(change):+9.2f} %  [{low:+.2f}, {high:+.2f}]  n={len(taken)}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--slow-rounds", type=int, default=20, help="rounds of the other tools, which need fewer")
    parser.add_argument("--loops", default="tiny,small,large")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.loops.split(","):
        measure(name, options.rounds, options.slow_rounds)


if __name__ == "__main__":
    main()
