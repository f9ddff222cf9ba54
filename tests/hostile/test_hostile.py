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


def results(directory, *prefix):
    target = directory / "results.json"
    command = [*prefix, sys.executable, str(HERE / "driver.py"), str(target)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(target.read_text())


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return results(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def monitored(tmp_path_factory):
    directory = tmp_path_factory.mktemp("monitored")
    return results(directory, PROGRAM, "run", "--dir", str(directory / "run"), "--no-console", "--")


@pytest.mark.parametrize("name", CASES)
def test_a_program_runs_as_it_does_without_flopmeter(plain, monitored, name):
    for part in ("status", "output"):
        assert monitored[name][part] == plain[name][part]


def test_most_programs_are_monitored(plain, monitored):
    assert not any(result["monitored"] for result in plain.values())
    missed = sorted(name for name, result in monitored.items() if not result["monitored"])
    assert len(missed) < 0.1 * len(CASES), missed
