# SPDX-License-Identifier: Apache-2.0
"""A trace recorded here gives the same FLOPs as `flopmeter.count()` on the same step, to the integer."""

import pytest

torch = pytest.importorskip("torch")
flopmeter = pytest.importorskip("flopmeter")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from trace_cli import trace_json  # noqa: E402

pytestmark = pytest.mark.torch2("shapes and scalar arguments in traces")


class Checkpointed(nn.Module):
    def __init__(self, layer, use_reentrant):
        super().__init__()
        self.layer, self.use_reentrant = layer, use_reentrant

    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=self.use_reentrant)


def encoder_layer():
    return nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)


def attention(x):
    return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 32)

    def forward(self, x):
        return attention(self.qkv(x).reshape(4, 16, 4, 8).transpose(1, 2))


STEPS = {
    "linear": (lambda: nn.Linear(24, 40), (8, 24)),
    "encoder": (encoder_layer, (4, 16, 32)),
    "causal attention": (Attention, (4, 16, 32)),
    "checkpointed": (lambda: Checkpointed(encoder_layer(), False), (4, 16, 32)),
    "checkpointed, reentrant": (lambda: Checkpointed(encoder_layer(), True), (4, 16, 32)),
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, groups=2)),
        (2, 3, 16, 16),
    ),
    "transposed convolution": (lambda: nn.ConvTranspose2d(3, 6, 4, stride=2), (2, 3, 8, 8)),
    "recurrent": (lambda: nn.GRU(12, 20, batch_first=True), (3, 7, 12)),
    "batched products": (lambda: nn.Bilinear(6, 6, 5), (9, 6)),
}


def run_step(model, x):
    inputs = (x, x) if isinstance(model, nn.Bilinear) else (x,)
    out = model(*inputs)
    (out[0] if isinstance(out, tuple) else out).sum().backward()


@pytest.mark.parametrize("name", STEPS)
def test_a_trace_gives_the_flops_of_count(name, tmp_path):
    torch.manual_seed(0)
    make, shape = STEPS[name]
    model = make()
    needs_gradient = "reentrant" in name  # that kind of checkpoint recomputes only for inputs with gradients
    x = torch.randn(shape, requires_grad=needs_gradient)
    run_step(model, x)  # first calls may differ: gradients are allocated
    with flopmeter.count() as counted:
        run_step(model, x)
    with torch.profiler.profile(record_shapes=True) as profiler:
        run_step(model, x)
        profiler.step()
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))

    rank = trace_json(path)["ranks"][0]
    assert counted.hardware_flops > 0
    assert rank["flops"]["hardware"] == counted.hardware_flops
    assert rank["flops"]["model"] == counted.model_flops
    if name.startswith("checkpointed"):
        assert counted.recompute > 0
        assert rank["flops"]["hardware"] - rank["flops"]["model"] >= counted.recompute


def test_steps_of_a_cpu_run_are_those_of_the_host(tmp_path):
    model, x = encoder_layer(), torch.randn(4, 16, 32)
    with flopmeter.count() as counted:
        run_step(model, x)
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=3, repeat=1)
    with torch.profiler.profile(record_shapes=True, schedule=schedule) as profiler:
        for _ in range(4):
            run_step(model, x)
            profiler.step()
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    rank = trace_json(path)["ranks"][0]
    assert [step["model_flops"] for step in rank["steps"]] == [counted.model_flops] * 3
    assert all(step["host_seconds"] > 0 and step["device_seconds"] is None for step in rank["steps"])
    assert rank["kernels"] == 0 and 0 < rank["coverage"] <= 1
