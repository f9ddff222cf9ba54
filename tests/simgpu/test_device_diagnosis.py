# SPDX-License-Identifier: Apache-2.0
"""The first finding about a loop on the simulated device is the cause that was put into it, and shares sum to 1."""

import json
import subprocess

import pytest
from loops import ALL_LOOPS, run
from test_device_time import FLOPMETER, SETTLED, launched, monitored, passes_once

FAST = ["none", "item_slow_loop", "loader_half", "eager_attention", "copy_pinned", "ddp_slow"]
BOUND = {"none": "device-bound", "loader_half": "host-bound"}
# Without padding the same step has more tokens; the time per launch depends on the load of the machine.
NO_SPEEDUP = {"accumulate_padding", "launch_bound", "no_delay_kernel"}
# Their time outside the steps is worth a finding.
OUT_OF_STEP = {"evaluation", "checkpoint"}


# Causes of the budget and those of the truth; the rest is the time in which the device computes.
IDLE = {"synchronization": "synchronization", "loop": "loop", "launch": "launch_overhead"}
DATA = ("data_loading", "cpu_bound")
# The time of matmuls is that of useful math and of what it takes longer than at peak.
KERNELS = {"matmul": "useful", "memory": "memory_bound", "optimizer": "optimizer"}
# The share of the step from which on a finding may name a cause.
REAL = 0.025


def diagnosis_of(directory, *options):
    command = [FLOPMETER, "diagnose", directory, "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def diagnosed(name, directory):
    """The truth without the profiled steps, and the diagnosis."""
    truth, records = monitored(name, directory, steps=40)
    trained = {record["step"] - 1 for record in records if record["tag"] == "train"}
    truth.steps = [step for step in truth.steps if step.index in trained]
    return truth, diagnosis_of(directory)


def as_dict(value):
    return value if isinstance(value, dict) else vars(value)


def check_causes(name, steps, diagnosis):
    """Each cause within 3 % of the step.  Returns the true shares."""
    total = sum(step.seconds for step in steps)
    causes = ("host_to_device", "communication", "unexplained", *DATA[:1], *IDLE.values(), *KERNELS.values())
    true = dict.fromkeys(causes, 0.0)
    for step in steps:
        true["host_to_device"] += step.copies
        true["communication"] += step.communication
        for cause, seconds in as_dict(step.idle_by).items():
            true[IDLE.get(cause, DATA[0])] += seconds
        for kind, seconds in as_dict(step.kernels).items():
            true[KERNELS[kind]] += seconds
    found = dict.fromkeys(true, 0.0)
    for line in diagnosis["budget"]:
        cause = {"cpu_bound": "data_loading", "matmul_inefficiency": "useful"}.get(line["cause"], line["cause"])
        if cause in found:
            found[cause] += line["share"]
    if any(line["cause"] == "padding" for line in diagnosis["budget"]):  # it takes a part of each kernel
        for cause in KERNELS.values():
            found.pop(cause)
    elif ALL_LOOPS[name].changes.get("graph"):  # the kernels of a replay cannot be distinguished
        found["useful"] += found.pop("memory_bound") + found.pop("unexplained")
        assert diagnosis["missing_signals"]
        true["useful"] += true["memory_bound"]
    for cause, share in found.items():
        assert share == pytest.approx(true[cause] / total, abs=0.03), cause
    return {cause: seconds / total for cause, seconds in true.items() if cause not in KERNELS.values()}


def check_findings(name, diagnosis, shares):
    """The cause of the loop comes first.  Without one, only time that a busy host really lost may be found."""
    assert sum(line["share"] for line in diagnosis["budget"]) == pytest.approx(1)
    assert all(line["share"] >= 0 for line in diagnosis["budget"])
    rules = [finding["rule"] for finding in diagnosis["findings"]]
    expected = name if name in OUT_OF_STEP else ALL_LOOPS[name].finding
    if expected:
        assert rules[0] == expected, diagnosis["findings"]
    else:
        assert all(shares.get(DATA[0] if rule in DATA else rule, 0) >= REAL for rule in rules), diagnosis["findings"]


def mostly_long(fast, names):
    return [name if name in fast else pytest.param(name, marks=pytest.mark.long) for name in names]


@pytest.mark.parametrize("name", mostly_long(FAST, ALL_LOOPS))
def test_the_first_finding_is_the_cause(name, tmp_path):
    def attempt(directory):
        truth, diagnosis = diagnosed(name, directory)
        check_findings(name, diagnosis, check_causes(name, truth.steps, diagnosis))
        if name in BOUND:
            assert BOUND[name] in diagnosis["verdict"]
        if name == "loader_half":
            watch = subprocess.run([FLOPMETER, "watch", directory, "--once"], capture_output=True, text=True, check=True)
            assert "host-bound" in watch.stdout

    passes_once(attempt, tmp_path)


@pytest.mark.parametrize("name", ALL_LOOPS)
@pytest.mark.long
def test_the_first_finding_about_a_launched_program_is_the_cause(name, tmp_path):
    def attempt(directory):
        truth, records = launched(name, directory, steps=40)
        profiled = {record["step"] for record in records if record["tag"] == "profile"}
        # The first record begins inside the first step of the program, when the device is known.
        diagnosis = diagnosis_of(directory / "run", "--steps", str(len(records) - SETTLED))
        # A step of the program begins after that of a record: half of it belongs to the next one.
        near = profiled | {step + 1 for step in profiled}
        shares = check_causes(name, [step for step in truth.steps[SETTLED:] if step.index + 1 not in near], diagnosis)
        check_findings(name, diagnosis, shares)

    passes_once(attempt, tmp_path)


@pytest.mark.parametrize(
    "name",
    mostly_long(
        ("loader_half", "eager_attention"),
        [name for name in ALL_LOOPS if name not in NO_SPEEDUP and ALL_LOOPS[name].finding and ALL_LOOPS[name].fix],
    ),
)
def test_the_speedup_is_that_of_the_loop_without_the_cause(name, tmp_path):
    def attempt(directory):
        truth, diagnosis = diagnosed(name, directory)
        fixed = run(name, steps=40, fixed=True)
        speedup = truth.mean(skip=3).seconds / fixed.mean(skip=3).seconds
        assert diagnosis["findings"][0]["speedup"] == pytest.approx(speedup, rel=0.05)

    passes_once(attempt, tmp_path)
