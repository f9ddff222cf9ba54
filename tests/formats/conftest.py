# SPDX-License-Identifier: Apache-2.0
"""Runs the C++ example and hands its run directory to the real readers of each format."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find_example() -> pathlib.Path:
    named = os.environ.get("FLOPMETER_EXAMPLE")
    if named:
        return pathlib.Path(named)
    for preset in ("release", "dev", "."):
        path = ROOT / "build" / preset / "examples" / "cpp_no_torch" / "monitor_example"
        if path.exists():
            return path
    pytest.skip("monitor_example is not built")


@pytest.fixture(scope="session")
def example():
    path = find_example()

    def run(directory, *arguments, check=True):
        command = [str(path), "--perf-log-dir", str(directory), *map(str, arguments)]
        return subprocess.run(command, check=check, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="session")
def run_directory(example, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    example(directory, "--steps", 100, "--milliseconds", 2, "--perf-breakdown", "--tensorboard", "--perf-csv",
            "--perf-sink", "training_log", "--perf-prometheus-file", directory / "metrics.prom")
    return directory
