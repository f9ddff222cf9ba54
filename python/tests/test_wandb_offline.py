# SPDX-License-Identifier: Apache-2.0
"""Real W&B, offline: the six keys, their axis, and no lost rows of the user."""

import time

import flopmeter
import pytest
from wandb_file import read_run

pytest.importorskip("wandb")
KEYS = {
    "perf/mfu",
    "perf/mfu_percent",
    "perf/step_time",
    "perf/steps_per_second",
    "perf/tokens_per_second",
    "perf/samples_per_second",
}


def steps(monitor, number, after=lambda step: None):
    for step in range(number):
        with monitor.step(tokens=10, samples=2, flops=1000):
            time.sleep(0.001)
        after(step)


def test_values_join_the_rows_of_the_user_and_none_is_lost(run, tmp_path):
    monitor = flopmeter.Monitor(tmp_path / "run", console=False, peak_tflops=1.0)

    def log(step):
        time.sleep(0.1)  # longer than a record needs to arrive
        run.log({"loss": 1.0}, step=step)

    steps(monitor, 4, log)
    monitor.finish()
    run.finish()
    rows, metrics = read_run(tmp_path / "wandb")
    assert [row["loss"] for row in rows if "loss" in row] == [1.0] * 4
    assert sum(set(row) > KEYS for row in rows) >= 3
    assert metrics["perf/*"].step_metric == "flopmeter/step"


def test_separate_rows_on_request(run, tmp_path):
    monitor = flopmeter.Monitor(tmp_path / "run", console=False, peak_tflops=1.0, wandb=True)
    steps(monitor, 5)
    monitor.finish()
    run.finish()
    rows, _ = read_run(tmp_path / "wandb")
    assert [row["flopmeter/step"] for row in rows] == [1, 2, 3, 4, 5]
    assert all(set(row) == KEYS | {"flopmeter/step"} for row in rows)
    assert all(row["perf/mfu_percent"] == pytest.approx(100 * row["perf/mfu"]) for row in rows)


def test_disabled_it_logs_nothing(run, tmp_path):
    monitor = flopmeter.Monitor(tmp_path / "run", console=False, wandb=False)
    steps(monitor, 2)
    monitor.finish()
    run.finish()
    assert read_run(tmp_path / "wandb")[0] == []


def test_the_training_monitor_logs_the_six_keys_and_can_skip(run, tmp_path):
    monitor = flopmeter.compat.TrainingMonitor(str(tmp_path / "out"))
    monitor.log_step(0, 0, 1.5, 0.1, 1e-3)
    monitor.log_step(1, 0, 1.4, 0.1, 1e-3, skip_wandb=True)
    monitor.log_step(2, 0, 1.3, 0.1, 1e-3)
    monitor.finish()
    run.finish()
    rows, _ = read_run(tmp_path / "wandb")
    assert [row["flopmeter/step"] for row in rows] == [0, 2]
    assert all(set(row) > KEYS for row in rows)
    assert [row["train/loss"] for row in rows] == [1.5, 1.3]
