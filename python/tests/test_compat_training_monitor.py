# SPDX-License-Identifier: Apache-2.0
"""flopmeter.compat.TrainingMonitor: frequency, JSON log, live count, accumulation, configuration."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from flopmeter.compat import TrainingMonitor
from run_records import records
from torch import nn

WIDTH = 16
STEP_FLOPS = 2 * 2 * 4 * WIDTH * WIDTH  # one linear on four rows: forward and the weight's gradient


@pytest.fixture(autouse=True)
def peak(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("flopmeter.compat._training_monitor.get_gpu_peak_flops", lambda *_: 1e12)


@pytest.fixture
def train():
    layer = nn.Linear(WIDTH, WIDTH, bias=False)
    return lambda: layer(torch.ones(4, WIDTH)).sum().backward()


def log_of(monitor):
    return json.loads(Path(monitor.log_path).read_text())


def test_mfu_is_measured_every_so_many_steps_and_zero_between(tmp_path, train, capsys):
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=3)
    for step in range(7):
        train()
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3)
    entries = log_of(monitor)
    monitor.finish()
    assert [entry["flops"] for entry in entries] == [STEP_FLOPS, 0, 0] * 2 + [STEP_FLOPS]
    assert [entry["perf/mfu"] > 0 for entry in entries] == [True, False, False] * 2 + [True]
    for entry in entries:
        assert entry["perf/mfu"] == pytest.approx(min(1.0, entry["flops"] / entry["perf/step_time"] / 1e12))
        assert entry["perf/mfu_percent"] == 100 * entry["perf/mfu"]
    assert capsys.readouterr().out.count("MFU by profiler") == 3
    rows = records(tmp_path / "perf_monitor")
    assert [(row["step"], row["model_flops"]) for row in rows] == [(s, STEP_FLOPS if s % 3 == 0 else None) for s in range(7)]


def test_frequency_zero_measures_never(tmp_path, train):
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=0)
    for step in range(3):
        train()
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3)
    monitor.finish()
    assert [entry["flops"] for entry in log_of(monitor)] == [0, 0, 0]


def test_a_model_and_batch_size_are_measured_on_a_dummy_batch(tmp_path):
    monitor = TrainingMonitor(str(tmp_path), {}, flops_profile_freq=2)
    monitor.model_ref = nn.Linear(WIDTH, WIDTH, bias=False)
    monitor.batch_size = 4
    mask = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 1]])
    for step in range(3):
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3, mask)
    monitor.finish()
    entries = log_of(monitor)
    assert [entry["flops"] for entry in entries] == [3 * STEP_FLOPS, 0, 3 * STEP_FLOPS]
    for entry in entries:
        assert entry["perf/tokens_per_second"] == pytest.approx(9 / entry["perf/step_time"])
        assert entry["perf/samples_per_second"] == pytest.approx(4 / entry["perf/step_time"])


def test_frequencies_count_effective_steps(tmp_path, train):
    monitor = TrainingMonitor(str(tmp_path), {"training": {"gradient_accumulation_steps": 2}}, flops_profile_freq=2)
    for step in range(8):
        train()
        time.sleep(0.002)
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3, torch.ones(4, 3))
    monitor.finish()
    assert [entry["flops"] for entry in log_of(monitor)] == [0, 2 * STEP_FLOPS, 0, 0, 0, 2 * STEP_FLOPS, 0, 0]
    rows = records(tmp_path / "perf_monitor")
    assert [(row["step"], row["micro_steps"], row["samples"]) for row in rows] == [(s, 2, 8) for s in (1, 3, 5, 7)]
    assert all(row["step_seconds"] > 0.004 for row in rows)


def test_an_mfu_above_one_is_clamped_but_kept_raw_in_the_record(tmp_path, train, monkeypatch):
    monkeypatch.setattr("flopmeter.compat._training_monitor.get_gpu_peak_flops", lambda *_: 1.0)
    monitor = TrainingMonitor(str(tmp_path))
    train()
    assert monitor.log_step(0, 0, 1.0, 0.5, 1e-3)["perf/mfu"] == 1.0
    monitor.finish()
    summary = json.loads(next((tmp_path / "perf_monitor").glob("perf_summary_*.json")).read_text())
    assert "mfu_above_one" in json.dumps(summary)


def test_the_configurations_keys_are_read(tmp_path, capsys):
    config = {"monitoring": {"mfu_calculation_mode": "smart", "flops_profile_freq": 50, "flops_backend": "torch_profiler"}}
    monitor = TrainingMonitor(str(tmp_path), config)
    assert (monitor.mode, monitor.flops_profile_freq, monitor.flops_backend) == ("smart", 50, "torch_profiler")
    monitor.finish()
    monitor = TrainingMonitor(str(tmp_path), config, flops_profile_freq=7)
    assert monitor.flops_profile_freq == 7
    monitor.finish()
    TrainingMonitor(str(tmp_path), {"monitoring": {"verbosity": 3}}).finish()
    assert "'monitoring.verbosity' is not known" in capsys.readouterr().out


def test_smart_mode_knows_the_mfu_of_every_step(tmp_path):
    monitor = TrainingMonitor(str(tmp_path), {"monitoring": {"mfu_calculation_mode": "smart"}})
    monitor.model_ref, monitor.batch_size, monitor.seq_length = nn.Linear(WIDTH, WIDTH, bias=False), 4, 1
    for step in range(3):
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3)
    monitor.finish()
    assert [entry["flops"] for entry in log_of(monitor)] == [pytest.approx(STEP_FLOPS)] * 3


def test_the_log_is_valid_json_even_with_nan_and_tensors(tmp_path):
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=0)
    assert log_of(monitor) == []
    monitor.log_step(0, 0, math.nan, math.inf, 1e-3)
    monitor.log_step(1, 0, torch.tensor(2.0, requires_grad=True), torch.tensor(3.0), 1e-3)
    assert [(entry["loss"], entry["grad_norm"]) for entry in log_of(monitor)] == [(None, None), (2.0, 3.0)]
    monitor.finish()


def test_the_log_is_valid_json_whenever_the_program_is_killed(tmp_path):
    code = (
        "from flopmeter.compat import TrainingMonitor\n"
        f"m = TrainingMonitor({str(tmp_path)!r}, flops_profile_freq=0)\n"
        "print('ready', flush=True)\n"
        "for step in range(10**9): m.log_step(step, 0, 1.0, 1.0, 1.0)\n"
    )
    for delay in (0.0, 0.02, 0.1):
        program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        program.stdout.readline()
        time.sleep(delay)
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        program.stdout.close()
        entries = json.loads((tmp_path / "training_log.json").read_text())
        assert [entry["step"] for entry in entries] == list(range(len(entries)))


def test_an_unwritable_directory_is_said_and_training_goes_on(capfd):
    monitor = TrainingMonitor("/proc/nowhere", flops_profile_freq=0)
    assert monitor.log_step(0, 0, 1.0, 0.5, 1e-3)["perf/step_time"] > 0
    monitor.finish()
    assert "training_log.json is not written" in capfd.readouterr().err
