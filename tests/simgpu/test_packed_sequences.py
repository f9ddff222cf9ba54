# SPDX-License-Identifier: Apache-2.0
"""Attention over packed sequences whose starts are on the device: exact, and the host does not wait for them."""

import json

import flopmeter
import pytest
import simgpu
import torch

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
