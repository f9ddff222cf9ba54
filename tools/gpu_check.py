#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks device time on a real accelerator and prints a report to send to the project.

    python tools/gpu_check.py [--device cuda] [--steps 40] [-o gpu_check.json]

Compares the step times of flopmeter with separate events at the same places, the idle bounds with the kernels that
Kineto recorded, and the time of steps with the monitor against steps without it, also of steps whose copies overlap
with kernels. Takes about a minute.
"""

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import flopmeter
import torch
from torch import nn

WIDTH, ROWS, LAYERS = 2048, 4096, 8
PAIRS = 5
TOLERANCE = 0.05  # of a step: kernels take longer or shorter under Kineto


class Loop:
    """A small network whose kernels are longer than their launch."""

    def __init__(self, device):
        torch.manual_seed(1)
        layers = [module for _ in range(LAYERS) for module in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        self.model = nn.Sequential(*layers).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.batch = torch.randn(ROWS, WIDTH).to(device)

    def step(self):
        self.model(self.batch).sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


class OverlappedLoop(Loop):
    """The same, with the next batch copied on a side stream meanwhile."""

    def __init__(self, device):
        super().__init__(device)
        self.side = torch.Stream(device)
        self.next = torch.randn(ROWS, WIDTH).pin_memory()

    def step(self):
        with self.side:
            copied = self.next.to(self.batch.device, non_blocking=True)
        super().step()
        torch.accelerator.current_stream().wait_stream(self.side)
        self.batch = copied


def records_of(directory):
    lines = [line for file in sorted(Path(directory).glob("records_*.jsonl")) for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def monitored(loop, steps, device, after_step):
    """Records of a monitored loop."""
    with tempfile.TemporaryDirectory() as directory:
        monitor = flopmeter.Monitor(directory, model=loop.model, console=False, profile_freq=0, peak_tflops=1e3)
        for _ in range(steps):
            with monitor.step(samples=ROWS):
                loop.step()
            after_step()
        torch.accelerator.synchronize(device)
        monitor.finish()
        return records_of(directory)


def check_times(loop, steps, device):
    """Worst and median difference between our step times and events at the ends of the steps."""
    events = []

    def record():
        events.append(torch.Event(device=device, enable_timing=True))
        events[-1].record()

    records = monitored(loop, steps, device, record)
    expected = [a.elapsed_time(b) / 1e3 for a, b in zip(events, events[1:])]
    seen = [record["step_seconds"] for record in records[1:]]
    errors = [abs(a - b) / b for a, b in zip(seen[2:], expected[2:]) if b > 0]
    return {
        "time_source": records[-1]["time_source"],
        "step_ms": round(1e3 * statistics.median(expected), 3),
        "median_error": round(statistics.median(errors), 5) if errors else None,
        "worst_error": round(max(errors), 5) if errors else None,
        "idle_seconds": [records[-1].get(f"device_idle_{bound}_seconds") for bound in ("min", "max")],
        "queue_lag_seconds": records[-1].get("queue_lag_seconds"),
    }


def check_kernels(loop, device, times):
    """Busy time of one step by Kineto, and whether the idle time that it leaves is within our bounds."""
    activities = torch.profiler.supported_activities()
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(3):
            loop.step()
        torch.accelerator.synchronize(device)
    operators = [row for row in profile.key_averages() if row.device_type == torch.autograd.DeviceType.CPU]
    busy = sum(row.self_device_time_total for row in operators)
    if not busy or None in times["idle_seconds"]:
        return {"kernel_ms_per_step": None, "idle_in_bounds": None}
    kernels = busy / 3 / 1e3
    idle = times["step_ms"] - kernels
    slack = TOLERANCE * times["step_ms"]
    least, most = (1e3 * bound for bound in times["idle_seconds"])
    return {"kernel_ms_per_step": round(kernels, 3), "idle_in_bounds": least - slack <= idle <= most + slack}


def seconds_of(work, device):
    torch.accelerator.synchronize(device)
    begin = time.perf_counter()
    work()
    torch.accelerator.synchronize(device)
    return time.perf_counter() - begin


def check_cost(loop, steps, device):
    """Time with the monitor over time without it, in alternating blocks."""
    ratios = []
    for _ in range(PAIRS):
        plain = seconds_of(lambda: [loop.step() for _ in range(steps)], device)
        with tempfile.TemporaryDirectory() as directory:
            monitor = flopmeter.Monitor(directory, model=loop.model, console=False, profile_freq=0, peak_tflops=1e3)

            def steps_with(monitor=monitor):
                for _ in range(steps):
                    with monitor.step(samples=ROWS):
                        loop.step()

            ratios.append(seconds_of(steps_with, device) / plain)
            monitor.finish()
    return {"ratio_median": round(statistics.median(ratios), 4), "ratios": [round(ratio, 4) for ratio in ratios]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="device type (default: the accelerator of torch)")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("-o", "--output", default="gpu_check.json", help="report (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.device is None and not torch.accelerator.is_available():
        print("gpu_check: torch finds no accelerator on this machine", file=sys.stderr)
        return 1
    device = torch.device(arguments.device or torch.accelerator.current_accelerator())
    loop = Loop(device)
    for _ in range(5):
        loop.step()
    module = torch.get_device_module(device)
    times = check_times(loop, arguments.steps, device)
    report = {
        "flopmeter": flopmeter.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": module.get_device_name() if hasattr(module, "get_device_name") else str(device),
        "times": times,
        "kernels": check_kernels(loop, device, times),
        "cost": check_cost(loop, arguments.steps, device),
        "cost_with_overlap": check_cost(OverlappedLoop(device), arguments.steps, device),
    }
    Path(arguments.output).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    worst = report["times"]["worst_error"]
    good = report["times"]["time_source"] == "device" and worst is not None and worst < 0.01
    print(f"{'ok' if good else 'DIFFERENT'}: step times are {'' if good else 'not '}within 1 % of the device's events")
    print(f"Send {arguments.output} to the project.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
