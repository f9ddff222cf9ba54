# SPDX-License-Identifier: Apache-2.0
"""The training thread makes no system call between two steps: shown by tracing it."""

import re
import shutil
import subprocess

import pytest
from conftest import ROOT


def test_steps_make_no_system_call(tmp_path):
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    program = ROOT / "build" / "release" / "monitor" / "flopmeter_hot_path"
    if not program.exists():
        pytest.skip("flopmeter_hot_path is not built")
    log = tmp_path / "strace"
    done = subprocess.run(["strace", "-f", "-o", str(log), str(program), "quiet"], capture_output=True, text=True, timeout=300)
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
