# SPDX-License-Identifier: Apache-2.0
"""The first finding about a loop on the simulated device is the cause that was put into it, and shares sum to 1."""

import json
import subprocess

import pytest
from loops import LOOPS, run
from test_device_time import FLOPMETER, monitored

FAST = ["none", "item_slow_loop", "loader_half", "eager_attention", "copy_pinned", "ddp_slow"]
# Their FLOPs are not known.
NOT_DIAGNOSED = {"graph", "graph_launch_bound"}
BOUND = {"none": "device-bound", "loader_half": "host-bound"}
# Without padding the same step has more tokens; the time per launch depends on the load of the machine.
NO_SPEEDUP = {"accumulate_padding", "launch_bound"}
# Their time outside the steps is worth a finding.
OUT_OF_STEP = {"evaluation", "checkpoint"}


def diagnosed(name, directory):
    """The truth without the profiled steps, and the diagnosis."""
    truth, records = monitored(name, directory, steps=40)
    profiled = {record["step"] - 1 for record in records if record["tag"] == "profile"}
    truth.steps = [step for step in truth.steps if step.index not in profiled]
    done = subprocess.run([FLOPMETER, "diagnose", directory, "--json"], capture_output=True, text=True, check=True)
    return truth, json.loads(done.stdout)


@pytest.mark.parametrize(
    "name",
    [
        name if name in FAST else pytest.param(name, marks=pytest.mark.long)
        for name in LOOPS
        if name not in NOT_DIAGNOSED
    ],
)
def test_the_first_finding_is_the_cause(name, tmp_path):
    _, diagnosis = diagnosed(name, tmp_path)
    assert sum(line["share"] for line in diagnosis["budget"]) == pytest.approx(1)
    assert all(line["share"] >= 0 for line in diagnosis["budget"])
    rules = [finding["rule"] for finding in diagnosis["findings"]]
    expected = name if name in OUT_OF_STEP else LOOPS[name].finding
    assert (rules[:1] == [expected]) if expected else not rules, diagnosis["findings"]
    if name in BOUND:
        assert BOUND[name] in diagnosis["verdict"]
    if name == "loader_half":
        watch = subprocess.run([FLOPMETER, "watch", tmp_path, "--once"], capture_output=True, text=True, check=True)
        assert "host-bound" in watch.stdout


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("loader_half", "eager_attention") else pytest.param(name, marks=pytest.mark.long)
        for name in LOOPS
        if name not in NOT_DIAGNOSED | NO_SPEEDUP and LOOPS[name].finding and LOOPS[name].fix
    ],
)
def test_the_speedup_is_that_of_the_loop_without_the_cause(name, tmp_path):
    truth, diagnosis = diagnosed(name, tmp_path)
    fixed = run(name, steps=40, fixed=True)
    speedup = truth.mean(skip=3).seconds / fixed.mean(skip=3).seconds
    assert diagnosis["findings"][0]["speedup"] == pytest.approx(speedup, rel=0.05)
