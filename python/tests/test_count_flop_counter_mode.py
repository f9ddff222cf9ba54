# SPDX-License-Identifier: Apache-2.0
"""Comparison with torch.utils.flop_counter: the same integer if it is right, the correct one if it is not."""

import pytest
import torch
import torch.nn.functional as F
from brute_force import BruteForce
from small_gpt import SmallGpt
from torch import nn

import flopmeter

FlopCounterMode = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode


def three(run):
    """Counts of flopmeter, FlopCounterMode, and the brute-force counter."""
    with flopmeter.count() as c:
        run()
    with FlopCounterMode(display=False) as theirs:
        run()
    with BruteForce() as brute:
        run()
    return c.hardware_flops, theirs.get_total_flops(), brute.flops


def test_equal_on_a_gpt_with_eager_attention():
    model, tokens = SmallGpt(), torch.randint(64, (2, 16))
    ours, theirs, brute = three(lambda: model(tokens).backward())
    assert ours == theirs == brute


def test_equal_on_a_plain_convolution_network():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.Flatten(), nn.LazyLinear(10))
    x = torch.randn(2, 3, 16, 16)
    net(x)
    ours, theirs, brute = three(lambda: net(x).sum().backward())
    assert ours == theirs == brute


def test_cpu_attention_which_flop_counter_mode_does_not_see():
    q, k, v = (torch.randn(2, 4, 24, 16, requires_grad=True) for _ in range(3))
    ours, theirs, brute = three(lambda: F.scaled_dot_product_attention(q, k, v).sum().backward())
    assert ours == brute == 2 * 2 * 4 * 24 * 24 * (32 + 80)
    assert theirs == 0


def test_grouped_convolution_whose_weight_gradient_flop_counter_mode_overstates():
    x, w = torch.randn(2, 8, 16, 16, requires_grad=True), torch.randn(16, 2, 3, 3, requires_grad=True)
    ours, theirs, brute = three(lambda: F.conv2d(x, w, groups=4, padding=1).sum().backward())
    assert ours == brute == 3 * 2 * 2 * 256 * 16 * 2 * 9
    assert theirs != ours


def test_matrix_times_vector_which_flop_counter_mode_does_not_see():
    a, x = torch.randn(24, 32), torch.randn(32)
    ours, theirs, brute = three(lambda: torch.addmv(torch.zeros(24), a, x))
    assert ours == brute == 2 * 24 * 32
    assert theirs == 0
