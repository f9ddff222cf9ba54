# SPDX-License-Identifier: Apache-2.0
"""Counting in Python, for a machine without a compiler: same counts, one step per shape, labeled, and harmless."""

import json
import subprocess
import sys

import pytest

WITHOUT_COMPILER = """
from flopmeter.torch import adapter, fallback
fallback.attach()
adapter._loaded = True
"""
COUNTS = """
import json, torch, flopmeter
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
F = torch.nn.functional
x, w = torch.randn(2, 6, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True)
q = torch.randn(2, 2, 6, 4, requires_grad=True)
image, conv = torch.randn(2, 3, 8, 8), torch.nn.Conv2d(3, 4, 3)
lstm = torch.nn.LSTM(8, 5)
cases = {
    "linear": lambda: F.linear(x, w, torch.zeros(8)).sum().backward(),
    "attention": lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward(),
    "masked attention": lambda: F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(6, 6).bool()).sum().backward(),
    "convolution": lambda: conv(image).sum().backward(),
    "lstm": lambda: lstm(x)[0].sum().backward(),
    "einsum": lambda: torch.einsum("bij,jk->bik", x, w).sum().backward(),
    "autocast": lambda: (torch.autocast("cpu", torch.bfloat16)(lambda: x @ w)()).sum().backward(),
    "reentrant": lambda: checkpoint(lambda y: (y @ w).square() @ w, x, use_reentrant=True).sum().backward(),
    "not reentrant": lambda: checkpoint(lambda y: (y @ w).square() @ w, x, use_reentrant=False).sum().backward(),
    "create_graph": lambda: torch.autograd.grad((x @ w).square().sum(), x, create_graph=True)[0].square().sum().backward(),
}
result = {}
for name, case in cases.items():
    with flopmeter.count() as c:
        case()
    result[name] = [c.model_flops, c.hardware_flops, c.forward, c.backward, c.recompute, c.attention_pairs, sorted(map(list, c.rows))]
print(json.dumps(result))
"""
FAILED_BUILD = """
import sys, torch, flopmeter
from flopmeter.torch import build
def compiled(*_):
    raise build.CannotCompile("building the torch adapter failed; see adapter.log")
sys.modules["flopmeter._torch_build"] = None  # as installed from a wheel
build.compiled = compiled
for _ in range(2):
    with flopmeter.count() as c:
        torch.ones(2, 3) @ torch.ones(3, 4)
    print(c.hardware_flops)
"""
LOOP = """
import torch, flopmeter
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
monitor = flopmeter.Monitor("logs", model=model, peak_tflops=1.0)
for batch in (8, 8, 4, 8, 4, 4):
    with monitor.step(samples=batch):
        optimizer.zero_grad()
        model(torch.ones(batch, 16)).sum().backward()
        optimizer.step()
monitor.finish()
"""
MODES = """
import torch, flopmeter
from torch.utils._python_dispatch import TorchDispatchMode
class Users(TorchDispatchMode):
    calls = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Users.calls += 1
        return func(*args, **(kwargs or {}))
a = torch.ones(4, 4)
with Users():
    c = flopmeter.count().__enter__()
    a @ a
inside = flopmeter.count().__enter__()
with Users():
    a @ a
    c.__exit__(None, None, None)
    a @ a
a @ a
inside.__exit__(None, None, None)
a @ a
print(Users.calls, c.hardware_flops, inside.hardware_flops, torch._C._len_torch_dispatch_stack())
"""
COMPILED = """
import torch, flopmeter
compiled = torch.compile(lambda x: x @ x, backend="eager")
c = flopmeter.count().__enter__()
compiled(torch.ones(4, 4))
c.__exit__(None, None, None)
print(torch._C._len_torch_dispatch_stack(), c.calls, sum(torch._dynamo.utils.counters["frames"].values()) > 0)
"""


def outputs(folder, code):
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def run(folder, code, fallback=True):
    return outputs(folder, (WITHOUT_COMPILER if fallback else "") + code)[0]


def test_after_a_failed_build_one_line_states_the_reason_and_python_counts(tmp_path):
    out, error = outputs(tmp_path, FAILED_BUILD)
    assert out.split() == ["48", "48"]
    assert error == "flopmeter: FLOPs are counted in Python, which is slow: building the torch adapter failed; see adapter.log\n"


def test_python_counts_what_the_compiled_adapter_counts(tmp_path):
    assert json.loads(run(tmp_path, COUNTS)) == json.loads(run(tmp_path, COUNTS, fallback=False))


def test_a_monitor_counts_one_step_per_shape_and_labels_its_records(tmp_path):
    run(tmp_path, LOOP)
    (file,) = (tmp_path / "logs").glob("records_*")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["flops_source"] for record in records].count("counted") == 2
    per_sample = 2 * (16 * 32 + 32 * 4) * 2 + 2 * 32 * 4  # no gradient of the input
    assert [record["model_flops"] for record in records] == [per_sample * batch for batch in (8, 8, 4, 8, 4, 4)]
    assert all(record["flops_note"].startswith("counted in Python") for record in records)
    assert all(record["phases"]["backward"] > 0 for record in records)  # the time after the forward pass


def test_modes_of_the_program_work_as_without_a_count(tmp_path):
    assert run(tmp_path, MODES).split() == ["3", str(128 * 2), str(128 * 3), "0"]


@pytest.mark.torch2("torch.compile")
def test_compiled_code_is_not_disturbed(tmp_path):
    assert run(tmp_path, COMPILED).split() == ["0", "0", "True"]
