# SPDX-License-Identifier: Apache-2.0
"""Forward, backward, and recomputation are distinguished automatically."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import flopmeter

M, K, N = 32, 48, 40
MM = 2 * M * K * N


def leaves():
    return torch.randn(M, K, requires_grad=True), torch.randn(K, N, requires_grad=True)


def passes(run):
    with flopmeter.count() as c:
        run()
    assert c.hardware_flops == c.forward + c.backward + c.recompute == c.hardware_flops
    return c.forward // MM, c.backward // MM, c.recompute // MM


def test_a_plain_step_has_no_recomputation():
    a, b = leaves()
    assert passes(lambda: (a @ b).sum().backward()) == (1, 2, 0)


def test_model_flops_exclude_recomputation():
    a, b = leaves()
    with flopmeter.count() as c:
        checkpoint(lambda x: (x @ b).relu().square(), a, use_reentrant=False).sum().backward()
    assert (c.model_flops, c.hardware_flops) == (3 * MM, 4 * MM)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_recomputes_once(reentrant):
    a, b = leaves()
    run = lambda: checkpoint(lambda x: (x @ b).square(), a, use_reentrant=reentrant).sum().backward()  # noqa: E731
    assert passes(run) == (1, 2, 1)


@pytest.mark.parametrize("depth", [2, 3, 8])
def test_nested_reentrant_checkpoints_recompute_once_per_level(depth):
    a, b = leaves()

    def nested(x, levels):
        if levels == 0:
            return x @ b
        return checkpoint(lambda y: nested(y, levels - 1), x, use_reentrant=True)

    assert passes(lambda: nested(a, depth).sum().backward()) == (1, 2, depth)


def test_reentrant_checkpoints_deeper_than_the_engine_thread_recompute_once_per_level():
    a, b = leaves()

    def nested(x, levels):
        if levels == 0:
            return x @ b
        return checkpoint(lambda y: nested(y, levels - 1), x, use_reentrant=True)

    assert passes(lambda: nested(a, 70).sum().backward()) == (1, 2, 70)


@pytest.mark.parametrize("outer, inner", [
    (True, True), (True, False), (False, True),
    pytest.param(False, False, marks=pytest.mark.torch2("checkpoints that stop early")),
])
def test_nested_checkpoints_of_both_kinds(outer, inner):
    a, b = leaves()
    square = torch.randn(N, N, requires_grad=True)

    def inside(x):
        return (x @ square).square()  # N x N: counted separately below

    def outside(x):
        return checkpoint(inside, (x @ b).square(), use_reentrant=inner)

    with flopmeter.count() as c:
        checkpoint(outside, a, use_reentrant=outer).sum().backward()
    inner_mm = 2 * M * N * N
    assert c.forward == MM + inner_mm
    assert c.backward == 2 * (MM + inner_mm)
    # The outer matmul runs once again; the inner one once per level, except that a non-reentrant outer frame stops before it
    # reaches a non-reentrant inner one, because it has all tensors.
    assert c.recompute == MM + (2 if outer or inner else 1) * inner_mm


def test_double_backward_is_backward():
    a, b = leaves()

    def run():
        y = (a @ b).square().sum()
        (grad,) = torch.autograd.grad(y, a, create_graph=True)
        grad.square().sum().backward()

    forward, backward, recompute = passes(run)
    assert (forward, recompute) == (1, 0)
    assert backward == 5  # dA; then d(dA)/dgrad, /dB, and through y: dA, dB


def test_create_graph_through_a_checkpoint_is_distinguished():
    a, b = leaves()

    def run():
        y = checkpoint(lambda x: (x @ b).square(), a, use_reentrant=False).sum()
        torch.autograd.grad(y, a, create_graph=True)

    assert passes(run) == (1, 1, 1)


def test_a_frozen_part_under_no_grad_is_recomputed_too():
    a, b = leaves()

    def block(x):
        with torch.no_grad():
            bias = a.detach() @ b
        return ((x @ b) + bias).square()

    for reentrant in (True, False):
        run = lambda: checkpoint(block, a, use_reentrant=reentrant).sum().backward()  # noqa: B023, E731
        assert passes(run) == (2, 2, 2)


class GradUnderEnableGrad(torch.autograd.Function):
    """A custom backward that runs with grad mode enabled."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        with torch.enable_grad():
            return grad @ w.t(), x.t() @ grad


def test_a_custom_backward_under_enable_grad_is_backward():
    a, b = leaves()
    assert passes(lambda: GradUnderEnableGrad.apply(a, b).sum().backward()) == (1, 2, 0)


def test_a_custom_backward_followed_by_another_step_stays_backward():
    a, b = leaves()

    def run():
        for _ in range(3):
            GradUnderEnableGrad.apply(a, b).sum().backward()
            (a @ b).sum().backward()

    assert passes(run) == (6, 12, 0)


class OwnWorkThenRecompute(torch.autograd.Function):
    """Computes dW, then runs the forward again for the rest, as a custom checkpoint does."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x @ w).square()

    @staticmethod
    def backward(ctx, grad):
        x, w = (t.detach() for t in ctx.saved_tensors)
        own = x.t() @ grad
        with torch.enable_grad():
            again = x.requires_grad_()
            (dx,) = torch.autograd.grad((again @ w).square(), again, grad)
        return dx, own


@pytest.mark.torch2("the name of the autograd node that runs")
def test_only_what_the_nested_backward_walks_is_recomputation():
    a, b = leaves()
    assert passes(lambda: OwnWorkThenRecompute.apply(a, b).sum().backward()) == (1, 2, 1)


def test_a_checkpointed_custom_function_recomputes_through_its_saved_tensors():
    a, b = leaves()
    run = lambda: checkpoint(  # noqa: E731
        lambda x: GradUnderEnableGrad.apply(x, b), a, use_reentrant=False
    ).sum().backward()
    assert passes(run) == (1, 2, 1)


def test_a_step_inside_save_on_cpu_has_no_recomputation():
    a, b = leaves()

    def run():
        with torch.autograd.graph.save_on_cpu():
            (a @ b).square().sum().backward()

    assert passes(run) == (1, 2, 0)


@pytest.mark.torch2("the stack of saved-tensor hooks")
@pytest.mark.parametrize("around_backward", [True, False])
def test_a_checkpoint_inside_save_on_cpu_recomputes_once(around_backward):
    a, b = leaves()

    def run():
        with torch.autograd.graph.save_on_cpu():
            loss = checkpoint(lambda x: (x @ b).square(), a, use_reentrant=False).sum()
            if around_backward:
                loss.backward()
        if not around_backward:
            loss.backward()

    assert passes(run) == (1, 2, 1)


def test_create_graph_inside_saved_tensor_hooks_is_not_recomputation():
    a, b = leaves()

    def run():
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            torch.autograd.grad((a @ b).square().sum(), (a, b), create_graph=True)

    assert passes(run) == (1, 2, 0)


@pytest.mark.torch2("checkpoints that stop early")
def test_recomputation_is_what_ran_if_a_checkpoint_stops_early():
    a, b = leaves()
    square = torch.randn(N, N, requires_grad=True)
    with flopmeter.count() as c:
        checkpoint(lambda x: (x @ b).relu() @ square, a, use_reentrant=False).sum().backward()
    # Backward does not need the output of the last matmul, so it is not recomputed.
    assert c.recompute == MM


@pytest.mark.torch2("torch.func")
def test_functorch_gradients_are_backward():
    a, b = (t.detach() for t in leaves())
    assert passes(lambda: torch.func.grad(lambda x: (x @ b).sum())(a)) == (1, 1, 0)
