# SPDX-License-Identifier: Apache-2.0
"""Cost of one steady step under ``flopmeter run``: Python frames and calls into C++."""

import sys
from pathlib import Path

import flopmeter
import pytest
import torch
from flopmeter.launcher import attach
from torch import nn

PACKAGE = str(Path(flopmeter.__file__).parent)
WARM_UP = 8
STEPS = 20

pytestmark = pytest.mark.torch2("hooks for optimizers")


def count(loader, step):
    """Frames of our package, and calls of our C functions that Python makes, in the last steps of a loop."""
    frames = calls = 0

    def profile(frame, event, argument):
        nonlocal frames, calls
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            frames += 1
        if event == "c_call" and str(getattr(argument, "__module__", "")).startswith("flopmeter"):
            calls += 1

    for i, batch in enumerate(loader):
        if i == WARM_UP:
            sys.setprofile(profile)
        step(batch)
    sys.setprofile(None)
    return frames / STEPS, calls / STEPS


def test_a_steady_step_runs_no_python_code_and_few_c_functions(tmp_path, monkeypatch):
    monkeypatch.setenv("FLOPMETER_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("FLOPMETER_CONSOLE", "false")
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = attach.start(model, lambda: None)
    loader = torch.utils.data.DataLoader(torch.ones(4 * (WARM_UP + STEPS), 8), batch_size=4)
    before = []

    def step(batch):
        before.append(monitor.status["events"])
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    frames, calls = count(loader, step)
    monitor.finish()
    events = (before[-1] - before[WARM_UP]) / (len(before) - 1 - WARM_UP)
    # Python's profile does not show calls of objects such as our hooks, so the tracker counts them: an event each, two
    # for a fetch.  Three of the calls that it does show are this test's own `status`.
    print(f"{frames:.1f} Python frames, {events:.1f} events, {calls:.1f} calls of C functions per step")
    assert frames - 1 <= 6  # one frame is `status` above
    assert events <= 8
    assert calls - 2 <= 8
