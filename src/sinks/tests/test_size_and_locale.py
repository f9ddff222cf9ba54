# SPDX-License-Identifier: Apache-2.0
"""The size of a run, and the independence of its numbers from a German locale."""

import json
import os
import shutil
import subprocess
import sys

import pytest

FLAGSCALE_STEP_SECONDS = 0.25  # of its documentation's sample


def test_an_hour_with_flagscale_defaults_takes_10_to_50_megabytes(example, tmp_path):
    def written(steps):
        directory = tmp_path / str(steps)
        example(directory, "--steps", steps, "--enable-perf-monitor", "--perf-memory-tracking", "--perf-breakdown")
        return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())

    a_step = (written(600) - written(200)) / 400
    megabytes = a_step * 3600 / FLAGSCALE_STEP_SECONDS / 1e6
    assert 10 <= megabytes <= 50, f"{megabytes:.1f} MB per hour, {a_step:.0f} bytes per step"


PROGRAM = """
import locale, sys
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.format_string("%.1f", 1.5) == "1,5"
import flopmeter
with flopmeter.Monitor(sys.argv[1], peak_tflops=0.5, console=False, csv=True, sinks=["training_log"], prometheus_file=sys.argv[1] + "/metrics.prom") as m:
    for i in range(20):
        with m.step(tokens=1000, samples=4, flops=123456789, loss=0.5):
            pass
"""


def test_a_german_machine_writes_the_same_numbers(tmp_path):
    if shutil.which("localedef") is None:
        pytest.skip("localedef is not installed")
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")], capture_output=True)
    if made.returncode != 0:
        pytest.skip("the German locale's source is not installed")
    directory = tmp_path / "run"
    environment = {**os.environ, "LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}
    subprocess.run([sys.executable, "-c", PROGRAM, str(directory)], check=True, env=environment, timeout=120)
    rows = [json.loads(line) for line in next(directory.glob("records_*.jsonl")).read_text().splitlines()]
    assert len(rows) == 20 and all(row["loss"] == 0.5 and row["mfu"] > 0 for row in rows)
    assert json.loads((directory / "training_log.json").read_text())[0]["loss"] == 0.5
    assert json.loads(next(directory.glob("perf_summary_*.json")).read_text())["iteration_logs"][0]["TFLOPS_per_GPU"] > 0
    header, first, *_ = next(directory.glob("records_*.csv")).read_text().splitlines()
    assert first.count(",") == header.count(",")
    done = subprocess.run(["promtool", "check", "metrics"], input=(directory / "metrics.prom").read_bytes(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "." in next(directory.glob("perf_metrics_*.log")).read_text().splitlines()[-1]
