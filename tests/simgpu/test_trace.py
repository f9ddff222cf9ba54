# SPDX-License-Identifier: Apache-2.0
"""Traces of the simulated device: `flopmeter trace` against what happened."""

import json
import subprocess
from pathlib import Path

import flopmeter
import pytest
import simgpu
import torch

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "flopmeter"
STEPS = 3
ACTIVITIES = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]


def trace_of(path):
    command = [PROGRAM, "trace", path, "--peak", "100", "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    (rank,) = report["ranks"]
    return report, rank


def make_step():
    options = {"device": "simgpu", "dtype": torch.bfloat16}
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096, **options), torch.nn.GELU(), torch.nn.Linear(4096, 1024, **options))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.empty(2048, 1024, **options)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, step


def device_time(kernels):
    """Nanoseconds in which a kernel ran: the stream runs one at a time."""
    return sum(kernel.end - kernel.start for kernel in kernels)


def test_kernels_times_and_flops_are_those_of_the_device(tmp_path):
    _, step = make_step()
    step()  # allocates gradients
    torch.accelerator.synchronize()
    simgpu.reset()
    with torch.profiler.profile(activities=ACTIVITIES, record_shapes=True) as profiler:
        for number in range(STEPS):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                step()
        torch.accelerator.synchronize()
    kernels = simgpu.truth().kernels
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    report, rank = trace_of(tmp_path / "trace.json")
    assert rank["kernels"] == len(kernels)
    assert round(rank["time"]["compute_seconds"] * 1e9) == pytest.approx(device_time(kernels), abs=len(kernels))
    assert rank["flops"]["hardware"] == rank["flops"]["model"] == sum(kernel.flops for kernel in kernels)
    assert rank["flops"]["by_dtype"] == {"bf16": rank["flops"]["hardware"]}
    assert len(rank["steps"]) == STEPS
    span = rank["time"]["window_seconds"]
    assert span * 1e9 == pytest.approx(kernels[-1].end - kernels[0].start, abs=2)
    busy = rank["time"]["compute_seconds"] / span
    assert report["mfu"] == pytest.approx(rank["flops"]["model"] / 100e12 / sum(s["device_seconds"] for s in rank["steps"]))
    assert 0 < busy <= 1 and rank["coverage"] > 0.5


def test_a_step_that_the_monitor_records_has_the_time_and_flops_of_the_device(tmp_path):
    model, step = make_step()
    with flopmeter.Monitor(tmp_path, model=model, kineto_step=3, peak_tflops=100, console=False) as monitor:
        for _ in range(5):
            with monitor.step(samples=2048):
                step()
    (file,) = tmp_path.glob("trace_*.json")
    _, rank = trace_of(file)
    (records,) = tmp_path.glob("records_*.jsonl")
    (record,) = [row for row in map(json.loads, records.read_text().splitlines()) if row["step"] == 3]
    assert record["tag"] == "profile"
    (traced,) = rank["steps"]
    assert traced["name"] == "ProfilerStep#3"
    assert traced["hardware_flops"] == record["hardware_flops"] and traced["model_flops"] == record["model_flops"]
    assert rank["kernels"] > 0 and traced["device_seconds"] > 0
