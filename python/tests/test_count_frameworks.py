# SPDX-License-Identifier: Apache-2.0
"""torch.compile, DDP, and FSDP: all dispatched operators are counted, and compiled code does not change."""

import os

import pytest
import torch
import torch.distributed as dist
from torch import nn

import flopmeter

FORWARD = 2 * 16 * (32 * 64 + 64 * 8)
# The input of the first layer needs no gradient.
STEP = 3 * FORWARD - 2 * 16 * 32 * 64


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)), torch.randn(16, 32)


def counted_step(model, x):
    with flopmeter.count() as c:
        model(x).sum().backward()
    return c


@pytest.mark.torch2("torch.compile")
def test_compiled_code_is_counted_in_the_first_and_later_calls():
    model, x = make()
    compiled = torch.compile(model)
    first = counted_step(compiled, x)
    steady = counted_step(compiled, x)
    assert (first.hardware_flops, steady.hardware_flops) == (STEP, STEP)
    assert (steady.forward, steady.backward, steady.recompute) == (FORWARD, STEP - FORWARD, 0)


@pytest.mark.torch2("torch.compile")
def test_counting_does_not_trigger_a_recompilation():
    model, x = make()
    compiled = torch.compile(model)
    compiled(x).sum().backward()
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    counted_step(compiled, x)
    compiled(x).sum().backward()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before


@pytest.fixture
def one_rank():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29711")
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_ddp(one_rank):
    model, x = make()
    assert counted_step(nn.parallel.DistributedDataParallel(model), x).hardware_flops == STEP


@pytest.mark.torch2("FSDP2 on a CPU", since=(2, 7))
def test_fsdp2(one_rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model, x = make()
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    c = counted_step(model, x)
    assert (c.forward, c.backward, c.recompute) == (FORWARD, STEP - FORWARD, 0)


def _rank(rank, file, results):
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    model, x = make()
    results[rank] = counted_step(nn.parallel.DistributedDataParallel(model), x).hardware_flops
    dist.destroy_process_group()


def test_each_of_two_ranks_counts_its_own_work(tmp_path):
    with torch.multiprocessing.Manager() as manager:
        results = manager.dict()
        torch.multiprocessing.spawn(_rank, args=(tmp_path / "store", results), nprocs=2)
        assert dict(results) == {0: STEP, 1: STEP}
