# SPDX-License-Identifier: Apache-2.0
"""A monitor sees the steps, phases, and FLOPs of a compiled model, also if it was given the model before."""

import json

import pytest
import torch
from torch import nn

import flopmeter

# Two layers; the input of the first needs no gradient.
FORWARD = 2 * 16 * (32 * 64 + 64 * 8)
STEP = 3 * FORWARD - 2 * 16 * 32 * 64


@pytest.mark.torch2("torch.compile")
@pytest.mark.parametrize("first", ["monitor", "compile"])
def test_steps_of_a_compiled_model(tmp_path, first):
    torch._dynamo.reset()  # drops the callbacks of compilations
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    compiled = torch.compile(model) if first == "compile" else None
    with flopmeter.Monitor(str(tmp_path), model=model, peak_tflops=1.0) as monitor:
        compiled = compiled or torch.compile(model)
        for batch in monitor.wrap([torch.randn(16, 32) for _ in range(6)]):
            optimizer.zero_grad()
            compiled(batch).sum().backward()
            optimizer.step()
    lines = [line for file in tmp_path.glob("records_*.jsonl") for line in file.read_text().splitlines()]
    steps = [each for each in map(json.loads, lines) if each["tag"] in ("train", "compile")]
    assert steps[0]["tag"] == "compile"
    assert {each["tag"] for each in steps[1:]} == {"train"}
    assert {each["model_flops"] for each in steps} == {STEP}
    assert all(each["mfu"] is not None for each in steps)
    assert all(each["phases"]["forward"] > 0 for each in steps)
