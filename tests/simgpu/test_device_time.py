# SPDX-License-Identifier: Apache-2.0
"""Device times of the monitor against the truth of the simulated device.

Host times would be wrong here: the host runs ahead of the device, and waits for it at other places than the device works.
"""

import json
from pathlib import Path

import flopmeter
import pytest
from loops import LOOPS, run

FAST = ["none", "item10", "loader_exposed", "copy_pinned", "ddp_slow", "evaluation"]
# The first steps run before the device is known and while the queue fills.
SETTLED = 2
# Phases of the loops and those of a record.
PHASES = {
    "data": ["data"],
    "forward": ["forward"],
    "backward": ["backward", "communication"],
    "optimizer": ["optimizer"],
}


def records_of(directory):
    lines = "".join(file.read_text() for file in sorted(Path(directory).glob("records_*.jsonl"))).splitlines()
    return [json.loads(line) for line in lines]


def monitored(name, directory, steps=12, **changes):
    """The truth about a monitored loop and its records."""
    monitors = []

    def wrap(model, optimizer, loader):
        monitors.append(flopmeter.Monitor(str(directory), model=model, peak_tflops=100, console=False))
        return monitors[0].wrap(loader)

    truth = run(name, steps=steps, wrap=wrap, **changes)
    monitors[0].finish()
    return truth, records_of(directory)


@pytest.mark.parametrize("name", [n if n in FAST else pytest.param(n, marks=pytest.mark.long) for n in LOOPS])
def test_steps_and_phases_have_the_times_of_the_device(name, tmp_path):
    truth, records = monitored(name, tmp_path)
    steps = [r for r in records if r["tag"] == "train"]
    for record in steps[SETTLED:]:
        true = truth.steps[record["step"] - 1]
        assert record["time_source"] == "device"
        assert record["step_seconds"] == pytest.approx(true.seconds, rel=0.01)
        for phase, names in PHASES.items():
            found = sum(record["phases"][n] or 0 for n in names)
            assert found == pytest.approx(true.phases.get(phase, 0), abs=0.02 * true.seconds), phase
