# SPDX-License-Identifier: Apache-2.0
"""Parts of the cases: a model, a loop, and the table that they register in."""

import torch
from torch import nn

WIDTH = 8
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Model(nn.Module):
    """A linear layer between two conversions."""

    def __init__(self, take=lambda batch: batch, give=lambda output: output):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.take, self.give = take, give

    def forward(self, *args, **kwargs):
        return self.give(self.layer(self.take(*args, **kwargs)))


def train(model, make_batch=lambda x: x, loss_of=lambda output: output.sum(), optimizer=None, steps=4):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        batch = make_batch(torch.randn(2, WIDTH))
        loss = loss_of(model(batch))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"{loss.item():.9g}")


def with_batch(make, take):
    return lambda: train(Model(take=take), make)


def with_output(make, take):
    return lambda: train(Model(give=make), loss_of=take)
