# SPDX-License-Identifier: Apache-2.0
"""Lengths that are on the device: exact, and the host does not wait for them."""

import enum
import json
import subprocess
import sys
import types
from pathlib import Path

import flopmeter
import pytest
import simgpu
import torch
from flopmeter.torch import callables
from test_device_time import FLOPMETER, records_of

DEVICE = "simgpu"
PAIR = 2 * 4 * (8 + 8)  # four heads, keys and values of size 8
LENGTHS = [(5, 2), (3, 4), (6, 1), (4, 3)]


@pytest.fixture
def attention():
    library = torch.library.Library("flash_attn", "FRAGMENT")
    name = "_flash_attn_varlen_forward"
    library.define(
        f"{name}(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, int max_seqlen_q, int max_seqlen_k, bool causal) -> Tensor"
    )
    library.impl(name, lambda q, *_: q * 2, "PrivateUse1")
    yield torch.ops.flash_attn._flash_attn_varlen_forward
    library._destroy()


def train(attention, directory, steps):
    """Two calls of attention in each step share their starts, which are in one buffer."""
    model = torch.nn.Linear(8, 8).to(DEVICE)
    monitor = flopmeter.Monitor(str(directory), model=model, peak_tflops=100, console=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    q, k, v = (torch.zeros(7, heads, 8, device=DEVICE) for heads in (4, 2, 2))
    starts = torch.zeros(3, dtype=torch.int32, device=DEVICE)
    simgpu.reset()
    for step in range(steps):
        with monitor.step(tokens=7):
            first, second = LENGTHS[step % 4]
            starts.copy_(torch.tensor([0, first, first + second], dtype=torch.int32), non_blocking=True)
            for _ in range(2):
                attention(q, k, v, starts, starts, 6, 6, True)
            model(q).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    truth = simgpu.truth()
    monitor.finish()
    return truth.counters(), sum(each.kind == "device_to_host" for each in truth.kernels)


def count_once(call, *args, **options):
    """Opens the clock of the device, which takes a moment on a busy machine."""
    with flopmeter.count():
        call(*args, **options)


def test_a_count_knows_the_starts_when_the_device_has_reached_the_copy(attention):
    q, k, v = (torch.zeros(7, heads, 8, device=DEVICE) for heads in (4, 2, 2))
    starts = torch.tensor([0, 5, 7], dtype=torch.int32).to(DEVICE)
    count_once(attention, q, k, v, starts, starts, 6, 6, True)
    torch.simgpu.synchronize()
    simgpu.reset()
    with flopmeter.count() as c:
        torch.simgpu._sleep(2_000_000_000)
        attention(q, k, v, starts, starts, 6, 6, True)
    assert c.bounded_flops == c.hardware_flops > (15 + 3) * PAIR
    waited = set(simgpu.truth().counters()) - {"record_event", "query_event", "elapsed_time"}
    assert not waited  # the truth itself waits for the device
    assert (c.hardware_flops, c.bounded_flops) == ((15 + 3) * PAIR, 0)
    assert c.by_op == {"flash_attn::_flash_attn_varlen_forward": (15 + 3) * PAIR}


@pytest.fixture
def grouped():
    library = torch.library.Library("aten", "IMPL")
    library.impl("_grouped_mm", lambda x, experts, *_: x @ experts[0], "PrivateUse1")
    yield torch._grouped_mm
    library._destroy()


def test_a_count_knows_the_groups_of_a_matmul_when_the_device_has_reached_the_copy(grouped):
    x = torch.zeros(12, 8, dtype=torch.bfloat16, device=DEVICE)
    experts = torch.zeros(3, 8, 16, dtype=torch.bfloat16, device=DEVICE)
    ends = torch.tensor([2, 5, 8], dtype=torch.int32).to(DEVICE)
    count_once(grouped, x, experts, ends)
    torch.simgpu.synchronize()
    with flopmeter.count() as c:
        torch.simgpu._sleep(2_000_000_000)
        grouped(x, experts, ends)
    assert c.bounded_flops == c.model_flops == 2 * 12 * 8 * 16
    torch.simgpu.synchronize()
    assert (c.model_flops, c.bounded_flops, c.attention_pairs) == (2 * 8 * 8 * 16, 0, "none")


class Word(enum.Enum):
    NVTE_PADDING_CAUSAL_MASK = 0
    NVTE_THD_THD_THD = 1


def test_packed_attention_of_transformer_engine(monkeypatch):
    te = types.ModuleType("transformer_engine_torch")
    te.fused_attn_fwd = te.fused_attn_bwd = lambda *_: None
    monkeypatch.setitem(sys.modules, te.__name__, te)
    with flopmeter.count():
        pass
    for name in ("fused_attn_fwd", "fused_attn_bwd"):
        callables.count_function(f"{te.__name__}::{name}")
    starts = torch.tensor([0, 5, 7], dtype=torch.int32).to(DEVICE)
    forward, backward = [None] * 27, [None] * 26
    forward[:2] = backward[:2] = 6, 6
    forward[6] = backward[5] = Word.NVTE_THD_THD_THD
    forward[8] = backward[7] = Word.NVTE_PADDING_CAUSAL_MASK
    forward[10] = backward[9] = (-1, 0)
    forward[11:16] = backward[11:16] = [starts, starts, *(torch.zeros(7, heads, 8, device=DEVICE) for heads in (4, 2, 2))]
    with flopmeter.count() as c:
        te.fused_attn_fwd(*forward)
        te.fused_attn_bwd(*backward)
    torch.simgpu.synchronize()
    assert (c.hardware_flops, c.model_flops, c.bounded_flops) == (18 * 3.5 * PAIR, 18 * 3 * PAIR, 0)


def test_starts_on_the_device_are_known_late_without_waiting(attention, tmp_path):
    counters, copies = train(attention, tmp_path, 12)
    assert set(counters) <= {"record_event", "query_event", "elapsed_time"}
    lines = "".join(file.read_text() for file in tmp_path.glob("records_*.jsonl")).splitlines()
    records = [each for each in map(json.loads, lines) if each["tag"] in ("train", "profile")]
    linear = 2 * (2 * 28 * 8 * 8)  # forward and the gradient of the weight
    assert copies == len(records) == 12
    for record in records:
        pairs = sum(n * (n + 1) // 2 for n in LENGTHS[(record["step"] - 1) % 4])
        assert record["model_flops"] == record["hardware_flops"] == linear + 2 * pairs * PAIR
        assert record["bounded_flops"] == 0


def test_real_tokens_of_batches_that_a_program_moves_to_the_device(tmp_path):
    here = Path(__file__).parent
    command = [FLOPMETER, "run", "--dir", tmp_path, "--no-console", "--", sys.executable, here / "padded_loop.py"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, check=True)
    steps = [record for record in records_of(tmp_path) if record["tag"] in ("train", "profile")]
    # The first batches were fetched before the model was found.
    assert [record["tokens"] for record in steps[1:]] == json.loads(done.stdout)[1:]
    assert {record["padded_tokens"] for record in steps[1:]} == {2 * 4 * 32}
