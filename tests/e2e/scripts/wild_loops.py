# SPDX-License-Identifier: Apache-2.0
"""wild_loops.py NAME: runs one uncommon loop on linear layers of size 16, by default with twelve batches of 8."""

import copy
import io
import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
WIDTH, ROWS = 16, 8


def loader(batches=12):
    return torch.utils.data.DataLoader(torch.ones(batches * ROWS, WIDTH), batch_size=ROWS)


def linear():
    model = nn.Linear(WIDTH, WIDTH)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def two_networks():
    """Two models and two optimizers per batch; the generator runs twice."""
    (generator, first), (critic, second) = linear(), linear()
    for batch in loader():
        (critic(batch).mean() - critic(generator(batch).detach()).mean()).backward()
        second.step()
        critic(generator(batch)).mean().backward()
        first.step()


def teacher():
    (model, optimizer), (frozen, _) = linear(), linear()
    for batch in loader():
        with torch.no_grad():
            target = frozen.eval()(batch)
        (model(batch) - target).pow(2).mean().backward()
        optimizer.step()


def no_optimizer():
    """100 batches, parameters updated manually."""
    model, _ = nn.Linear(WIDTH, WIDTH), None
    for batch in loader(100):
        model.zero_grad()
        model(batch).sum().backward()
        for parameter in model.parameters():
            parameter.data -= 0.1 * parameter.grad


def evaluation_mode():
    model, optimizer = linear()
    model.eval()
    for batch in loader():
        model(batch).sum().backward()
        optimizer.step()


def folds():
    for _ in range(3):
        model, optimizer = linear()
        for batch in loader():
            model(batch).sum().backward()
            optimizer.step()


def copies():
    model, optimizer = linear()
    for batch in loader():
        model(batch).sum().backward()
        optimizer.step()
        copy.deepcopy(model)(batch)
        torch.save(model, io.BytesIO())


globals()[sys.argv[1]]()
