# SPDX-License-Identifier: Apache-2.0
"""Matmuls are counted exactly once in all ways in which PyTorch runs them."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import flopmeter

M, K, N, B = 32, 48, 40, 6
MM = 2 * M * K * N


def executed(run):
    with flopmeter.count() as c:
        run()
    assert c.unsupported == []
    return c.hardware_flops


@pytest.fixture
def a():
    return torch.randn(M, K, requires_grad=True)


@pytest.fixture
def b():
    return torch.randn(K, N, requires_grad=True)


@pytest.fixture
def a3():
    return torch.randn(B, M, K, requires_grad=True)


@pytest.fixture
def b3():
    return torch.randn(B, K, N, requires_grad=True)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_grad_modes(mode, a, b):
    def run():
        with mode():
            a @ b

    assert executed(run) == MM


def test_autocast_counts_once_in_the_compute_dtype(a, b, a3, b3):
    with flopmeter.count() as c, torch.autocast("cpu", dtype=torch.bfloat16):
        torch.mm(a, b)
        torch.bmm(a3, b3)
        F.linear(a, b.t(), torch.zeros(N))
    assert c.by_dtype == {"bf16": 8 * MM}


def test_autocast_backward(a, b):
    with flopmeter.count() as c:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = a @ b
        y.float().sum().backward()
    assert (c.forward, c.backward, c.by_dtype) == (MM, 2 * MM, {"bf16": 3 * MM})


def test_threads_count_in_all_open_counters(a, b):
    def run():
        threads = [threading.Thread(target=lambda: (a.detach() @ b.detach())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with flopmeter.count() as outer:
        assert executed(run) == 8 * MM
    assert outer.hardware_flops == 8 * MM


def test_backward_in_another_thread(a, b):
    loss = (a @ b).sum()

    def run():
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()

    with flopmeter.count() as c:
        run()
    assert (c.forward, c.backward) == (0, 2 * MM)


def test_out_and_in_place_forms(a3, b3):
    x, y = a3[0].detach(), b3[0].detach()
    a3, b3, z = a3.detach(), b3.detach(), torch.zeros(M, N)
    out, out3 = torch.empty(M, N), torch.empty(B, M, N)

    def run():
        torch.mm(x, y, out=out)
        torch.addmm(z, x, y, out=out)
        out.addmm_(x, y)
        torch.bmm(a3, b3, out=out3)
        torch.baddbmm(out3, a3, b3, out=torch.empty(B, M, N))
        out3.baddbmm_(a3, b3)

    assert executed(run) == 3 * MM + 3 * B * MM


def test_in_place_forms_keep_their_version_counters(a, b):
    x = torch.zeros(M, N)
    version = x._version
    with flopmeter.count():
        x.addmm_(a.detach(), b.detach())
    assert x._version == version + 1


def test_fused_matmuls_and_their_inner_calls_count_once(a, a3, b3):
    d3, c = torch.randn(B, M, N), torch.randn(M, N)
    assert executed(lambda: torch.baddbmm(d3, a3, b3)) == B * MM
    assert executed(lambda: torch.baddbmm(d3, a3, b3).sum().backward()) == 3 * B * MM
    assert executed(lambda: torch.addbmm(c, a3, b3)) == B * MM


def test_vectors(a, b):
    x, y = a.detach(), b.detach()
    assert executed(lambda: x @ y[:, 0]) == 2 * M * K
    assert executed(lambda: torch.dot(x[0], x[1])) == 2 * K


def test_einsum_through_its_leaves(a3, b3):
    assert executed(lambda: torch.einsum("bij,bjk->bik", a3, b3).sum().backward()) == 3 * B * MM


def test_multi_dot_and_bilinear(a, b):
    assert executed(lambda: torch.linalg.multi_dot([a.detach(), b.detach(), b.detach().t()])) in (
        2 * M * K * N + 2 * M * N * K,
        2 * K * N * K + 2 * M * K * K,
    )


@pytest.mark.torch2("torch.func")
def test_vmap_counts_the_batch(a3, b3):
    assert executed(lambda: torch.func.vmap(torch.mm)(a3.detach(), b3.detach())) == B * MM


@pytest.mark.torch2("torch.func")
def test_functionalize_and_make_fx(a, b):
    from torch.fx.experimental.proxy_tensor import make_fx

    x, y = a.detach(), b.detach()
    assert executed(lambda: torch.func.functionalize(torch.mm)(x, y)) == MM
    assert executed(lambda: make_fx(torch.mm)(x, y)) == MM


def test_meta_and_fake_tensors_are_not_counted(a, b):
    from torch._subclasses import FakeTensorMode

    x, y = a.detach(), b.detach()

    def meta():
        shape_only = torch.randn(M, K, device="meta", requires_grad=True)
        (shape_only @ torch.randn(K, N, device="meta")).sum().backward()

    def fake():
        with FakeTensorMode() as mode:
            mode.from_tensor(x) @ mode.from_tensor(y)

    assert executed(meta) == 0
    assert executed(fake) == 0


def test_nested_tensors():
    x = torch.nested.nested_tensor([torch.randn(3, 4, 8), torch.randn(3, 4, 8)])
    y = torch.nested.nested_tensor([torch.randn(3, 8, 5), torch.randn(3, 8, 5)])
    assert executed(lambda: torch.matmul(x, y)) == 2 * 2 * 3 * 4 * 8 * 5


@pytest.mark.torch2("jagged tensors")
def test_jagged_nested_tensors_through_a_linear_layer():
    x = torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)], layout=torch.jagged)
    weight = torch.randn(16, 8)
    assert executed(lambda: F.linear(x, weight)) == 2 * (3 + 5) * 8 * 16


def test_user_dispatch_modes_and_tensor_subclasses(a, b):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Pass(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def run():
        with Pass():
            (a @ b).sum().backward()

    assert executed(run) == 3 * MM


def test_jit(a, b):
    script = torch.jit.script(_jit_body)
    for _ in range(3):
        script(a, b).sum().backward()
    assert executed(lambda: script(a, b).sum().backward()) == 3 * MM
    module = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32)).eval()
    x = torch.randn(2, 24, 64)
    frozen = torch.jit.freeze(torch.jit.trace(module, x))
    frozen(x)
    assert executed(lambda: frozen(x)) == 2 * 48 * (64 * 96 + 96 * 32)


def _jit_body(a, b):
    return torch.relu(torch.mm(a, b)) * 2.0 + 1.0


def test_a_failing_call_counts_nothing_and_has_no_side_effects(a, b):
    def run():
        with pytest.raises(RuntimeError):
            torch.mm(a, a)
        (a @ b).sum().backward()

    assert executed(run) == 3 * MM


def test_with_a_running_profiler(a, b):
    def run():
        with torch.profiler.profile(record_shapes=True, with_flops=True):
            (a @ b).sum().backward()

    assert executed(run) == 3 * MM


@pytest.mark.parametrize("dtype, name, times", [
    (torch.float64, "fp64", 1), (torch.float32, "fp32", 1), (torch.bfloat16, "bf16", 1),
    pytest.param(torch.float16, "fp16", 1, marks=pytest.mark.torch2("fp16 matmuls on the CPU")),
    (torch.complex64, "fp32", 4),
])
def test_dtypes(dtype, name, times):
    x = torch.ones(16, 16).to(dtype)
    with flopmeter.count() as c:
        x @ x
    assert c.by_dtype == {name: times * 2 * 16**3}


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="torch 2.9 added the setting")
@pytest.mark.parametrize("setting", ["ieee", "tf32", "bf16"])
def test_fp32_work_counts_as_the_dtype_that_the_setting_selects(setting):
    x, y = torch.randn(256, 256), torch.randn(256, 256)
    exact = x.double() @ y.double()
    before, torch.backends.fp32_precision = torch.backends.fp32_precision, setting
    try:
        with flopmeter.count() as c:
            product = x @ y
    finally:
        torch.backends.fp32_precision = before
    shortened = (product - exact).abs().max() > 1e-4 * exact.abs().max()
    assert c.by_dtype == {"bf16" if shortened else "fp32": 2 * 256**3}


def test_empty_matmuls_cost_nothing():
    assert executed(lambda: torch.mm(torch.empty(0, 5), torch.empty(5, 7))) == 0


def test_nothing_is_counted_outside_a_count(a, b):
    with flopmeter.count() as c:
        a @ b
    a @ b
    assert c.hardware_flops == MM


def test_counts_are_readable_inside_and_counters_overlap(a, b):
    with flopmeter.count() as outer:
        a @ b
        assert outer.hardware_flops == MM
        with flopmeter.count() as inner:
            a @ b
        a @ b
    assert (inner.hardware_flops, outer.hardware_flops) == (MM, 3 * MM)
