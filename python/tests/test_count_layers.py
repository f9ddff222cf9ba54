# SPDX-License-Identifier: Apache-2.0
"""Convolutions, attention, recurrent and transformer layers, compared with the brute-force counter and closed forms."""

import pytest
import torch
import torch.nn.functional as F
from brute_force import BruteForce
from torch import nn

import flopmeter


def both(run):
    """Counts of flopmeter and the brute-force counter for the same step."""
    with flopmeter.count() as c:
        run()
    with BruteForce() as brute:
        run()
    return c, brute.flops


CONVOLUTIONS = {
    "2d_strided_grouped": (F.conv2d, (2, 8, 16, 16), (12, 4, 3, 3), {"stride": 2, "padding": 1, "groups": 2}, 2 * 2 * 64 * 12 * 4 * 9),
    "1d_dilated": (F.conv1d, (2, 8, 32), (12, 8, 3), {"dilation": 2}, 2 * 2 * 28 * 12 * 8 * 3),
    "3d": (F.conv3d, (2, 4, 6, 6, 6), (5, 4, 3, 3, 3), {}, 2 * 2 * 64 * 5 * 4 * 27),
    "2d_transposed": (F.conv_transpose2d, (2, 8, 9, 9), (8, 6, 3, 3), {"stride": 2}, 2 * 2 * 81 * 8 * 6 * 9),
    "2d_transposed_grouped": (F.conv_transpose2d, (2, 8, 9, 9), (8, 3, 3, 3), {"groups": 2}, 2 * 2 * 81 * 8 * 3 * 9),
    "depthwise": (F.conv2d, (2, 8, 16, 16), (8, 1, 3, 3), {"padding": 1, "groups": 8}, 2 * 2 * 256 * 8 * 9),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("onednn", [True, False])
def test_convolution_forward_and_both_gradients_cost_the_same(name, onednn):
    function, x_shape, w_shape, options, one = CONVOLUTIONS[name]
    x, w = torch.randn(x_shape, requires_grad=True), torch.randn(w_shape, requires_grad=True)
    with torch.backends.mkldnn.flags(enabled=onednn):
        c, brute = both(lambda: function(x, w, **options).sum().backward())
    assert (c.forward, c.backward, brute) == (one, 2 * one, 3 * one)


@pytest.mark.torch2("names of the algorithms")
@pytest.mark.parametrize(("algorithm", "x_shape", "w_shape", "options", "work"), [
    ("thnn_conv2d", (2, 4, 9, 9), (5, 4, 3, 3), {}, 2 * 2 * 49 * 5 * 36),
    ("slow_conv3d", (2, 4, 6, 6, 6), (5, 4, 3, 3, 3), {"stride": 1, "padding": 0}, 2 * 2 * 64 * 5 * 108),
    ("slow_conv_dilated2d", (2, 4, 9, 9), (5, 4, 3, 3), {"dilation": 2}, 2 * 2 * 25 * 5 * 36),
    ("slow_conv_transpose2d", (2, 4, 9, 9), (4, 5, 3, 3), {"stride": 2}, 2 * 2 * 81 * 5 * 36),
])
def test_an_algorithm_that_is_called_by_its_name(algorithm, x_shape, w_shape, options, work):
    x, w = torch.randn(x_shape, requires_grad=True), torch.randn(w_shape, requires_grad=True)
    with flopmeter.count() as c:
        getattr(torch._C._nn, algorithm)(x, w, w_shape[2:], bias=None, **options).sum().backward()
    assert (c.forward, c.backward, c.unsupported) == (work, 2 * work, [])


def test_a_convolution_without_an_input_gradient_costs_one_backward():
    x, w = torch.randn(2, 8, 16, 16), torch.randn(12, 8, 3, 3, requires_grad=True)
    c, brute = both(lambda: F.conv2d(x, w).sum().backward())
    assert c.backward == c.forward == 2 * 2 * 14 * 14 * 12 * 8 * 9
    assert c.hardware_flops == brute


def qkv(batch=2, heads=4, kv_heads=4, length=24, keys=24, width=16):
    q = torch.randn(batch, heads, length, width, requires_grad=True)
    k = torch.randn(batch, kv_heads, keys, width, requires_grad=True)
    v = torch.randn(batch, kv_heads, keys, width, requires_grad=True)
    return q, k, v


@pytest.mark.torch2("scaled_dot_product_attention")
def test_full_attention_on_the_cpu():
    q, k, v = qkv()
    c, brute = both(lambda: F.scaled_dot_product_attention(q, k, v).sum().backward())
    forward = 2 * 2 * 4 * 24 * 24 * 32
    assert (c.forward, c.hardware_flops) == (forward, brute)
    assert c.backward == forward * 5 // 2  # flash recomputes the scores
    assert c.model_flops == 3 * forward
    assert c.attention_pairs == "exact"


@pytest.mark.torch2("scaled_dot_product_attention")
def test_causal_attention_counts_the_pairs_of_the_mask():
    q, k, v = qkv()
    c, brute = both(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward())
    assert c.hardware_flops == brute
    assert c.forward == 2 * 2 * 4 * (24 * 25 // 2) * 32
    assert c.attention_pairs == "exact"


@pytest.mark.torch2("scaled_dot_product_attention")
def test_a_mask_tensor_is_counted_in_full():
    q, k, v = qkv()
    mask = torch.ones(24, 24).tril().log()
    c, brute = both(lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask).sum().backward())
    assert c.forward == 2 * 2 * 4 * 24 * 24 * 32
    assert (c.hardware_flops, c.attention_pairs) == (brute, "full")


def test_eager_attention_is_two_full_matmuls_per_pass():
    q, k, v = qkv()
    c, brute = both(lambda: ((q @ k.transpose(-1, -2)).softmax(-1) @ v).sum().backward())
    forward = 2 * 2 * 4 * 24 * 24 * 32
    assert (c.forward, c.backward, c.hardware_flops, c.attention_pairs) == (forward, 2 * forward, brute, "full")


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="torch 2.8 added grouped matmuls")
def test_rows_after_the_last_group_of_a_grouped_matmul_do_not_count():
    x, experts = torch.randn(12, 8, dtype=torch.bfloat16), torch.randn(3, 8, 16, dtype=torch.bfloat16)
    ends, gradient = torch.tensor([2, 5, 8], dtype=torch.int32), torch.ones(12, 16, dtype=torch.bfloat16)
    with flopmeter.count() as c:
        torch._grouped_mm(x.requires_grad_(), experts.requires_grad_(), offs=ends).backward(gradient)
    work = 2 * 8 * 8 * 16
    assert (c.forward, c.backward, c.bounded_flops) == (work, 2 * work, 0)


@pytest.mark.torch2("scaled_dot_product_attention")
@pytest.mark.skipif("enable_gqa" not in (getattr(F, "scaled_dot_product_attention", str).__doc__ or ""), reason="torch 2.5 added grouped keys")
def test_all_query_heads_use_the_grouped_keys():
    q, k, v = (t.detach() for t in qkv(heads=8, kv_heads=2))
    with flopmeter.count() as c:
        F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert c.hardware_flops == 2 * 2 * 8 * 24 * 24 * 32


@pytest.mark.parametrize(("layer", "gates"), [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)])
@pytest.mark.parametrize("onednn", [True, False])
def test_recurrent_layers(layer, gates, onednn):
    net, x = layer(32, 48), torch.randn(7, 4, 32)
    with torch.backends.mkldnn.flags(enabled=onednn), flopmeter.count() as c:
        net(x)[0].sum().backward()
    forward = 2 * 7 * 4 * gates * (32 * 48 + 48 * 48)
    assert c.forward == forward
    # The input and the first state need no gradient, but torch may compute it.
    without = 2 * forward - 2 * 7 * 4 * gates * 32 * 48 - 2 * 4 * gates * 48 * 48
    assert c.backward in (2 * forward, without, without + 2 * 4 * gates * 48 * 48)


def test_the_fast_path_of_the_transformer_encoder_costs_the_same_as_the_slow_path():
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    x = torch.randn(2, 24, 64)
    forward = 2 * 48 * (4 * 64 * 64 + 2 * 64 * 128) + 4 * 2 * 24 * 24 * 64
    layer.eval()
    with flopmeter.count() as fast, torch.inference_mode():
        layer(x)
    layer.train()
    with flopmeter.count() as slow:
        layer(x)
    assert fast.hardware_flops == slow.hardware_flops == forward


def test_multi_head_attention_fast_path():
    mha, x = nn.MultiheadAttention(64, 4, batch_first=True).eval(), torch.randn(2, 24, 64)
    with flopmeter.count() as c, torch.inference_mode():
        mha(x, x, x, need_weights=False)
    assert c.hardware_flops == 2 * 48 * 4 * 64 * 64 + 4 * 2 * 24 * 24 * 64
