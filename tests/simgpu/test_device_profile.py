# SPDX-License-Identifier: Apache-2.0
"""The operator profile of a device against the kernels that the simulated device ran in the profiled step."""

import json

import pytest
from test_device_time import monitored

KINDS = {"compute": lambda kernel: kernel.flops > 0, "memory": lambda kernel: kernel.kind == "kernel" and kernel.flops == 0}


def profiled(name, directory, **changes):
    """The truth about a loop, its only operator profile, and the kernels of the profiled step."""
    truth, _ = monitored(name, directory, **changes)
    (line,) = "".join(file.read_text() for file in directory.glob("op_profile_*")).splitlines()
    profile = json.loads(line)
    begins = [mark.log_size for mark in truth.marks if mark.name == "step"]
    first, last = begins[profile["step"] - 1 : profile["step"] + 1]
    kernels = [kernel for kernel in truth.kernels[first:last] if kernel.name != "spin_kernel"]
    return truth, profile, kernels


def seconds(rows, kind):
    return sum(row["self_seconds"] for row in rows if row["kind"] == kind)


def check(profile, kernels):
    assert profile["device_times"]
    for kind, matches in KINDS.items():
        true = sum(kernel.end - kernel.start for kernel in kernels if matches(kernel)) / 1e9
        assert seconds(profile["rows"], kind) == pytest.approx(true, rel=0.02), kind


@pytest.mark.parametrize(
    "name",
    ["none", "launch_bound", *(pytest.param(name, marks=pytest.mark.long) for name in ("item1", "loader_half", "compile"))],
)
def test_a_profile_has_the_times_of_the_kernels(name, tmp_path):
    _, profile, kernels = profiled(name, tmp_path)
    check(profile, kernels)
    assert seconds(profile["rows"], "unknown") == 0


def test_a_profile_separates_operators_by_shape(tmp_path):
    _, profile, kernels = profiled("eager_attention", tmp_path)
    (softmax,) = [row for row in profile["rows"] if row["name"] == "aten::_softmax"]
    true = sum(kernel.end - kernel.start for kernel in kernels if kernel.name == "_softmax") / 1e9
    assert (softmax["shape"], softmax["calls"]) == ("[4,12,1024,1024]", 4)
    assert softmax["self_seconds"] == pytest.approx(true, rel=0.01)


def test_a_profile_separates_exposed_communication(tmp_path):
    truth, profile, kernels = profiled("ddp_slow", tmp_path)
    check(profile, kernels)
    exposed = truth.steps[profile["step"] - 1].communication
    assert seconds(profile["rows"], "communication") == pytest.approx(exposed, rel=0.02)


def test_the_time_of_events_is_subtracted(tmp_path):
    _, profile, kernels = profiled("none", tmp_path, event_device_us=2)
    check(profile, kernels)
