# SPDX-License-Identifier: Apache-2.0
"""Counting does not change the loss, the gradients, or other counts."""

import torch
from brute_force import BruteForce
from small_gpt import SmallGpt, step_flops

import flopmeter


def train(steps, counted):
    torch.manual_seed(1)
    model = SmallGpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, counts = [], []
    for _ in range(steps):
        tokens = torch.randint(model.vocabulary, (2, model.length))
        if counted:
            with flopmeter.count() as c:
                loss = model(tokens)
                loss.backward()
            counts.append(c.hardware_flops)
        else:
            loss = model(tokens)
            loss.backward()
        losses.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
    model(tokens).backward()
    return torch.stack(losses), [p.grad for p in model.parameters()], counts


def test_fifty_steps_are_bit_identical_and_count_the_expected_integer():
    plain_losses, plain_grads, _ = train(50, counted=False)
    losses, grads, counts = train(50, counted=True)
    assert torch.equal(plain_losses, losses)
    assert all(torch.equal(p, g) for p, g in zip(plain_grads, grads, strict=True))
    assert set(counts) == {step_flops(SmallGpt(), batch=2)}


def test_the_count_of_a_step_equals_the_brute_force_count():
    model = SmallGpt()
    tokens = torch.randint(model.vocabulary, (2, model.length))
    with flopmeter.count() as c:
        model(tokens).backward()
    with BruteForce() as brute:
        model(tokens).backward()
    assert c.hardware_flops == brute.flops
    assert c.forward * 2 == c.backward
