# SPDX-License-Identifier: Apache-2.0
"""Our NVML declarations equal NVIDIA's Python package: sizes, offsets, and constants."""

import ctypes
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_sizes_and_constants_equal_those_of_nvidia_ml_py():
    pynvml = pytest.importorskip("pynvml")
    program = ROOT / "build" / "release" / "src" / "telemetry" / "flopmeter_nvml_layout"
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    kinds = set()
    for line in lines:
        kind, name, value = line.split()
        kinds.add(kind)
        if kind == "sizeof":
            theirs = ctypes.sizeof(getattr(pynvml, name))
        elif kind == "offsetof":
            structure, field = name.split(".")
            theirs = getattr(getattr(pynvml, structure), field).offset
        else:
            theirs = getattr(pynvml, name)
            theirs = getattr(theirs, "value", theirs)
        assert int(value) == theirs, line
    assert len(lines) >= 20 and kinds == {"sizeof", "offsetof", "constant"}
