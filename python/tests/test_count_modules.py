# SPDX-License-Identifier: Apache-2.0
"""FLOPs are attributed to modules, for forward, backward, and recomputation, with exact sums."""

import pytest
import torch
from small_gpt import SmallGpt
from torch import nn
from torch.utils.checkpoint import checkpoint

import flopmeter


def total(by_module):
    return sum(flops.hardware_flops for flops in by_module.values())


@pytest.mark.torch2("the name of the autograd node that runs")
def test_each_module_has_its_forward_and_backward_flops():
    model = SmallGpt()
    with flopmeter.count(modules=model) as c:
        model(torch.randint(64, (2, 16))).backward()
    tokens, width = 32, 32
    for i in range(2):
        assert c.by_module[f"blocks.{i}.qkv"] == (6 * tokens * width**2, 12 * tokens * width**2, 0)
        assert c.by_module[f"blocks.{i}.up"] == (8 * tokens * width**2, 16 * tokens * width**2, 0)
        # the two matmuls of attention belong to the block
        assert c.by_module[f"blocks.{i}"] == (4 * tokens * 16 * width, 8 * tokens * 16 * width, 0)
    assert c.by_module["head"] == (2 * tokens * width * 64, 4 * tokens * width * 64, 0)
    assert total(c.by_module) == c.hardware_flops
    assert c.unattributed.hardware_flops == 0


@pytest.mark.torch2("the name of the autograd node that runs")
@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputed_work_belongs_to_the_module_that_runs_again(reentrant):
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.block = nn.Linear(8, 16), nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))

        def forward(self, x):
            return checkpoint(self.block, self.first(x), use_reentrant=reentrant)

    model, x = Checkpointed(), torch.randn(4, 8)
    with flopmeter.count(modules=model) as c:
        model(x).square().sum().backward()
    one = 2 * 4
    assert c.by_module["first"] == (one * 8 * 16, one * 8 * 16, 0)
    assert c.by_module["block.0"] == (one * 16 * 32, 2 * one * 16 * 32, one * 16 * 32)
    assert c.by_module["block.2"].backward == 2 * one * 32 * 8
    assert total(c.by_module) == c.hardware_flops


def test_work_outside_the_model_is_unattributed():
    model, x = nn.Linear(8, 8), torch.randn(4, 8)
    with flopmeter.count(modules=model) as c:
        y = model(x)
        (y @ y.t()).sum().backward()
    assert c.by_module[""].forward == 2 * 4 * 8 * 8
    assert c.unattributed.forward == 2 * 4 * 8 * 4
    assert total(c.by_module) + c.unattributed.hardware_flops == c.hardware_flops


def test_the_hooks_are_removed_when_the_count_ends():
    model = nn.Linear(8, 8)
    with flopmeter.count(modules=model):
        model(torch.randn(1, 8))
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def test_several_models_by_name():
    models = {"teacher": nn.Linear(8, 8), "student": nn.Sequential(nn.Linear(8, 4))}
    with flopmeter.count(modules=models) as c:
        for model in models.values():
            model(torch.randn(2, 8))
    assert c.by_module["teacher"].forward == 2 * 2 * 8 * 8
    assert c.by_module["student.0"].forward == 2 * 2 * 8 * 4
