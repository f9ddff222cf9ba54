# SPDX-License-Identifier: Apache-2.0
"""A brute-force FLOP counter for the tests: counts all operators that torch dispatches, with handwritten costs.

It shares no code with flopmeter. A forward operator belongs to the module that called it. A backward operator belongs to
the module whose operator created the running autograd node; the sequence number of the node, which is known during the
forward dispatch, links the two. A module that runs during a backward pass is recomputation.
"""

from collections import Counter, namedtuple
from math import prod

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def matmul_flops(name, args, out):
    """FLOPs of matmuls (two per multiply-add); None for other operators."""
    if name == "mm":
        return 2 * prod(args[0].shape) * args[1].shape[1]
    if name == "addmm":
        return 2 * prod(args[1].shape) * args[2].shape[1]
    if name == "bmm":
        return 2 * prod(args[0].shape) * args[1].shape[2]
    if name == "baddbmm":
        return 2 * prod(args[1].shape) * args[2].shape[2]
    if name == "_grouped_mm":
        # Rows sorted by expert: (rows, in) x (experts, in, out); weight gradient: (in, rows) x (rows, out).
        return 2 * prod(args[0].shape) * args[1].shape[-1]
    return None


def convolution_flops(name, args, out):
    """Forward: each output element sums over the inputs of its group and the kernel; the same for each gradient."""
    if name == "convolution":
        return 2 * prod(out.shape) * prod(args[1].shape[1:])
    if name == "convolution_backward":
        gradient, weight, mask = args[0], args[2], args[-1]
        return 2 * prod(gradient.shape) * prod(weight.shape[1:]) * (int(mask[0]) + int(mask[1]))
    return None


def pairs(query, key, causal):
    """Number of (query, key) pairs that the kernel computes."""
    q, k = query.shape[-2], key.shape[-2]
    return sum(min(i + 1, k) for i in range(q)) if causal else q * k


def is_causal(name, args, kwargs):
    """The causal flag: fifth argument in forward, eighth in backward."""
    position = 7 if name.endswith("backward") else 4
    return args[position] if len(args) > position else kwargs.get("is_causal", False)


def attention_flops(name, args, kwargs):
    """Fused attention: two matmuls in forward; backward recomputes the scores and computes four gradients."""
    if name == "_scaled_dot_product_flash_attention_for_cpu":
        query, key, value = args[:3]
        heads = prod(query.shape[:2])
        return 2 * heads * pairs(query, key, is_causal(name, args, kwargs)) * (query.shape[-1] + value.shape[-1])
    if name == "_scaled_dot_product_flash_attention_for_cpu_backward":
        query, key, value = args[1:4]
        heads = prod(query.shape[:2])
        return 2 * heads * pairs(query, key, is_causal(name, args, kwargs)) * (3 * query.shape[-1] + 2 * value.shape[-1])
    return None


Row = namedtuple("Row", "phase module op shapes causal mask")


class OpCounter(TorchDispatchMode):
    """Counts operators in the `with` block: `calls` and `flops` by Row, `unknown` by operator."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.calls, self.flops = Counter(), Counter()
        self.unknown = Counter()
        self.stack, self.owner, self.hooks = [""], {}, []

    def __enter__(self):
        for name, module in self.model.named_modules():
            self.hooks.append(module.register_forward_pre_hook(lambda *_, name=name: self.stack.append(name)))
            self.hooks.append(module.register_forward_hook(self.leave, always_call=True))
        return super().__enter__()

    def __exit__(self, *error):
        for hook in self.hooks:
            hook.remove()
        return super().__exit__(*error)

    def leave(self, *_):
        self.stack.pop()

    def by_phase(self):
        """FLOPs of forward, backward, and recomputation."""
        return self.total(lambda row: row.phase)

    def total(self, key):
        """FLOPs by `key` of their Row."""
        sums = Counter()
        for row, flops in self.flops.items():
            sums[key(row)] += flops
        return sums

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        node = torch._C._current_autograd_node()
        if node is None:  # the operator's node is the last one created; a later operator may have none
            self.owner.setdefault(torch.autograd._get_sequence_nr() - 1, self.stack[-1])
        out = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        flops = matmul_flops(name, args, out)
        if flops is None:
            flops = convolution_flops(name, args, out)
        if flops is None:
            flops = attention_flops(name, args, kwargs)
        if flops is None:
            if any(word in name for word in ("mm", "conv", "attention", "linear", "dot", "mv", "einsum")):
                self.unknown[name] += 1
            return out
        if node is None:
            phase, module = "forward", self.stack[-1]
        elif len(self.stack) > 1:
            phase, module = "recompute", self.stack[-1]
        else:
            phase, module = "backward", self.owner[node._sequence_nr()]
        shapes = tuple(tuple(value.shape) for value in args if isinstance(value, torch.Tensor))
        causal = mask = None
        if "scaled_dot_product" in name:
            causal = is_causal(name, args, kwargs)
            mask = None if kwargs.get("attn_mask") is None else tuple(kwargs["attn_mask"].shape)
        row = Row(phase, module, name, shapes, causal, mask)
        self.calls[row] += 1
        self.flops[row] += flops
        return out
