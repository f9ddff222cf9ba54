# SPDX-License-Identifier: Apache-2.0
"""An independent counter: a dispatch mode that computes FLOPs from the shapes of each operator's tensors."""

import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
# Absent from torch before 2.1.
FUSED_ATTENTION = getattr(aten, "_scaled_dot_product_flash_attention_for_cpu", None)
FUSED_ATTENTION_BACKWARD = getattr(aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None)


def _product(a, b):
    return 2 * a.numel() * b.shape[-1]


def _convolution(x, weight, out, transposed):
    positions = (x if transposed else out).shape[2:]
    return 2 * x.shape[0] * math.prod(positions) * weight.numel()


def _attention_pairs(queries, keys, causal):
    return sum(1 for q in range(queries) for k in range(keys) if k <= q) if causal else queries * keys


def _attention(query, key, value, causal):
    batch, heads, length, width = query.shape
    pairs = _attention_pairs(length, key.shape[2], causal)
    return 2 * batch * heads * pairs * (width + value.shape[3])


def _attention_backward(query, key, value, causal):
    batch, heads, length, width = query.shape
    pairs = _attention_pairs(length, key.shape[2], causal)
    return 2 * batch * heads * pairs * (3 * width + 2 * value.shape[3])


def _price(func, args, kwargs, out):
    packet = func.overloadpacket
    if packet in (aten.mm, aten.bmm):
        return _product(args[0], args[1])
    if packet in (aten.addmm, aten.addmm_, aten.baddbmm, aten.baddbmm_, aten._addmm_activation):
        return _product(args[1], args[2])
    if packet in (aten.addmv, aten.mv):
        return 2 * args[-2].numel()
    if packet in (aten.dot, aten.vdot):
        return 2 * args[0].numel()
    if packet is aten.convolution:
        return _convolution(args[0], args[1], out, args[6])
    if packet is aten.convolution_backward:
        grad, x, weight = args[:3]
        return _convolution(x, weight, grad, args[7]) * (int(args[10][0]) + int(args[10][1]))
    if packet is FUSED_ATTENTION:
        return _attention(*args[:3], causal=args[4] if len(args) > 4 else kwargs.get("is_causal", False))
    if packet is FUSED_ATTENTION_BACKWARD:
        return _attention_backward(*args[1:4], causal=args[7])
    return 0


class BruteForce(TorchDispatchMode):
    """Total FLOPs of all operators in the block, as ``flops``."""

    def __init__(self):
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self.flops += _price(func, args, kwargs, out)
        return out
