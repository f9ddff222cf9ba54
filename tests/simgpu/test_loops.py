# SPDX-License-Identifier: Apache-2.0
"""The loops and the truth about them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import simgpu
import torch
from loops import LOOPS, run

HERE = Path(__file__).parent
FAST = ["none", "item1", "copy_pinned", "ddp_slow", "accumulate_padding", "evaluation", "graph"]


@pytest.mark.parametrize("name", [n if n in FAST else pytest.param(n, marks=pytest.mark.long) for n in LOOPS])
def test_the_parts_of_each_step_sum_to_its_time(name):
    truth = run(name, steps=5)
    assert len(truth.steps) == 5
    for step in truth.steps:
        assert step.busy + step.communication + step.copies + step.idle == pytest.approx(step.seconds, abs=1e-6)
        assert sum(step.idle_by.values()) == pytest.approx(step.idle, abs=1e-6)
        assert sum(step.phases.values()) == pytest.approx(step.seconds, abs=1e-6)
    busy = [step.busy for step in truth.steps[1:]]
    assert max(busy) - min(busy) < 1e-6


def test_the_device_does_the_same_work_on_a_loaded_machine():
    quiet = run("none", steps=6)
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        loaded = run("none", steps=6)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    for name in ("busy", "copies", "flops"):
        assert getattr(loaded.mean(1), name) == pytest.approx(getattr(quiet.mean(1), name), rel=1e-6)


def test_a_synchronization_every_step_is_seen_every_step():
    truth = run("item1", steps=5)
    assert [step.synchronizations for step in truth.steps] == [1] * 5
    assert all(step.lag < 1e-3 for step in truth.steps)
    assert truth.counters(in_steps=True) == {"item": 5}
    assert run("item1", steps=5, fixed=True).counters(in_steps=True) == {}


def test_an_exposed_loader_is_data_wait_and_a_hidden_one_is_not():
    exposed = run("loader_exposed", steps=6).mean(2)
    assert exposed.idle_by["data"] == pytest.approx(exposed.phases["data"], abs=1e-4)
    assert exposed.phases["data"] >= 0.04
    hidden = run("loader_hidden", steps=8, loader_seconds=0.01, queue_depth=1e9).mean(4)
    assert hidden.host_phases["data"] >= 0.01
    assert hidden.phases["data"] < 0.005


def test_exposed_copies_are_those_without_overlap():
    bytes_per_step = 4 * 1024 * 1536 * 2  # at 1 GB/s
    assert run("copy_pinned", steps=5).mean(1).copies == pytest.approx(bytes_per_step / 1e9, rel=0.02)
    assert run("copy_prefetch", steps=6).mean(2).copies < 1e-3


def test_a_slow_network_exposes_communication():
    slow, fast = (run(name, steps=5).mean(2) for name in ("ddp_slow", "ddp_fast"))
    assert slow.communication > 0.02
    assert fast.communication < 0.005
    assert slow.busy == pytest.approx(fast.busy, rel=1e-6)


def test_out_of_step_phases_are_separate():
    truth = run("evaluation", steps=6, evaluate_every=2)
    assert [(name, after) for name, _, after in truth.out_of_step] == [("evaluation", 1), ("evaluation", 3), ("evaluation", 5)]
    assert all("evaluation" not in step.phases for step in truth.steps)


@pytest.mark.parametrize("name", ["none", "clip_item", "accumulate_padding", "eager_attention"])
def test_losses_equal_those_of_the_cpu(name):
    expected = run(name, steps=4, values=True, device="cpu").losses
    assert run(name, steps=4, values=True).losses == expected
    assert len(set(expected)) == 4


@pytest.mark.parametrize("name", ["ddp_fast", "graph", pytest.param("compile", marks=pytest.mark.long), "copy_prefetch"])
def test_losses_do_not_depend_on_how_the_work_is_launched(name):
    expected = run(name, steps=4, values=True, ddp=False, graph=False, compile="", features="").losses
    losses = run(name, steps=5, values=True).losses
    if name == "graph":  # its first batch is used for the capture
        expected, losses = run("none", steps=5, values=True, skip=1).losses[:4], losses[:4]
    assert losses[:4] == pytest.approx(expected, rel=1e-5)


def test_two_processes_average_their_gradients(tmp_path):
    script = HERE / "two_ranks.py"
    ranks = [
        subprocess.Popen([sys.executable, script, str(rank), str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    first, second = (json.loads(rank.communicate(timeout=120)[0]) for rank in ranks)
    assert first["gradient"] == second["gradient"] == pytest.approx((1 + 2) / 2)
    assert first["collective_end"] == second["collective_end"]


def test_a_loop_runs_as_a_script(tmp_path):
    path = tmp_path / "truth.json"
    command = [sys.executable, HERE / "run_loop.py", "item10", "--steps", "3", "--truth", path, "--set", "layers=1"]
    subprocess.run([str(part) for part in command], check=True, timeout=120, capture_output=True)
    truth = json.loads(path.read_text())
    assert len(truth["steps"]) == 3 and truth["counters_in_steps"] == {}
    assert truth["settings"]["queue_depth"] == simgpu.settings()["queue_depth"]


def test_the_profiler_exports_the_devices_kernels(tmp_path):
    x = torch.empty(512, 512, device="simgpu")
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]
    ) as profile:
        _ = x @ x
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (kernel,) = [event for event in events if event.get("cat") == "kernel"]
    (mm,) = simgpu.truth().kernels
    assert kernel["name"] == "mm"
    assert kernel["dur"] == pytest.approx((mm.end - mm.start) / 1e3, abs=1e-3)
