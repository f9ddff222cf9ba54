# SPDX-License-Identifier: Apache-2.0
"""Other load on the machine is named as the cause, not blamed on the training."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "flopmeter"
LOOP = """
import torch, flopmeter
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
monitor = flopmeter.Monitor("logs", model=model, peak_tflops=1, console=False)
for _ in monitor.wrap(range(150)):
    model(torch.randn(256, 512)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
monitor.finish()
"""


@pytest.mark.long
def test_two_hogs_per_processor_are_named(tmp_path):
    spin = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(spin) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        subprocess.run([sys.executable, "-c", LOOP], cwd=tmp_path, check=True, timeout=300)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    done = subprocess.run([PROGRAM, "diagnose", tmp_path / "logs", "--json"], capture_output=True, text=True, check=True)
    diagnosis = json.loads(done.stdout)
    shares = {line["cause"]: line["share"] for line in diagnosis["budget"]}
    assert shares["busy_machine"] > 0.25, shares
    assert diagnosis["findings"][0]["rule"] == "busy_machine"
    assert "run queue" in diagnosis["findings"][0]["evidence"]
