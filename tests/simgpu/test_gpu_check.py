# SPDX-License-Identifier: Apache-2.0
"""The script for users with a GPU works on the simulated device."""

import json
import runpy
import sys
from pathlib import Path

import pytest


def test_the_check_agrees_with_the_events_of_the_device(tmp_path, monkeypatch):
    report = tmp_path / "report.json"
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--device", "simgpu", "--steps", "8", "-o", str(report)])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(Path(__file__).parents[2] / "tools" / "gpu_check.py"), run_name="__main__")
    found = json.loads(report.read_text())
    assert end.value.code == 0, found
    assert found["kernels"]["kernel_ms_per_step"] == pytest.approx(found["times"]["step_ms"], rel=0.02)
