# SPDX-License-Identifier: Apache-2.0
"""A run whose matmuls have no FLOP cost: no MFU is shown anywhere, and the kernel is named."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).parent / "flopmeter"
SCRIPT = """
import torch
import flopmeter

library = torch.library.Library("torchao", "FRAGMENT")
library.define("blockwise_scaled_mm(Tensor a, Tensor b) -> Tensor")
library.impl("blockwise_scaled_mm", lambda a, b: torch.from_numpy(a.detach().numpy() @ b.detach().numpy()), "CPU")

class Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.ops.torchao.blockwise_scaled_mm(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return torch.ops.torchao.blockwise_scaled_mm(grad, b.t()), torch.ops.torchao.blockwise_scaled_mm(a.t(), grad)

weight = torch.randn(64, 64, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.01)
with flopmeter.Monitor({directory!r}, peak_tflops=1.0, tensorboard=True, log_interval=2) as monitor:
    for _ in range(8):
        with monitor.step(samples=32):
            Multiply.apply(torch.randn(32, 64), weight).sum().backward()
            optimizer.step()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("unsupported") / "run"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(directory=str(directory))], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return directory, done


def records(directory):
    return [json.loads(line) for file in directory.glob("records_*.jsonl") for line in file.read_text().splitlines()]


def test_records_have_no_mfu_and_name_the_kernel(run):
    steps = [each for each in records(run[0]) if each.get("tag") == "train"]
    assert steps
    for step in steps:
        assert step.get("mfu") is None
        assert step.get("hfu") is None
        assert step.get("model_flops") is None
        assert "torchao::blockwise_scaled_mm" in step["flops_note"]
        assert step["unsupported_op_calls"] == 3


def test_the_end_of_the_run_names_the_kernel(run):
    assert "torchao::blockwise_scaled_mm" in run[1].stderr


def test_console_and_text_files_have_no_mfu(run):
    texts = [run[1].stderr, run[1].stdout, *[each.read_text() for each in run[0].glob("perf_*.log")]]
    assert not any(re.search(r"MFU[^a-z\n]*\d", each) for each in texts), texts
    summary = json.loads(next(run[0].glob("perf_summary_*.json")).read_text())
    assert not _utilization(summary)


def test_tensorboard_has_no_mfu(run):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(run[0] / "tensorboard"))
    events.Reload()
    tags = events.Tags()["scalars"]
    assert tags
    assert not [each for each in tags if "mfu" in each.lower() or "hfu" in each.lower() or "flops" in each.lower()]


@pytest.mark.skipif(not PROGRAM.exists(), reason="the flopmeter program is not built")
@pytest.mark.parametrize("command", [["diagnose"], ["watch"], ["ranks"]])
def test_commands_show_no_mfu(run, command):
    done = subprocess.run([str(PROGRAM), *command, str(run[0]), "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not _utilization(json.loads(done.stdout))
    assert command != ["diagnose"] or "not known (unsupported: torchao::blockwise_scaled_mm)" in done.stdout
    done = subprocess.run([str(PROGRAM), *command, str(run[0])], capture_output=True, text=True, timeout=60)
    assert not re.search(r"MFU[^a-z\n]*\d", done.stdout), done.stdout


@pytest.mark.skipif(not PROGRAM.exists(), reason="the flopmeter program is not built")
def test_the_report_page_has_no_mfu_and_names_the_kernel(run):
    page = run[0].parent / "report.html"
    done = subprocess.run([str(PROGRAM), "report", str(run[0]), "-o", str(page)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "torchao::blockwise_scaled_mm" in text
    documents = re.findall(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert documents
    for each in documents:
        assert not _utilization(json.loads(each))


def _utilization(document):
    return [key for key in _numbers(document) if re.fullmatch(r"(perf/)?[mh]fu(_\w+)?", key.rsplit(".", 1)[-1])]


def _numbers(value, path=""):
    """Paths of all numbers in a JSON document, except peaks and published results."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in ("published", "verdict"):
                yield from _numbers(each, f"{path}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path
