# SPDX-License-Identifier: Apache-2.0
"""Unusual programs behave the same under `flopmeter run`: exit status, output, losses, and random state."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAM = os.environ.get("FLOPMETER_BIN", str(HERE.parents[1] / "build" / "flopmeter"))
sys.path.insert(0, str(HERE))
from cases import CASES  # noqa: E402

pytestmark = pytest.mark.torch2("hooks for optimizers")


def start(directory, *prefix):
    command = [*prefix, sys.executable, str(HERE / "driver.py"), str(directory / "results.json")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Of all cases without and with flopmeter, which run at the same time."""
    folders = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("monitored")
    run = [PROGRAM, "run", "--dir", str(folders[1] / "run"), "--no-console", "--"]
    for process in [start(folders[0]), start(folders[1], *run)]:
        output, _ = process.communicate(timeout=900)
        assert process.returncode == 0, output
    return [json.loads((folder / "results.json").read_text()) for folder in folders]


@pytest.fixture(scope="module")
def plain(results):
    return results[0]


@pytest.fixture(scope="module")
def monitored(results):
    return results[1]


@pytest.mark.parametrize("name", CASES)
def test_a_program_runs_as_it_does_without_flopmeter(plain, monitored, name):
    for part in ("status", "output"):
        assert monitored[name][part] == plain[name][part]


def test_most_programs_are_monitored(plain, monitored):
    assert not any(result["monitored"] for result in plain.values())
    missed = sorted(name for name, result in monitored.items() if not result["monitored"])
    assert len(missed) < 0.1 * len(CASES), missed
