# SPDX-License-Identifier: Apache-2.0
"""``flopmeter doctor`` lists what is available and, for what is missing, the reason and what to do."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "flopmeter"


def doctor(*arguments):
    any_width = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run([PROGRAM, "doctor", *arguments], capture_output=True, text=True, timeout=240, env=any_width)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def checks():
    report = json.loads(doctor("--json", "--python", sys.executable))
    assert report["schema"] == "flopmeter.doctor/1"
    return {check["name"]: check for check in report["checks"]}


def test_every_line_has_a_detail(checks):
    assert all(check["detail"] for check in checks.values())
    assert all(check["recommendation"] is None for check in checks.values() if check["ok"])


def test_torch_and_its_adapter_are_found(checks):
    torch = pytest.importorskip("torch")
    assert checks["torch"] == {"name": "torch", "ok": True, "detail": torch.__version__, "recommendation": None}
    assert checks["torch adapter"]["ok"]
    assert checks["GPUs in torch"]["ok"] == torch.cuda.is_available()


LIBRARIES = {"NVML": "libnvidia-ml.so.1", "MPI": "libmpi.so.40", "MPI adapter": PROGRAM.resolve().parent / "libflopmeter_mpi.so.0"}


@pytest.mark.parametrize(("name", "file"), LIBRARIES.items())
def test_libraries_are_available_if_they_load(checks, name, file):
    try:
        ctypes.CDLL(file)
    except OSError:
        assert not checks[name]["ok"] and Path(file).name in checks[name]["detail"] and checks[name]["recommendation"]
    else:
        assert checks[name]["ok"]


def test_a_python_that_does_not_run_is_reported_without_a_failure():
    lines = doctor("--python", "/no/such/python").splitlines()
    assert lines[0].startswith("missing") and "/no/such/python" in lines[0] and "--python" in lines[0]
    assert len(lines) > 5
