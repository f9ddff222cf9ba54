# SPDX-License-Identifier: Apache-2.0
"""One small network, whole and split over ranks in each way; the work is the same in all of them."""

import torch
import torch.distributed as dist
from torch import nn

WIDTH, EXPERTS, WORDS, LENGTH, SAMPLES = 16, 4, 24, 8, 8
TOKENS = LENGTH * SAMPLES


class Reduce(torch.autograd.Function):
    """Sums partial results of the ranks of a group; each gets the whole gradient back."""

    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Share(torch.autograd.Function):
    """Gives all ranks of a group the same input; their gradients are summed."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class Block(nn.Module):
    """Two layers, of which this rank holds one part in ``parts``."""

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


def batch(samples=SAMPLES):
    return torch.ones(samples, LENGTH, WIDTH)
