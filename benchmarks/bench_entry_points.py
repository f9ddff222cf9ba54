# SPDX-License-Identifier: Apache-2.0
"""Cost of counting work that does not pass the dispatcher: Python functions, replays, and compiled graphs.

    python benchmarks/bench_entry_points.py [rounds]

Rounds with and without counting alternate in one process.  The compiled model is a small GPT on the CPU.
"""

import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

import flopmeter
from flopmeter import _flopmeter

sys.path.insert(0, str(Path(__file__).parent.parent / "python" / "tests"))
CALLS = 20000


def nanoseconds(function, calls=CALLS):
    begin = time.perf_counter_ns()
    for _ in range(calls):
        function()
    return (time.perf_counter_ns() - begin) / calls


def report(name, with_counting, without):
    """Minima: other processes only add time."""
    print(f"{name}: {min(with_counting) - min(without):+.0f} ns per call (minima of {len(without)} rounds)")


def bench_function(rounds):
    x, grad = torch.randn(8, 4), torch.randn(8, 2)
    plain = lambda *_: None  # noqa: E731
    with flopmeter.count():
        pass
    counted = _flopmeter.counted_function("fused_weight_gradient_mlp_cuda::wgrad_gemm_accum_fp32", plain, [])
    without, on, off = [], [], []
    for _ in range(rounds):
        without.append(nanoseconds(lambda: plain(x, grad, x)))
        off.append(nanoseconds(lambda: counted(x, grad, x)))
        with flopmeter.count():
            on.append(nanoseconds(lambda: counted(x, grad, x)))
    report("wrapped Python function, counted", on, without)
    report("wrapped Python function, counting off", off, without)


def bench_replay(rounds):
    import fake_cuda_graphs

    fake_cuda_graphs.install()
    graph = torch.cuda.CUDAGraph()
    before = torch.cuda.CUDAGraph.replay.__wrapped__
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(8)])
    with torch.cuda.graph(graph):
        model(torch.randn(4, 8)).sum().backward()
    without, replayed = [], []
    for _ in range(rounds):
        without.append(nanoseconds(lambda: before(graph)))
        with flopmeter.count():
            replayed.append(nanoseconds(lambda: graph.replay()))
    report("replay", replayed, without)


def bench_compiled(rounds):
    from compiled_cases import GPT, WIDTH

    model = torch.compile(GPT())
    x = torch.randn(8, 256, WIDTH)

    def step():
        model(x).sum().backward()

    for _ in range(3):
        step()
    ratios = []
    for _ in range(rounds):
        without = nanoseconds(step, 5)
        with flopmeter.count():
            ratios.append(nanoseconds(step, 5) / without - 1)
    error = 1.96 * statistics.stdev(ratios) / len(ratios) ** 0.5
    mean = statistics.mean(ratios)
    print(f"compiled GPT: {100 * mean:+.2f} % with counting (95 % interval {100 * (mean - error):+.2f} to {100 * (mean + error):+.2f} %)")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 31
    bench_function(count)
    bench_replay(count)
    bench_compiled(count)
