# SPDX-License-Identifier: Apache-2.0
"""Measures the overhead of each mode of the monitor and of each counting frequency.

    python benchmarks/bench_modes.py [--rounds N] [--steps N] [--add-to FILE]

A round runs the same training in one process per variant, so that memory is measured per variant. The processes start
one after another, then train on one thread, some steps at a time in random order, so that all variants see the same
machine state. Huge pages and an idle second thread as in bench_run_pairs.py. Values are medians over the rounds. The
cost is the additional time compared with no monitor in the same round, with a bootstrap 95 % interval; *none again*
shows the noise. Memory is the additional peak resident size with normal pages. Files is the size on disk after one hour
of steps of 0.25 s. ``--add-to`` stores the rounds in FILE and reports all rounds in it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from bench_run_pairs import HUGE_PAGES, interval, take_rounds

MODES = ["none", "none again", "estimate", "smart", "auto", "profiler", "hybrid"]
FREQUENCIES = {"profiler 1": 1, "profiler 10": 10, "profiler 50": 50, "profiler 100": 100, "profiler": 500}
VARIANTS = [*MODES, *(name for name in FREQUENCIES if name not in MODES)]
TURN = 25  # steps per turn; the other processes wait
STEP_SECONDS = 0.25  # as in FlagScale's sample
LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY, BATCH = 4, 128, 4, 64, 512, 4
CONFIG = {  # the same model, for the estimator
    "model_type": "gpt2", "n_layer": LAYERS, "n_embd": WIDTH, "n_head": HEADS, "n_positions": LENGTH, "vocab_size": VOCABULARY,
}


def run(variant: str) -> None:
    """Trains as many steps as each input line requests, prints their duration, and prints a summary at the end."""
    import torch

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tests"))
    from small_gpt import SmallGpt

    import flopmeter

    threading.Thread(target=threading.Event().wait, daemon=True).start()
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
    mode, frequency = variant.split()[0], FREQUENCIES.get(variant, 500)
    steps = 0
    with tempfile.TemporaryDirectory() as directory:
        options: dict[str, Any] = {"console": False, "flops_profile_freq": frequency, "model": CONFIG, "attention": "eager"}
        monitor = None if mode == "none" else flopmeter.Monitor(directory, mode=mode, **options)
        for line in sys.stdin:
            start, cpu = time.perf_counter(), time.process_time()
            for _ in range(int(line)):
                if monitor is None:
                    step()
                    continue
                with monitor.step(input_ids=tokens):
                    step()
            steps += int(line)
            print(json.dumps([time.perf_counter() - start, time.process_time() - cpu]), flush=True)
        utilization: list[float] = []
        written = 0
        if monitor is not None:
            monitor.finish()
            for line in next(Path(directory).glob("records_*")).read_text().splitlines():
                mfu = json.loads(line)["mfu"]
                utilization += [mfu] if mfu is not None else []
            written = sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())
    outcome = {
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "mfu": statistics.mean(utilization) if utilization else None,
        "counts": monitor.status["measurements"] if monitor else 0,
        "files": written / steps * 3600 / STEP_SECONDS,
    }
    print(json.dumps(outcome))


class Process:
    """Process of one variant and its accumulated time."""

    def __init__(self, variant: str, pages: str = HUGE_PAGES) -> None:
        command = [sys.executable, __file__, "--run", variant]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLIBC_TUNABLES": pages}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.seconds = self.cpu = 0.0
        self.steps(1)  # wait for startup
        self.seconds = self.cpu = 0.0

    def steps(self, count: int) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        seconds, cpu = json.loads(self.process.stdout.readline())
        self.seconds += seconds
        self.cpu += cpu

    def finish(self) -> dict[str, Any]:
        outcome, _ = self.process.communicate()
        assert self.process.returncode == 0
        return {"seconds": self.seconds, "cpu": self.cpu, **json.loads(outcome)}


def one_round(steps: int, _folder: Path, generator: random.Random) -> dict[str, dict[str, Any]]:
    processes = {variant: Process(variant) for variant in generator.sample(VARIANTS, len(VARIANTS))}
    for _ in range(steps // TURN):
        for variant in generator.sample(VARIANTS, len(VARIANTS)):
            processes[variant].steps(TURN)
    figures = {variant: process.finish() for variant, process in processes.items()}
    for mode in MODES:
        process = Process(mode, pages="")  # huge pages would hide the used size
        process.steps(TURN)
        figures[mode]["memory"] = process.finish()["memory"]
    return figures


Rounds = list[dict[str, dict[str, Any]]]


def median(rounds: Rounds, variant: str, key: str) -> float | None:
    values = [each[variant][key] for each in rounds if each[variant][key] is not None]
    return statistics.median(values) if values else None


def cost(rounds: Rounds, variant: str, key: str) -> str:
    """Additional time of a variant compared with no monitor in the same round, in percent."""
    shares = [100 * (each[variant][key] / each["none"][key] - 1) for each in rounds]
    low, high = interval(shares)
    return f"{statistics.median(shares):+.2f} % [{low:+.2f}, {high:+.2f}]"


def print_modes(rounds: Rounds, steps: int) -> None:
    print(f"\n{'mode':<11}{'total time':>11}  {'cost':<25}{'CPU cost':<25}{'memory':>8}{'steps/s':>9}{'mean MFU':>10}{'counts':>8}{'files':>11}")
    for mode in MODES:
        seconds, mfu = median(rounds, mode, "seconds") or 1, median(rounds, mode, "mfu")
        memory = statistics.median(each[mode]["memory"] - each["none"]["memory"] for each in rounds) / 1e6
        print(
            f"{mode:<11}{seconds:>9.2f} s  {cost(rounds, mode, 'seconds'):<25}{cost(rounds, mode, 'cpu'):<25}"
            f"{memory:>5.1f} MB{steps / seconds:>9.1f}{'n/a' if mfu is None else f'{100 * mfu:.2f} %':>10}"
            f"{median(rounds, mode, 'counts'):>8.0f}{(median(rounds, mode, 'files') or 0) / 1e6:>6.1f} MB/h"
        )


def print_frequencies(rounds: Rounds) -> None:
    print(f"\n{'count every':<14}{'counts':>8}  {'cost':<25}{'CPU cost'}")
    for variant, frequency in FREQUENCIES.items():
        print(
            f"{frequency:>5} steps   {median(rounds, variant, 'counts'):>8.0f}  {cost(rounds, variant, 'seconds'):<25}"
            f"{cost(rounds, variant, 'cpu')}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--add-to", type=Path, metavar="FILE")
    parser.add_argument("--run", metavar="VARIANT", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments.run)
        return
    steps = arguments.steps // TURN * TURN
    rounds: Rounds = take_rounds(arguments.rounds, arguments.add_to, lambda *where: one_round(steps, *where))
    print(f"GPT of {LAYERS} layers, width {WIDTH}, {BATCH} x {LENGTH} tokens per step; {steps} steps, {len(rounds)} rounds")
    print_modes(rounds, steps)
    print_frequencies(rounds)


if __name__ == "__main__":
    main()
