# SPDX-License-Identifier: Apache-2.0
"""What ``flopmeter run`` costs a training script that knows nothing of it.

    python benchmarks/bench_run_pairs.py [--pairs N] [--steps N]

Each pair is the same script as two processes, alone and under ``flopmeter run``, in random order.  Compared are the
medians of the step times after step 20; the ratio is the median over pairs with a bootstrap 95 % interval.  A second
row sets alone against alone: what it shows is noise.  The time to the end of the first step is told apart.
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
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "flopmeter"
SKIPPED = 20  # steps: allocator, caches and the monitor's own calibration settle


def train(steps: int) -> None:
    """The script: a small GPT; prints the time of each step, and when the first one ended."""
    import torch

    sys.path.insert(0, str(ROOT / "python" / "tests"))
    from small_gpt import SmallGpt

    torch.manual_seed(0)
    model = SmallGpt(vocabulary=1000, layers=4, width=128, heads=4, length=64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(1000, (4, 64))
    ends = [time.perf_counter()]
    for _ in range(steps):
        model(tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
        ends.append(time.perf_counter())
        if len(ends) == 2:
            first = time.time()
    print(json.dumps({"steps": [b - a for a, b in zip(ends, ends[1:])], "first": first}))


def measure(steps: int, watched: bool, folder: Path) -> tuple[float, float]:
    """Median step time, and seconds from the start to the end of the first step."""
    command = [sys.executable, __file__, "--train", str(steps)]
    if watched:
        command = [str(PROGRAM), "run", "--dir", str(folder), "--no-console", "--", *command]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FLOPMETER_")}
    start = time.time()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    told = json.loads(done.stdout)
    return statistics.median(told["steps"][SKIPPED:]), told["first"] - start


def interval(ratios: list[float]) -> tuple[float, float]:
    """Bootstrap 95 % interval of the median."""
    generator = random.Random(0)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-51]


def compare(pairs: int, steps: int, second_watched: bool) -> None:
    ratios, start_ups = [], []
    generator = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(pairs):
            sides = [False, True]
            generator.shuffle(sides)
            both = {side: measure(steps, side and second_watched, Path(folder) / str(pair)) for side in sides}
            ratios.append(both[True][0] / both[False][0])
            start_ups.append(both[True][1] - both[False][1])
    low, high = interval(ratios)
    name = "flopmeter run" if second_watched else "alone again"
    print(
        f"{name:14} step time x {statistics.median(ratios):.4f} (95 %: {low:.4f} to {high:.4f}), "
        f"start-up {1000 * statistics.median(start_ups):+.0f} ms, {pairs} pairs",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--steps", type=int, default=220)
    parser.add_argument("--train", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.train)
        return
    compare(arguments.pairs, arguments.steps, second_watched=False)
    compare(arguments.pairs, arguments.steps, second_watched=True)


if __name__ == "__main__":
    main()
