# SPDX-License-Identifier: Apache-2.0
"""One small network, unsplit and split over ranks in several ways; the total work is the same."""

import torch
import torch.distributed as dist
from torch import nn

WIDTH, EXPERTS, WORDS, LENGTH, SAMPLES = 16, 4, 24, 8, 8
TOKENS = LENGTH * SAMPLES


class Reduce(torch.autograd.Function):
    """Sums the partial results of a group's ranks; each rank receives the full gradient."""

    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Share(torch.autograd.Function):
    """Gives all ranks of a group the same input; sums their gradients."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


def gathered(x, group, dim):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, x.contiguous(), group=group)
    return torch.cat(parts, dim=dim)


def scattered(x, group, dim):
    x = x.clone()
    dist.all_reduce(x, group=group)
    return x.chunk(dist.get_world_size(group), dim=dim)[dist.get_rank(group)].contiguous()


class Gather(torch.autograd.Function):
    """Concatenates the parts of a group's ranks."""

    @staticmethod
    def forward(ctx, x, group, dim):
        ctx.group, ctx.dim = group, dim
        return gathered(x, group, dim)

    @staticmethod
    def backward(ctx, gradient):
        return scattered(gradient, ctx.group, ctx.dim), None, None


class Scatter(torch.autograd.Function):
    """This rank's part of the sum over the ranks of a group."""

    @staticmethod
    def forward(ctx, x, group, dim):
        ctx.group, ctx.dim = group, dim
        return scattered(x, group, dim)

    @staticmethod
    def backward(ctx, gradient):
        return gathered(gradient, ctx.group, ctx.dim), None, None


class Block(nn.Module):
    """Two layers; this rank holds one of ``parts`` parts."""

    def __init__(self, parts=1, group=None):
        super().__init__()
        self.group = group
        self.up = nn.Linear(WIDTH, 4 * WIDTH // parts, bias=False)
        self.down = nn.Linear(4 * WIDTH // parts, WIDTH, bias=False)

    def forward(self, x):
        if self.group is None:
            return x + self.down(torch.relu(self.up(x)))
        return x + Reduce.apply(self.down(torch.relu(self.up(Share.apply(x, self.group)))), self.group)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.words = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x):
        return self.words(x) * self.router(x).softmax(-1).amax(-1, keepdim=True)


class Network(nn.Sequential):
    def __init__(self, parts=1, group=None):
        super().__init__(Block(parts, group), Block(parts, group), Head())


class Attention(nn.Module):
    """Attention over the full sequence; with a group, this rank holds a part of it."""

    def __init__(self, group=None):
        super().__init__()
        self.group = group
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))

    def forward(self, x):
        key, value = self.key(x), self.value(x)
        if self.group is not None:
            key, value = (Gather.apply(each, self.group, 1) for each in (key, value))
        return x + nn.functional.scaled_dot_product_attention(self.query(x), key, value)


class Experts(nn.Module):
    """A router and experts; this rank holds one of ``parts`` parts. All tokens go to all experts, weighted.

    The ranks of a group have the same tokens, or with ``own`` separate tokens that are exchanged.
    """

    def __init__(self, parts=1, place=0, group=None, own=False):
        super().__init__()
        self.group, self.own, self.first = group, own, place * EXPERTS // parts
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(Block() for _ in range(EXPERTS // parts))

    def mix(self, x, weights):
        return sum(weights[..., self.first + i, None] * expert(x) for i, expert in enumerate(self.experts))

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        if self.group is None:
            return self.mix(x, weights)
        if self.own:
            return Scatter.apply(self.mix(*(Gather.apply(each, self.group, 0) for each in (x, weights))), self.group, 0)
        return Reduce.apply(self.mix(*(Share.apply(each, self.group) for each in (x, weights))), self.group)


def attentive(group=None):
    return nn.Sequential(Attention(group), Block(), Head())


def mixture(*split):
    return nn.Sequential(Block(), Experts(*split), Head())


def batch(samples=SAMPLES, length=LENGTH):
    return torch.ones(samples, length, WIDTH)
