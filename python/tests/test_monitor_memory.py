# SPDX-License-Identifier: Apache-2.0
"""Memory of the monitor: it is freed after a measurement, and the total stays small."""

import ctypes
import gc

import flopmeter
import pytest
import torch
from small_gpt import SmallGpt

MB = 1e6


def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def train(monitor, model, tokens, steps):
    for _ in range(steps):
        with monitor.step(input_ids=tokens):
            model(tokens).backward()
        model.zero_grad()


@pytest.mark.parametrize("mode", ["profiler", "smart", "hybrid"])
def test_memory_is_freed_after_a_measurement(mode, tmp_path):
    model, tokens = SmallGpt(), torch.randint(64, (4, 16))
    model(tokens).backward()
    with flopmeter.Monitor(tmp_path, console=False, mode=mode, flops_profile_freq=50, recalibration_frequency=50) as monitor:
        train(monitor, model, tokens, 60)  # two measurements, so that one-time allocations are done
        before, measured = resident(), monitor.status["measurements"]
        train(monitor, model, tokens, 50)
        assert monitor.status["measurements"] == measured + 1
        assert resident() - before < 5 * MB


def test_the_monitor_takes_less_than_a_hundred_megabytes(tmp_path):
    model, tokens = SmallGpt(), torch.randint(64, (4, 16))
    model(tokens).backward()
    before = resident()
    with flopmeter.Monitor(tmp_path, model=model, console=False, tensorboard=True, csv=True) as monitor:
        train(monitor, model, tokens, 200)
        assert resident() - before < 100 * MB


def test_the_torch_profiler_frees_its_memory(tmp_path):
    from flopmeter.compat import calculate_mfu_with_profiler

    model = SmallGpt()

    def measure():
        return calculate_mfu_with_profiler(model, 4, 16, 0.1, flops_backend="torch_profiler")

    for _ in range(3):
        measure()
    before = resident()
    for _ in range(3):
        measure()
    assert resident() - before < 5 * MB
