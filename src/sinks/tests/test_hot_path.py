# SPDX-License-Identifier: Apache-2.0
"""The cost of a step on the training thread: no system call (strace) and few instructions (callgrind)."""

import re
import shutil
import subprocess

import pytest
from conftest import ROOT

STEPS = 2000  # of the program in quiet mode
MOST_INSTRUCTIONS = 4000  # for begin, six phase marks, and end


@pytest.fixture
def program():
    return str(ROOT / "build" / "release" / "src" / "monitor" / "flopmeter_hot_path")


def test_a_step_takes_few_instructions(program, tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=one_step*", f"--callgrind-out-file={tmp_path / 'out'}", program, "negative"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    a_step = int(re.search(r"Collected : (\d+)", done.stderr)[1]) / STEPS
    print(f"{a_step:.0f} instructions per step")
    assert 100 < a_step < MOST_INSTRUCTIONS


def test_steps_make_no_system_call(program, tmp_path):
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    log = tmp_path / "strace"
    done = subprocess.run(["strace", "-f", "-o", str(log), program, "negative"], capture_output=True, text=True, timeout=300)
    if "Operation not permitted" in done.stderr:
        pytest.skip("tracing is not permitted here")
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines()
    main = lines[0].split()[0]
    mine = [line for line in lines if line.split()[0] == main and "getppid resumed" not in line]
    marks = [i for i, line in enumerate(mine) if re.search(r"\bgetppid\(", line)]
    assert len(marks) == 2, "the program marks where its steps begin and end"
    assert mine[marks[0] + 1 : marks[1]] == []
    assert any("write(" in line for line in lines if line.split()[0] != main), "the other thread writes"
