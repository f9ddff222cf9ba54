# SPDX-License-Identifier: Apache-2.0
"""Measures what device time costs the host, on the simulated accelerator of tests/simgpu and on the CPU.

    python benchmarks/bench_device_time.py [--turns N]

Each variant trains in a separate process; the processes take turns of a few steps in random order. The time of a step is
the CPU time of the training thread, so that other programs disturb little. `marks off` monitors a device that does not time
events; phases that begin and end cost it one mark less each. `profiled` runs each second step in an operator profile by
device time.
"""

from __future__ import annotations

import argparse
import contextlib
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
SKIPPED = 10  # steps until caches are warm
TURN = 10  # steps
PHASES = 100  # per measurement of marks
VARIANTS = {  # device, monitored, settings of the device
    "simulated, alone": ("simgpu", False, {}),
    "simulated, marks off": ("simgpu", True, {"elapsed_time": 0}),
    "simulated, marks on": ("simgpu", True, {}),
    "simulated, profiled": ("simgpu", False, {}),
    "CPU, alone": ("cpu", False, {}),
    "CPU, monitored": ("cpu", True, {}),
}


def train(name: str, folder: str) -> None:
    """Trains as many steps as each input line requests; prints their CPU times, events, and profiled operators."""
    import torch

    device, monitored, _ = VARIANTS[name]
    sys.path.insert(0, str(ROOT / "tests" / "simgpu"))
    if device == "simgpu":
        import simgpu
    from model import GPT

    import flopmeter

    torch.set_num_threads(1)
    with torch.device(device):
        model = GPT(layers=4, width=64, heads=4, vocabulary=256, length=32)
        tokens = torch.zeros(1, 32, dtype=torch.long)
    optimizer = torch.optim.AdamW(model.parameters())
    monitor = flopmeter.Monitor(folder, model=model, console=False, profile_freq=0, overhead_budget=1) if monitored else None
    profiles = name.endswith("profiled")
    if profiles:  # opens the clock of the device
        flopmeter.Monitor(folder, model=model, console=False, profile_freq=0).finish()
        from flopmeter.torch.adapter import torch_adapter

    def one_step() -> None:
        model(tokens, tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    def empty_phases() -> float:
        """Least seconds of one phase that begins and ends."""
        blocks = []
        for _ in range(20 if monitor else 0):
            with monitor.step():
                begin = time.thread_time()
                for _ in range(PHASES):
                    with monitor.phase("communication"):
                        pass
                blocks.append((time.thread_time() - begin) / PHASES)
        return min(blocks, default=0)

    number = 0
    for line in sys.stdin:
        answer = []
        for _ in range(int(line)):
            number += 1
            begin = time.thread_time()
            profile = torch_adapter().OpProfiler(1e-5, True) if profiles and number % 2 else None
            with monitor.step() if monitor else contextlib.nullcontext():
                one_step()
            seconds = time.thread_time() - begin
            if device == "simgpu":
                torch.simgpu.synchronize()
            operators = 0
            if profile is not None:
                rows = []
                while not rows:  # the device reaches the last events a moment later
                    begin = time.thread_time()
                    rows = profile.stop()["rows"]
                    seconds += time.thread_time() - begin
                operators = sum(row[2] for row in rows)
            events = 0
            if device == "simgpu":
                events = simgpu.counters().get("record_event", 0)
                simgpu.reset()
            answer.append((seconds, events, operators))
        print(json.dumps([answer, empty_phases()]), flush=True)


class Process:
    def __init__(self, name: str, folder: str) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "SIMGPU_SETTINGS": json.dumps(VARIANTS[name][2])}
        command = [sys.executable, __file__, "--train", name, "--folder", folder]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        self.steps: list[tuple[float, int, int]] = []
        self.phase = float("inf")

    def run(self, count: int) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        steps, phase = json.loads(self.process.stdout.readline())
        self.steps += [tuple(step) for step in steps]
        self.phase = min(self.phase, phase)

    def median(self, profiled: bool = False) -> float:
        return statistics.median(seconds for seconds, _, operators in self.steps[SKIPPED:] if (operators > 0) == profiled)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.train, arguments.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        processes = {name: Process(name, f"{folder}/{number}") for number, name in enumerate(VARIANTS)}
        for process in processes.values():
            process.run(SKIPPED)
        for _ in range(arguments.turns):
            for name in random.sample(list(VARIANTS), len(VARIANTS)):
                processes[name].run(TURN)
        for process in processes.values():
            process.process.communicate()
    for name, process in processes.items():
        alone = processes[name.split(",")[0] + ", alone"].median()
        print(f"{name:22} {process.median() * 1e3:7.3f} ms of CPU time per step   {process.median() / alone:6.3f} of alone")
    on, off, profiled = (processes["simulated, " + name] for name in ("marks on", "marks off", "profiled"))
    marks = statistics.median(events for _, events, _ in on.steps[SKIPPED:])
    print(f"a mark takes {(on.phase - off.phase) / 2 * 1e6:.2f} µs; {marks:.0f} events per step")
    operators = max(operators for _, _, operators in profiled.steps)
    extra = (profiled.median(profiled=True) - profiled.median()) / operators * 400
    print(f"a profiled step of 400 operators takes {extra * 1e3:.2f} ms longer; measured with {operators} operators")


if __name__ == "__main__":
    main()
