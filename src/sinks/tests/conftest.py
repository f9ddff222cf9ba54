# SPDX-License-Identifier: Apache-2.0
"""Runs the C++ example and passes its run directory to the real reader of each format."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def find_example() -> pathlib.Path:
    named = os.environ.get("FLOPMETER_EXAMPLE")
    if named:
        return pathlib.Path(named)
    for preset in ("release", "dev", "."):
        path = ROOT / "build" / preset / "examples" / "cpp_no_torch" / "monitor_example"
        if path.exists():
            return path
    pytest.skip("monitor_example is not built")


def only(directory, pattern):
    """The only file with that name."""
    found = sorted(directory.glob(pattern))
    assert len(found) == 1, found
    return found[0]


def load_events(folder):
    """The data that TensorBoard reads from a directory."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return events


@pytest.fixture(scope="session")
def example():
    path = find_example()

    def run(directory, *arguments, check=True, environment=None):
        command = [str(path), "--perf-log-dir", str(directory), *map(str, arguments)]
        variables = {**os.environ, **(environment or {})}
        return subprocess.run(command, check=check, capture_output=True, text=True, errors="surrogateescape", env=variables, timeout=120)

    return run


@pytest.fixture(scope="session")
def run_directory(example, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    example(directory, "--steps", 100, "--milliseconds", 2, "--perf-breakdown", "--tensorboard", "--perf-csv",
            "--perf-sink", "training_log", "--perf-prometheus-file", directory / "metrics.prom")
    return directory
