# SPDX-License-Identifier: Apache-2.0
"""What each mode of the monitor costs, and what measuring more or less often costs: the two tables one decides by.

    python benchmarks/bench_modes.py [--rounds N] [--steps N]

Every run is a process of its own, so that memory is its own too.  Each round runs all variants once, in random
order; shown are medians over the rounds, cost as a share of the run without a monitor in the same round.  Memory is
what the process's highest resident size is above that run's, files what an hour of steps of 0.25 s leaves on disk.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MODES = ["none", "estimate", "smart", "auto", "profiler", "hybrid"]
FREQUENCIES = [1, 10, 50, 100, 500]
STEP_SECONDS = 0.25  # of an hour's steps, as in FlagScale's sample
LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY, BATCH = 4, 128, 4, 64, 512, 4
CONFIG = {  # the same model for the estimator
    "model_type": "gpt2", "n_layer": LAYERS, "n_embd": WIDTH, "n_head": HEADS, "n_positions": LENGTH, "vocab_size": VOCABULARY,
}


def run(mode: str, frequency: int, steps: int) -> dict[str, Any]:
    """One training; ``none`` is the loop alone."""
    import torch

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tests"))
    from small_gpt import SmallGpt

    import flopmeter

    torch.manual_seed(0)
    model = SmallGpt(VOCABULARY, LAYERS, WIDTH, HEADS, LENGTH)
    tokens = torch.randint(VOCABULARY, (BATCH, LENGTH))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> None:
        model(tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(10):
        step()
    with tempfile.TemporaryDirectory() as directory:
        options: dict[str, Any] = {"console": False, "flops_profile_freq": frequency, "model": CONFIG, "attention": "eager"}
        monitor = None if mode == "none" else flopmeter.Monitor(directory, mode=mode, **options)
        subscription = monitor.subscribe(steps) if monitor else None
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            if monitor is None:
                step()
                continue
            with monitor.step(input_ids=tokens):
                step()
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        utilization: list[float] = []
        written = 0
        if monitor is not None and subscription is not None:
            monitor.finish()
            while (text := subscription.next(0.1)) is not None:
                record = json.loads(text)
                utilization += [record["mfu"]] if record["mfu"] is not None else []
            written = sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())
    return {
        "seconds": seconds,
        "cpu": cpu_seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "mfu": statistics.mean(utilization) if utilization else None,
        "counts": monitor.status["measurements"] if monitor else 0,
        "files": written / steps * 3600 / STEP_SECONDS,
    }


def child(mode: str, frequency: int, steps: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--run", mode, str(frequency), "--steps", str(steps)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def measure(variants: list[tuple[str, int]], rounds: int, steps: int) -> list[list[dict[str, Any]]]:
    """For each variant its runs, one a round; the first variant is the loop alone."""
    results: list[list[dict[str, Any]]] = [[] for _ in variants]
    for number in range(rounds):
        for index in random.Random(number).sample(range(len(variants)), len(variants)):
            results[index].append(child(*variants[index], steps))
    return results


def median(runs: list[dict[str, Any]], key: str) -> float | None:
    values = [run[key] for run in runs if run[key] is not None]
    return statistics.median(values) if values else None


def cost(runs: list[dict[str, Any]], plain: list[dict[str, Any]], key: str) -> float:
    """The median share by which a variant takes more than the loop alone in the same round."""
    return statistics.median(run[key] / base[key] - 1 for run, base in zip(runs, plain, strict=True))


def print_modes(results: list[list[dict[str, Any]]], steps: int) -> None:
    print(f"\n{'mode':<10}{'total time':>12}{'cost':>9}{'CPU cost':>10}{'memory':>10}{'steps/s':>9}{'mean MFU':>10}{'counts':>8}{'files':>11}")
    for mode, runs in zip(MODES, results, strict=True):
        seconds, mfu = median(runs, "seconds"), median(runs, "mfu")
        memory = statistics.median(run["memory"] - base["memory"] for run, base in zip(runs, results[0], strict=True)) / 1e6
        print(
            f"{mode:<10}{seconds:>10.2f} s{100 * cost(runs, results[0], 'seconds'):>7.2f} %"
            f"{100 * cost(runs, results[0], 'cpu'):>8.2f} %{memory:>7.1f} MB{steps / (seconds or 1):>9.1f}"
            f"{'n/a' if mfu is None else f'{100 * mfu:.2f} %':>10}{median(runs, 'counts'):>8.0f}"
            f"{(median(runs, 'files') or 0) / 1e6:>6.1f} MB/h"
        )


def print_frequencies(results: list[list[dict[str, Any]]]) -> None:
    print(f"\n{'count every':<14}{'counts':>8}{'cost':>10}{'CPU cost':>10}")
    for frequency, runs in zip(FREQUENCIES, results[1:], strict=True):
        print(
            f"{frequency:>5} steps   {median(runs, 'counts'):>8.0f}{100 * cost(runs, results[0], 'seconds'):>8.2f} %"
            f"{100 * cost(runs, results[0], 'cpu'):>8.2f} %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--run", nargs=2, metavar=("MODE", "FREQUENCY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(run(arguments.run[0], int(arguments.run[1]), arguments.steps)))
        return
    print(f"GPT of {LAYERS} layers, width {WIDTH}, {BATCH} x {LENGTH} tokens a step; {arguments.steps} steps, {arguments.rounds} rounds")
    print_modes(measure([(mode, 500) for mode in MODES], arguments.rounds, arguments.steps), arguments.steps)
    print_frequencies(measure([("none", 0)] + [("profiler", f) for f in FREQUENCIES], arguments.rounds, arguments.steps))


if __name__ == "__main__":
    main()
