# SPDX-License-Identifier: Apache-2.0
"""Device times of the monitor against the truth of the simulated device.

Host times would be wrong here: the host runs ahead of the device, and waits for it at other places than the device works.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import flopmeter
import pytest
import training
from loops import ALL_LOOPS, run

HERE = Path(__file__).parent
FLOPMETER = HERE.parents[1] / "build" / "flopmeter"
PEAK_TFLOPS = 100
FAST = ["none", "item10", "loader_exposed", "copy_pageable", "ddp_slow", "reduce_overlap", "evaluation"]
# Step 1 may begin before the device is known.
SETTLED = 2
# Phases of the loops and those of a record.
PHASES = {
    "data": ["data"],
    "forward": ["forward"],
    "backward": ["backward", "communication"],
    "optimizer": ["optimizer"],
}
# The host of a tiny model works in the time that other programs leave it.  A prefetcher waits for its copies before it
# fetches a batch, which ends a step of the monitor: the wait is in another step than the loop's.
UNCOMPARED = ("launch_bound", "graph_launch_bound", "no_delay_kernel", "slow_prefetch")
# The clocks of host and device are compared once per second, and each reading takes some time.
TOLERANCE = 50e-6


def loops(*left_out):
    names = [name for name in ALL_LOOPS if name not in left_out]
    return [name if name in FAST else pytest.param(name, marks=pytest.mark.long) for name in names]


def records_of(directory):
    lines = "".join(file.read_text() for file in sorted(Path(directory).glob("records_*.jsonl"))).splitlines()
    return [json.loads(line) for line in lines]


def monitored(name, directory, steps=12, marks_steps=False, **changes):
    """The truth about a monitored loop and its records.  The loader is wrapped, or the loop marks its steps."""
    monitors = []

    def wrap(model, optimizer, loader):
        monitors.append(flopmeter.Monitor(str(directory), model=model, peak_tflops=PEAK_TFLOPS, console=False))
        return loader if marks_steps else monitors[0].wrap(loader)

    if marks_steps:
        changes["in_step"] = lambda: monitors[0].step()
    truth = run(name, steps=steps, wrap=wrap, **changes)
    monitors[0].finish()
    return truth, records_of(directory)


def launched(name, directory, steps=12):
    """The same under `flopmeter run`."""
    directory.mkdir(exist_ok=True)
    truth = directory / "truth.json"
    command = [FLOPMETER, "run", "--dir", directory / "run", "--peak", PEAK_TFLOPS, "--no-console", "--"]
    command += [sys.executable, HERE / "run_loop.py", name, "--steps", steps, "--truth", truth]
    result = subprocess.run([str(part) for part in command], timeout=300, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(truth.read_text(), object_hook=lambda value: SimpleNamespace(**value)), records_of(directory / "run")


def passes_once(attempt, directory, tries=3):
    """A host that loses its processor between a mark of the loop and that of the monitor makes them differ."""
    for number in range(1, tries + 1):
        try:
            return attempt(directory / str(number))
        except AssertionError:
            if number == tries:
                raise


def phase_of(true, name):
    phases = true.phases if isinstance(true.phases, dict) else vars(true.phases)
    return phases.get(name, 0)


def check(truth, records):
    steps = [record for record in records if record["tag"] in ("train", "profile") and record["step"] >= SETTLED]
    assert len(steps) >= len(truth.steps) - SETTLED
    for record in steps:
        true = truth.steps[record["step"] - 1]
        assert record["time_source"] == "device"
        assert record["step_seconds"] == pytest.approx(true.seconds, rel=0.01)
        assert record["hfu"] == pytest.approx(true.flops / PEAK_TFLOPS / 1e12 / true.seconds, rel=0.01)
        for phase, names in PHASES.items():
            found = sum(record["phases"].get(each) or 0 for each in names)
            assert found == pytest.approx(phase_of(true, phase), abs=0.02 * true.seconds), phase
        # Time that the events of a profile take themselves is idle for the simulated device.
        if record["tag"] == "train" or truth.settings["event_device_us"] == 0:
            assert record["device_idle_min_seconds"] <= true.idle + TOLERANCE
            assert record["device_idle_max_seconds"] >= true.idle - TOLERANCE
        for name, exposed in (("communication", true.communication), ("copy", true.copies)):
            found = record[f"exposed_{name}_seconds"] or 0
            assert found == pytest.approx(exposed, abs=0.02 * true.seconds), name
        assert 0 <= record["mfu"] <= record["hfu"] <= 1


@pytest.mark.parametrize("name", loops(*UNCOMPARED))
def test_steps_and_phases_have_the_times_of_the_device(name, tmp_path):
    passes_once(lambda directory: check(*monitored(name, directory)), tmp_path)


def optimizer_steps(truth):
    """Device seconds of the phases of each step, where a step ends with the optimizer."""
    steps = [{}]
    for mark, following in zip(truth.marks, truth.marks[1:]):
        if mark.name == "loop":
            steps.append({})
        if mark.name not in ("evaluation", "checkpoint"):
            steps[-1][mark.name] = steps[-1].get(mark.name, 0) + (following.device - mark.device) / 1e9
    return steps[:-1]  # the last one has no optimizer


# Without a wrapped loader a step ends with the optimizer, not with the loop's body.
@pytest.mark.parametrize(
    "name",
    [
        "item10",
        *(pytest.param(each, marks=pytest.mark.long) for each in ALL_LOOPS if each not in ("item10", *UNCOMPARED)),
    ],
)
def test_a_launched_program_has_the_times_of_the_device(name, tmp_path):
    passes_once(lambda directory: check_launched(*launched(name, directory)), tmp_path)


def check_launched(truth, records):
    steps = [record for record in records if record["tag"] in ("train", "profile", "compile")][SETTLED:]
    true = optimizer_steps(truth)[SETTLED:]
    assert [record["time_source"] for record in steps] == ["device"] * len(true)
    assert records[0]["mfu"] is None or records[0]["time_source"] == "device"
    for record, phases in zip(steps, true):
        total = sum(phases.values())
        assert record["step_seconds"] == pytest.approx(total, rel=0.01)
        for phase, names in PHASES.items():
            found = sum(record["phases"].get(each) or 0 for each in names)
            assert found == pytest.approx(phases.get(phase, 0), abs=0.02 * total), phase


@pytest.mark.parametrize("name", ["launch_bound", "graph_launch_bound"])
def test_steps_of_a_tiny_model_have_the_times_of_the_device(name, tmp_path):
    truth, records = monitored(name, tmp_path)
    assert {record["time_source"] for record in records[1:]} == {"device"}
    # Between the loop's mark and ours the host may lose its processor, and the device of a tiny model then waits.
    steps = [(record, truth.steps[record["step"] - 1]) for record in records[1:] if record["tag"] == "train"]
    assert statistics.median(record["step_seconds"] / true.seconds for record, true in steps) == pytest.approx(1, rel=0.01)
    # Backward ends in a thread of autograd: how long the training thread then takes to wake up is not part of it here.
    for phase, names in PHASES.items():
        if phase == "backward":
            continue
        errors = [
            (sum(record["phases"].get(each) or 0 for each in names) - phase_of(true, phase)) / true.seconds
            for record, true in steps
        ]
        assert statistics.median(errors) == pytest.approx(0, abs=0.03), phase


# Copies of a micro-batch: inputs and labels, with padding a mask. Events of the clocks' comparison are on another stream.
@pytest.mark.parametrize(
    ("name", "micro_batches", "waits"), [("none", 1, 2), ("item1", 1, 3), ("accumulate", 6, 12), ("accumulate_split", 4, 2)]
)
def test_a_step_has_at_most_10_events_and_some_per_micro_batch_and_wait(name, micro_batches, waits, tmp_path):
    truth, records = monitored(name, tmp_path)
    # A profile ends when the next batch is fetched.
    profiled = {step for record in records if record["tag"] == "profile" for step in (record["step"], record["step"] + 1)}
    begins = [mark.host for mark in truth.marks if mark.name == "step"]
    for step, (begin, end) in enumerate(zip(begins, begins[1:]), start=1):
        calls = [call for call in truth.calls if call.name == "record_event" and call.stream == 0 and begin <= call.begin < end]
        if step not in profiled and step >= SETTLED:  # how many micro-batches a step has is not known before
            assert len(calls) <= 10 + 3 * (micro_batches - 1) + 2 * waits


@pytest.mark.parametrize("name", ["none", "evaluation"])
@pytest.mark.long
def test_marked_steps_have_the_times_of_the_device(name, tmp_path):
    passes_once(lambda directory: check(*monitored(name, directory, marks_steps=True)), tmp_path)


@pytest.mark.parametrize("name", ["none", "clip_item", "loader_half", "ddp_slow", "accumulate", "loss_outside"])
@pytest.mark.long
def test_marked_phases_have_the_times_of_the_device(name, tmp_path, monkeypatch):
    """The loop marks its steps and all of its phases."""
    plain_mark = training.mark
    current = contextlib.ExitStack()

    def mark(phase):
        current.close()
        plain_mark(phase)
        if phase in PHASES:
            current.enter_context(monitors[-1].phase(phase))

    monitors = []
    make_monitor = flopmeter.Monitor

    def remembered(*arguments, **options):
        monitors.append(make_monitor(*arguments, **options))
        return monitors[-1]

    monkeypatch.setattr(training, "mark", mark)
    monkeypatch.setattr(flopmeter, "Monitor", remembered)
    passes_once(lambda directory: check(*monitored(name, directory, marks_steps=True)), tmp_path)


def test_a_device_with_other_names_and_without_optional_functions_is_timed(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import test_device_time as test\n"
        "test.passes_once(lambda directory: test.check(*test.monitored('ddp_slow', directory)), Path(sys.argv[2]))\n"
    )
    settings = {"busy_pool_streams": 32, "capture_state": 0, "delay_kernel": 0, "event_latency": 0, "events_in_queue": 1}
    environment = {
        **os.environ,
        "SIMGPU_NAME": "other",
        "SIMGPU_COLLECTIVES": "otherccl",
        "SIMGPU_SETTINGS": json.dumps(settings),
    }
    subprocess.run([sys.executable, "-c", script, str(HERE), str(tmp_path)], check=True, timeout=200, env=environment)


@pytest.mark.parametrize("name", ["evaluation", "checkpoint"])
def test_out_of_step_phases_have_the_times_of_the_device(name, tmp_path):
    truth, records = monitored(name, tmp_path)
    found = [record["step_seconds"] for record in records if record["tag"] == name]
    assert found == pytest.approx([activity.seconds for _, activity, _ in truth.out_of_step], rel=0.05)


@pytest.mark.parametrize("name", ["none", "graph", pytest.param("ddp_fast", marks=pytest.mark.long)])
def test_the_monitor_neither_synchronizes_nor_queries_during_capture(name, tmp_path):
    ours, plain = monitored(name, tmp_path)[0].counters(), run(name, steps=12).counters()
    added = {call for call in ours if ours[call] != plain.get(call, 0)}
    assert added <= {"record_event", "query_event", "elapsed_time"}


@pytest.mark.parametrize("name", ["none", "clip_item", "graph"])
def test_losses_are_the_same_with_and_without_the_monitor(name, tmp_path):
    assert monitored(name, tmp_path, steps=5, values=True)[0].losses == run(name, steps=5, values=True).losses


def test_a_device_that_does_not_time_events_has_no_mfu_per_step(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import test_device_time as test\n"
        "_, records = test.monitored('item10', Path(sys.argv[2]), elapsed_time=0)\n"
        "assert all(r.get('time_source') is None and r.get('mfu') is None for r in records[1:]), records[1]\n"
        "assert all(r['ideal_seconds'] > 0 and not r['phases'] for r in records[1:])\n"
    )
    subprocess.run([sys.executable, "-c", script, str(HERE), str(tmp_path)], check=True, timeout=200)


def test_slow_events_are_recorded_at_the_ends_of_steps_only(tmp_path):
    def attempt(directory):
        truth, records = monitored("none", directory, steps=24, event_host_us=100)
        last = records[-1]
        assert last["step_seconds"] == pytest.approx(truth.steps[last["step"] - 1].seconds, rel=0.01)
        assert not last["phases"]

    passes_once(attempt, tmp_path)
