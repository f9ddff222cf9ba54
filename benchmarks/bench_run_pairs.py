# SPDX-License-Identifier: Apache-2.0
"""Measures the overhead of ``flopmeter run`` on an unmodified training script.

    python benchmarks/bench_run_pairs.py [--rounds N] [--steps N] [--add-to FILE]

A round runs the same script in three processes: alone, alone again, and under ``flopmeter run``. They start one after
another, then train on one thread, some steps at a time in random order, so that all see the same machine state. The
benchmark compares the medians of the step times after step 20, without the first two steps of each turn, with the mean of
both processes without flopmeter. Ratios are medians over the rounds with a bootstrap 95 % interval. *Alone again* shows
the noise. The time to the end of the first step is reported separately. The losses must be bit-identical. ``--add-to``
stores the rounds in FILE and reports all rounds in it.

All processes use huge pages, which reduces the effect of page placement, and have a second, sleeping thread: in a
process with one thread, malloc and reference counts take shortcuts that training processes do not take.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "flopmeter"
SKIPPED = 20  # steps until the allocator, the caches, and the monitor's calibration settle
TURN = 12  # steps per turn; the other processes wait
COLD = 2  # steps per turn with cold caches
HUGE_PAGES = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824"
VARIANTS = ("alone", "alone again", "flopmeter run")


def train() -> None:
    """Trains a small GPT for as many steps as each input line requests; prints step times and losses."""
    import torch

    sys.path.insert(0, str(ROOT / "python" / "tests"))
    from small_gpt import SmallGpt

    threading.Thread(target=threading.Event().wait, daemon=True).start()
    torch.manual_seed(0)
    model = SmallGpt(vocabulary=1000, layers=4, width=256, heads=4, length=64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(1000, (4, 64))
    for line in sys.stdin:
        answer = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            loss = model(tokens)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            answer.append((time.perf_counter() - begin, loss.item()))
        print(json.dumps(answer), flush=True)


class Process:
    """Process that runs the script, with its step times and losses."""

    def __init__(self, monitored: bool, folder: Path) -> None:
        front = [str(PROGRAM), "run", "--dir", str(folder), "--no-console", "--"] if monitored else []
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FLOPMETER_")}
        environment |= {"OMP_NUM_THREADS": "1", "GLIBC_TUNABLES": HUGE_PAGES}
        command = [*front, sys.executable, __file__, "--train"]
        self.times: list[float] = []
        self.losses: list[float] = []
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        self.steps(1)
        self.start_up = time.perf_counter() - begin

    def steps(self, count: int) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        for seconds, loss in json.loads(self.process.stdout.readline()):
            self.times.append(seconds)
            self.losses.append(loss)

    def warm(self) -> list[float]:
        """Step times that are compared."""
        return [seconds for number, seconds in enumerate(self.times[1:]) if number >= SKIPPED and number % TURN >= COLD]

    def finish(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0


def one_round(steps: int, folder: Path, generator: random.Random) -> dict[str, list[float]]:
    """Median step time and startup time of each variant."""
    order = generator.sample(VARIANTS, len(VARIANTS))
    processes = {variant: Process(variant == "flopmeter run", folder) for variant in order}
    while len(processes["alone"].times) < steps:
        for variant in generator.sample(VARIANTS, len(VARIANTS)):
            processes[variant].steps(TURN)
    for process in processes.values():
        process.finish()
    assert len({tuple(process.losses) for process in processes.values()}) == 1, "the losses differ"
    assert list(folder.glob("records_*")), "the run was not monitored"
    return {variant: [statistics.median(each.warm()), each.start_up] for variant, each in processes.items()}


def take_rounds(count: int, kept: Path | None, one: Callable[[Path, random.Random], Any]) -> list[Any]:
    """Runs ``count`` rounds, each in a temporary folder, and appends them to the rounds in ``kept``."""
    rounds = json.loads(kept.read_text()) if kept and kept.exists() else []
    generator = random.Random(len(rounds))
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(one(Path(folder), generator))
        if kept:
            kept.write_text(json.dumps(rounds))
    return rounds


def interval(ratios: list[float]) -> tuple[float, float]:
    """Bootstrap 95 % interval of the median."""
    generator = random.Random(0)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-51]


def show(rounds: list[dict[str, list[float]]]) -> None:
    for variant, against in (("alone again", ("alone",)), ("flopmeter run", ("alone", "alone again"))):
        bases = [[statistics.mean(each[base][i] for base in against) for i in (0, 1)] for each in rounds]
        ratios = [each[variant][0] / base[0] for each, base in zip(rounds, bases, strict=True)]
        start_ups = [each[variant][1] - base[1] for each, base in zip(rounds, bases, strict=True)]
        low, high = interval(ratios)
        print(
            f"{variant:14} step time x {statistics.median(ratios):.4f} (95 %: {low:.4f} to {high:.4f}), "
            f"start-up {1000 * statistics.median(start_ups):+.0f} ms"
        )
    step = statistics.median(each["alone"][0] for each in rounds)
    print(f"{len(rounds)} rounds, {1000 * step:.1f} ms per step, losses bit-identical")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--add-to", type=Path, metavar="FILE")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train()
        return
    show(take_rounds(arguments.rounds, arguments.add_to, lambda *setup: one_round(arguments.steps, *setup)))


if __name__ == "__main__":
    main()
