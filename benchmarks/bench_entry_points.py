# SPDX-License-Identifier: Apache-2.0
"""Cost of counting work that does not pass the dispatcher: Python functions, replays, and compiled graphs.

    python benchmarks/bench_entry_points.py [rounds]

Calls or steps with and without counting alternate in one process.  The compiled model is a small GPT on the CPU.
"""

import contextlib
import gc
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
    begin = time.thread_time_ns()
    for _ in range(calls):
        function()
    return (time.thread_time_ns() - begin) / calls


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


def median_interval(values):
    """The median, and its 95 % interval by order statistics, which assumes no distribution."""
    values = sorted(values)
    half = 0.98 * len(values) ** 0.5  # 1.96 standard deviations of a binomial count
    low, high = int(len(values) / 2 - half), min(int(len(values) / 2 + half) + 1, len(values) - 1)
    return statistics.median(values), values[max(low, 0)], values[high]


def bench_compiled(seconds):
    """Pairs of steps, one of them counted, in alternating order, for so many seconds.  The clock is the processor time of the one
    thread that runs them: other processes do not add to it."""
    from compiled_cases import GPT, WIDTH

    torch.set_num_threads(1)
    model = torch.compile(GPT())
    x = torch.randn(8, 256, WIDTH)

    def nanoseconds_of_step(counted):
        counter = flopmeter.count() if counted else contextlib.nullcontext()
        with counter:
            begin = time.thread_time_ns()
            model(x).sum().backward()
            return time.thread_time_ns() - begin

    for counted in (False, True) * 3:
        nanoseconds_of_step(counted)
    ratios, plain, end = [], [], time.monotonic() + seconds
    while time.monotonic() < end:
        for order in ((True, False), (False, True)):
            took = {counted: nanoseconds_of_step(counted) for counted in order}
            ratios.append(took[True] / took[False] - 1)
            plain.append(took[False])
    middle, low, high = (100 * each for each in median_interval(ratios))
    print(
        f"compiled GPT: {middle:+.2f} % with counting (95 % interval {low:+.2f} to {high:+.2f} %, {len(ratios)} pairs of steps, "
        f"{statistics.median(plain) / 1e6:.2f} ms per step)"
    )


def bench_compiled_graph(rounds):
    """The graphs of the small GPT with nothing to run: what is left is the cost of counting their calls.  Ends the model."""
    from torch._inductor.output_code import CompiledFxGraph

    before = CompiledFxGraph.__call__.__wrapped__
    for graph in [each for each in gc.get_objects() if type(each) is CompiledFxGraph]:
        graph.current_callable = lambda inputs: None
        without, on, off = [], [], []
        for _ in range(rounds):
            without.append(nanoseconds(lambda: before(graph, ()), CALLS // 10))
            off.append(nanoseconds(lambda: graph(()), CALLS // 10))
            with flopmeter.count():
                on.append(nanoseconds(lambda: graph(()), CALLS // 10))
        report("compiled graph, counted", on, without)
        report("compiled graph, counting off", off, without)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 31
    bench_function(count)
    bench_replay(count)
    bench_compiled(seconds=4 * count)
    bench_compiled_graph(count)
