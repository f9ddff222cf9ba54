# SPDX-License-Identifier: Apache-2.0
"""flopmeter.compat.TrainingMonitor: frequency, JSON log, live count, accumulation, configuration."""

import fcntl
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
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


class Slow(nn.Linear):
    """Takes its time, so that a measurement is longer than a step."""

    def __init__(self):
        super().__init__(WIDTH, WIDTH, bias=False)

    def forward(self, input):
        time.sleep(0.5)
        return super().forward(input)


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


def test_frequencies_count_process_steps(tmp_path, train):
    monitor = TrainingMonitor(str(tmp_path), {"training": {"gradient_accumulation_steps": 2}}, flops_profile_freq=2)
    for step in range(8):
        train()
        time.sleep(0.002)
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3, torch.ones(4, 3))
    monitor.finish()
    assert [entry["flops"] for entry in log_of(monitor)] == [0, 2 * STEP_FLOPS, 0, 0, 0, 2 * STEP_FLOPS, 0, 0]
    rows = records(tmp_path / "perf_monitor")
    assert [(row["step"], row["micro_batches"], row["samples"]) for row in rows] == [(s, 2, 8) for s in (1, 3, 5, 7)]
    assert all(row["step_seconds"] > 0.004 for row in rows)


def test_an_mfu_above_one_is_clamped_but_kept_raw_in_the_record(tmp_path, train, monkeypatch):
    monkeypatch.setattr("flopmeter.compat._training_monitor.get_gpu_peak_flops", lambda *_: 1.0)
    monitor = TrainingMonitor(str(tmp_path))
    train()
    assert monitor.log_step(0, 0, 1.0, 0.5, 1e-3)["perf/mfu"] == 1.0
    monitor.finish()
    summary = json.loads(next((tmp_path / "perf_monitor").glob("perf_summary_*.json")).read_text())
    assert "mfu_above_100" in json.dumps(summary)


def test_the_raw_value_above_one_is_in_the_record_of_a_measured_model(tmp_path, monkeypatch):
    monkeypatch.undo()
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=1)
    monitor.model_ref, monitor.batch_size, monitor.seq_length = Slow(), 1000, 1000
    entry = [monitor.log_step(step, 0, 1.0, 0.5, 1e-3) for step in range(2)][1]
    monitor.finish()
    assert entry["perf/mfu"] == 1.0
    assert records(tmp_path / "perf_monitor")[1]["mfu"] > 1.0


def test_the_configurations_keys_are_read(tmp_path, capsys):
    config = {"monitoring": {"mfu_calculation_mode": "smart", "flops_profile_freq": 50, "flops_backend": "torch_profiler"}}
    monitor = TrainingMonitor(str(tmp_path), config)
    assert (monitor.mode, monitor.flops_profile_freq, monitor.flops_backend) == ("smart", 50, "torch_profiler")
    monitor.finish()
    monitor = TrainingMonitor(str(tmp_path), config, flops_profile_freq=7)
    assert monitor.flops_profile_freq == 7
    monitor.finish()


def test_an_unknown_key_is_named_and_the_others_are_kept(tmp_path, capsys):
    config = {"monitoring": {"verbosity": 3, "flops_profile_freq": 50, "performance_monitoring": {"mood": 1}}}
    monitor = TrainingMonitor(str(tmp_path), config)
    assert monitor.flops_profile_freq == 50
    monitor.finish()
    output = capsys.readouterr().out
    assert "unknown key 'monitoring.verbosity'" in output
    assert "unknown key 'monitoring.performance_monitoring.mood'" in output
    assert output.count("\n") == 2


@pytest.mark.parametrize(
    ("config", "measured"),
    [
        ({"mfu_calculation_mode": "smart"}, [0]),
        ({"mfu_calculation_mode": "smart", "performance_monitoring": {"smart_mode": {"recalibration_frequency": 3}}}, [0, 3, 6]),
        ({"mfu_calculation_mode": "smart", "performance_monitoring": {"smart_mode": {"recalibration_frequency": 3, "initial_profiling": False}}}, [3, 6]),
        ({"mfu_calculation_mode": "smart", "performance_monitoring": {"smart_mode": {"recalibration_frequency": 3, "calibration_enabled": False}}}, [0]),
        ({"mfu_calculation_mode": "estimate", "performance_monitoring": {"measure_flops_frequency": 3}}, []),
        ({"mfu_calculation_mode": "profiler", "performance_monitoring": {"measure_flops_frequency": 3}}, [0, 3, 6]),
        ({"mfu_calculation_mode": "hybrid", "performance_monitoring": {"measure_flops_frequency": 3}}, [0, 3, 6]),
        ({"mfu_calculation_mode": "hybrid", "performance_monitoring": {"measure_flops_frequency": 3, "hybrid_mode": {"fallback_to_profiler": False}}}, []),
        ({"training_phase": "finetune", "performance_monitoring": {"measure_flops_frequency": 3}}, [0]),
    ],
)  # fmt: skip
def test_the_configuration_states_when_the_model_is_measured(tmp_path, config, measured, capsys):
    monitor = TrainingMonitor(str(tmp_path), {"monitoring": config})
    monitor.model_ref, monitor.batch_size, monitor.seq_length = nn.Linear(WIDTH, WIDTH, bias=False), 4, 1
    for step in range(8):
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3)
    monitor.finish()
    lines = [line for line in capsys.readouterr().out.splitlines() if "MFU by profiler" in line]
    assert [int(line.split(":")[0].removeprefix("Step ")) for line in lines] == measured


def test_the_training_phases_frequency_is_taken(tmp_path):
    for phase, frequency in (("warmup", 1000), ("main", 500), ("finetune", 200)):
        monitor = TrainingMonitor(str(tmp_path), {"monitoring": {"training_phase": phase}})
        assert monitor.flops_profile_freq == frequency
        monitor.finish()


def test_only_multiples_of_the_frequency_are_measured(tmp_path, train):
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=3)
    for step in range(4, 11):
        train()
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3)
    monitor.finish()
    assert [entry["step"] for entry in log_of(monitor) if entry["flops"]] == [6, 9]


def test_the_record_has_the_loops_time_and_the_models_dtype(tmp_path):
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=2)
    monitor.model_ref = Slow().to(torch.bfloat16)
    monitor.batch_size, monitor.seq_length = 4, 1
    for step in range(3):
        time.sleep(0.01)
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3)
    monitor.finish()
    rows = records(tmp_path / "perf_monitor")
    for row, entry in zip(rows, log_of(monitor), strict=True):
        assert row["step_seconds"] == pytest.approx(entry["perf/step_time"])
        assert row["step_seconds"] < 0.5  # measuring takes longer
    peak = monitor.monitor.peaks.peaks["bf16"]
    assert [row["mfu"] for row in rows] == [
        pytest.approx(STEP_FLOPS / row["step_seconds"] / peak) if row["step"] % 2 == 0 else None for row in rows
    ]


def test_smart_mode_knows_the_mfu_of_every_step(tmp_path):
    monitor = TrainingMonitor(str(tmp_path), {"monitoring": {"mfu_calculation_mode": "smart"}})
    monitor.model_ref, monitor.batch_size, monitor.seq_length = nn.Linear(WIDTH, WIDTH, bias=False), 4, 1
    for step in range(3):
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3)
    monitor.finish()
    assert [entry["flops"] for entry in log_of(monitor)] == [pytest.approx(STEP_FLOPS)] * 3


@pytest.mark.parametrize("mode", ["smart", "estimate"])
def test_without_a_model_the_live_count_supplies_the_flops_of_every_step(tmp_path, train, mode):
    monitor = TrainingMonitor(str(tmp_path), {"monitoring": {"mfu_calculation_mode": mode}})
    for step in range(3):
        train()
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3, attention_mask=torch.ones(4, 1 + step % 2))
    monitor.finish()
    assert [entry["flops"] for entry in log_of(monitor)] == [STEP_FLOPS, 2 * STEP_FLOPS, STEP_FLOPS]


def test_without_a_model_and_a_count_one_line_states_what_is_missing(tmp_path, train, capsys):
    monitor = TrainingMonitor(str(tmp_path), {"monitoring": {"mfu_calculation_mode": "estimate", "flops_profile_freq": 0}})
    for step in range(2):
        train()
        monitor.log_step(step, 0, 1.0, 0.5, 1e-3)
    monitor.finish()
    assert capsys.readouterr().out.count("neither model_ref and batch_size nor a counted step are known") == 1


@pytest.mark.parametrize(
    ("variables", "chinese"),
    [({"FLOPMETER_LANG": "zh"}, True), ({"LANG": "zh_CN.UTF-8"}, True), ({"FLOPMETER_LANG": "en", "LANG": "zh_CN.UTF-8"}, False), ({}, False)],
)
def test_lines_are_chinese_if_the_environment_is(tmp_path, train, capfd, monkeypatch, variables, chinese):
    for name in ("FLOPMETER_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monitor = TrainingMonitor(str(tmp_path), {"monitoring": {"no_such_key": 1}})
    train()
    monitor.log_step(0, 0, 1.0, 0.5, 1e-3)
    monitor.finish()
    printed = capfd.readouterr()
    assert ("步骤 0: 使用profiler计算MFU" in printed.out, "不使用配置中的键" in printed.out) == (chinese, chinese)
    assert ("Step 0: MFU by profiler" in printed.out) == (not chinese)
    assert "FLOPMETER_LANG" not in printed.err
    TrainingMonitor(str(tmp_path), {}).finish()
    assert ("条记录，新记录追加在其后" in capfd.readouterr().err) == chinese


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
        (tmp_path / "training_log.json").unlink(missing_ok=True)
        program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        program.stdout.readline()
        time.sleep(delay)
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        program.stdout.close()
        entries = json.loads((tmp_path / "training_log.json").read_text())
        assert [entry["step"] for entry in entries] == list(range(len(entries)))


def test_a_restart_adds_to_the_log(tmp_path, capfd):
    for start in (0, 2):
        monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=0)
        for step in (start, start + 1):
            monitor.log_step(step, 0, 1.0, 0.5, 1e-3)
        monitor.finish()
    assert [entry["step"] for entry in log_of(monitor)] == [0, 1, 2, 3]
    assert "holds 2 entries of an earlier run; new ones follow" in capfd.readouterr().err


@pytest.mark.parametrize(("text", "kept"), [('[{"step": 7}]', 1), ("[]", 0), ("", 0), ('[{"step": 7', 0), ("{}", 0)])
def test_a_log_of_another_form_is_continued_or_renamed(tmp_path, text, kept):
    file = tmp_path / "training_log.json"
    file.write_text(text)
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=0)
    monitor.log_step(0, 0, 1.0, 0.5, 1e-3)
    monitor.finish()
    assert len(log_of(monitor)) == kept + 1
    renamed = tmp_path / "training_log.json.old"
    assert not renamed.exists() or renamed.read_text() == text
    assert renamed.exists() == (text in ('[{"step": 7', "{}"))


def test_two_monitors_in_one_folder_share_the_log(tmp_path):
    monitors = [TrainingMonitor(str(tmp_path), flops_profile_freq=0) for _ in range(2)]
    for step in range(4):
        monitors[step % 2].log_step(step, 0, 1.0, 0.5, 1e-3)
    for monitor in monitors:
        monitor.finish()
    assert [entry["step"] for entry in log_of(monitors[0])] == [0, 1, 2, 3]


def test_a_log_that_another_program_holds_is_not_waited_for(tmp_path, capfd):
    monitor = TrainingMonitor(str(tmp_path))
    with open(tmp_path / "training_log.json") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        began = time.monotonic()
        monitor.log_step(0, 0, 1.0, 1.0, 0.1)
        assert time.monotonic() - began < 2
    monitor.finish()
    assert "another program holds its lock" in capfd.readouterr().err


@pytest.mark.parametrize("step", [3, 3.0, numpy.int64(3), torch.tensor(3), "3"])
@pytest.mark.parametrize("epoch", [1, numpy.int64(1), torch.tensor(1), 1.0])
def test_numbers_of_any_kind_are_taken(tmp_path, step, epoch):
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=1)
    monitor.log_step(step, epoch, numpy.float32(1.5), "2", [1e-3])
    monitor.finish()
    (entry,) = log_of(monitor)
    assert (entry["step"], entry["epoch"], entry["loss"], entry["grad_norm"], entry["learning_rate"]) == (3, 1, 1.5, 2.0, None)


@pytest.mark.parametrize(("value", "logged"), [(None, None), (0.25, 0.25), (object(), None), (math.nan, None)])
def test_a_fractional_epoch_is_not_an_error(tmp_path, value, logged):
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=1)
    monitor.log_step(object(), value, 1.0, 1.0, 1.0)
    monitor.finish()
    assert [(entry["step"], entry["epoch"]) for entry in log_of(monitor)] == [(0, logged)]


@pytest.mark.parametrize(
    ("mask", "tokens", "samples"),
    [
        (torch.ones(2, 1, 6, 6), 12, 2),
        (torch.ones(2, 6, 6), 12, 2),
        (torch.tensor([[0.0, -1e9, 0.0], [0.0, 0.0, 0.0]]), 6, 2),
        ([1, 1, 0], 2, 1),
        (torch.tensor([1, 1, 0]), 2, 1),
        ([[1, 1], [1, 0]], 3, 2),
        (torch.ones(2, 6, device="meta"), 12, 2),
        ("text", 0, 0),
        ({"full": torch.ones(2, 6)}, 0, 0),
        (torch.tensor(1), 0, 0),
    ],
)
def test_masks_of_any_form(tmp_path, mask, tokens, samples):
    monitor = TrainingMonitor(str(tmp_path), flops_profile_freq=0)
    entry = monitor.log_step(0, 0, 1.0, 1.0, 1.0, mask)
    monitor.finish()
    assert entry["perf/tokens_per_second"] * entry["perf/step_time"] == pytest.approx(tokens)
    assert entry["perf/samples_per_second"] * entry["perf/step_time"] == pytest.approx(samples)


def test_an_unwritable_directory_is_logged_and_training_goes_on(capfd):
    monitor = TrainingMonitor("/proc/nowhere", flops_profile_freq=0)
    assert monitor.log_step(0, 0, 1.0, 0.5, 1e-3)["perf/step_time"] > 0
    monitor.finish()
    assert "training_log.json is not written" in capfd.readouterr().err
