# SPDX-License-Identifier: Apache-2.0
"""``flopmeter run --kineto-step N``: one step is recorded with the PyTorch profiler, and the run is as without."""

import json
import subprocess
import sys

import pytest
from conftest import PROGRAM

pytestmark = pytest.mark.torch2("hooks for optimizers")
STEP = 4

LOOP = """
import sys
import torch

profiled = sys.argv[1:]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
optimizer = torch.optim.AdamW(model.parameters())
users = None
for step in range(1, 9):
    x = torch.randn(32, 64)
    if "whole run" in profiled and step == 1:
        users = torch.profiler.profile()
        users.start()
    loss = (model(x) - x).square().mean()
    if "in the step" in profiled and step == 4:
        users = torch.profiler.profile()
        users.start()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(repr(loss.item()))
if users:
    users.stop()
    print(any(event.name == "aten::addmm" for event in users.events()))
sys.exit(3)
"""


@pytest.fixture
def loop(folder):
    script = folder.path / "loop.py"
    script.write_text(LOOP)

    def run(*arguments, run_options=("--kineto-step", STEP)):
        return folder.run(sys.executable, script, *arguments, run_options=run_options)

    return run


def lines(output):
    return [line for line in output.splitlines() if not line.startswith("flopmeter")]


def json_of(*command):
    done = subprocess.run([str(PROGRAM), *map(str, command)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_recorded_step_is_a_trace_in_the_run_directory(folder, loop):
    expected, _, _ = loop(run_options=None)
    output, errors, code = loop()
    assert (lines(output), code) == (lines(expected), 3), errors
    (record,) = [row for row in folder.records() if row["step"] == STEP]
    assert record["tag"] == "profile"
    (file,) = folder.logs.glob("trace_*.rank0.json")
    report = json_of("trace", folder.logs, "--json")  # of a run directory it reads the recorded steps only
    (rank,) = report["ranks"]
    assert rank["file"] == str(file) and not report["notes"]
    (step,) = rank["steps"]
    assert step["name"] == f"ProfilerStep#{STEP}"
    assert step["model_flops"] == record["model_flops"] and step["hardware_flops"] == record["hardware_flops"]
    page = json_of("report", folder.logs, "--json")
    assert page["profile"]["step"] == STEP and page["step_timeline"]
    assert json_of("diagnose", folder.logs, "--json")["budget"]


@pytest.mark.long
def test_a_profiler_of_the_program_takes_precedence(folder, loop):
    expected, _, _ = loop(run_options=None)
    for when in ("whole run", "in the step"):
        output, errors, code = loop(when)
        assert (lines(output), code) == ([*lines(expected), "True"], 3), errors
        assert not list(folder.logs.glob("trace_*"))
        for file in folder.logs.iterdir():
            file.unlink()
