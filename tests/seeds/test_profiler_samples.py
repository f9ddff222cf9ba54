# SPDX-License-Identifier: Apache-2.0
"""Document 1: MFU by profiler."""

import inspect
import json
from pathlib import Path
from typing import Dict  # noqa: UP035 (the sample's own spelling)

import flopmeter
import pytest
import torch
from flopmeter import compat
from seed_samples import sample

NAMES = {"torch": torch, "Dict": Dict}


@pytest.fixture(autouse=True)
def installed():
    compat.install()


@pytest.fixture
def model():
    return torch.nn.Sequential(torch.nn.Embedding(50, 64), torch.nn.Linear(64, 50))


def same_signature(ours, theirs):
    """The sample's parameters are a prefix of flopmeter's: same names, order, and defaults."""
    parameters = [list(inspect.signature(each).parameters.values()) for each in (ours, theirs)]
    pairs = list(zip(*parameters, strict=False))
    assert len(pairs) == len(parameters[1])
    for our, their in pairs:
        assert (our.name, our.default) == (their.name, their.default)


def test_line_011_the_functions_agree(execute, model):
    theirs = execute("s1_line011.py", vars(compat))["calculate_mfu_with_profiler"]
    same_signature(compat.calculate_mfu_with_profiler, theirs)
    flops, peak = compat._measure_flops_with_profiler(model, 4, 512), compat.get_gpu_peak_flops()
    for step_time, mfu in ((0.1, flops / 0.1 / peak), (1e-9, 1.0)):
        assert theirs(model, 4, 512, step_time) == mfu > 0
        assert compat.calculate_mfu_with_profiler(model, 4, 512, step_time) == mfu


def test_line_042_the_measured_forward_flops_agree(execute, model):
    names = {**NAMES, "_create_dummy_batch_for_profiling": compat._create_dummy_batch_for_profiling}
    as_it_stands = execute("s1_line042.py", names)["_measure_flops_with_profiler"]
    on_this_device = execute("s1_line042.py", names, {"ProfilerActivity.CUDA": "ProfilerActivity.CPU"})
    same_signature(compat._measure_flops_with_profiler, as_it_stands)

    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, input_ids, attention_mask=None, labels=None):
            return self.inner(input_ids)

    ours = compat._measure_flops_with_profiler(Named(), 4, 8, forward_only=True)
    assert ours == 2 * 4 * 8 * 64 * 50
    assert on_this_device["_measure_flops_with_profiler"](Named(), 4, 8) == ours
    # Without a GPU there is no CUDA activity, and the function returns 0.
    assert as_it_stands(Named(), 4, 8) == (ours if torch.cuda.is_available() else 0.0)


def test_line_075_the_signatures_match(execute):
    theirs = execute("s1_line075.py", NAMES)["TrainingMonitor"]
    same_signature(compat.TrainingMonitor.__init__, theirs.__init__)
    same_signature(compat.TrainingMonitor.log_step, theirs.log_step)
    assert theirs("outputs", flops_profile_freq=7).flops_profile_freq == 7


def test_line_099_the_yaml_sets_the_frequency():
    text = sample("s1_line099.yaml").replace("500", "123")  # a value that is not the default
    options = flopmeter._flopmeter.Options()
    options.apply_yaml(sample("s1_line099.yaml"))
    assert options.values()["measure_frequency"] == "500"
    options.apply_yaml(text)
    assert options.values()["measure_frequency"] == "123"


def test_line_108_a_monitor_is_created(execute):
    monitor = execute("s1_line108.py", {"TrainingMonitor": compat.TrainingMonitor, "config": {}})["monitor"]
    assert monitor.flops_profile_freq == 500
    monitor.finish()
    assert json.loads(Path("outputs/training_log.json").read_text()) == []


def test_line_121_basic_use(execute, model, capsys):
    scope = execute("s1_line121.py", {"model": model})
    assert 0 < scope["mfu"] <= 1
    assert capsys.readouterr().out == f"MFU: {scope['mfu']:.4f}\n"


def test_line_131_a_training_loop(execute, capsys):
    names = {
        "TrainingMonitor": compat.TrainingMonitor,
        "config": {},
        "total_steps": 3,
        "epoch": 0,
        "loss": 1.5,
        "grad_norm": 0.1,
        "lr": 1e-3,
        "attention_mask": torch.ones(2, 8),
    }
    execute("s1_line131.py", names)["monitor"].finish()
    entries = json.loads(Path("outputs/training_log.json").read_text())
    assert [(entry["step"], entry["loss"]) for entry in entries] == [(0, 1.5), (1, 1.5), (2, 1.5)]
    assert all(entry["perf/tokens_per_second"] > 0 for entry in entries)


def test_line_181_the_test_script(shell):
    assert shell(sample("s1_line181.sh")).stdout.endswith("ok\n")
