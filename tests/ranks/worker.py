# SPDX-License-Identifier: Apache-2.0
"""One rank, started by torchrun: trains the network under each given layout, one run directory each."""

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import flopmeter
import torch
import torch.distributed as dist
from network import LENGTH, SAMPLES, TOKENS, Network, attentive, batch, mixture
from torch import nn

STEPS = 3
REPLICATED = {"tensor": ["2"], "mesh": ["2"], "experts": ["0", "1.router", "2"]}  # modules that both ranks of a pair run


def monitored(directory, model, steps=STEPS, **options):
    return flopmeter.Monitor(directory, model=model, console=False, peak_tflops=1, mode="profiler", flops_profile_freq=1, **options)


def train(directory, model, samples, forward_backward, **options):
    """Trains; this rank reports ``samples`` per step."""
    monitor = monitored(directory, model, **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        with monitor.step(samples=samples, tokens=samples * TOKENS // SAMPLES):
            forward_backward()
            optimizer.step()
            optimizer.zero_grad()
    monitor.finish()


def ddp(directory):
    samples = SAMPLES // dist.get_world_size()
    model = nn.parallel.DistributedDataParallel(Network())
    train(directory, model, samples, lambda: model(batch(samples)).sum().backward())


def fsdp(directory):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = Network()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    samples = SAMPLES // dist.get_world_size()
    train(directory, model, samples, lambda: model(batch(samples)).sum().backward())


def groups(size):
    """Group of this rank among groups of consecutive ranks, its index in the group, and the number of groups."""
    made = [dist.new_group(list(range(first, first + size))) for first in range(0, dist.get_world_size(), size)]
    return made[dist.get_rank() // size], dist.get_rank() % size, len(made)


def tensor(directory):
    group, _, replicas = groups(2)
    samples = SAMPLES // replicas
    model = Network(2, group)
    train(directory, model, samples, lambda: model(batch(samples)).sum().backward(), tensor_parallel=2, replicated_modules="2")


def mesh(directory):
    """Tensor parallelism of torch, with FSDP2 across pairs if there are two; the layout is detected."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    replicas = dist.get_world_size() // 2
    shape, names = ((2,), ("tp",)) if replicas == 1 else ((replicas, 2), ("dp", "tp"))
    ranks = init_device_mesh("cpu", shape, mesh_dim_names=names)
    model = Network()
    for block in (model[0], model[1]):
        parallelize_module(block, ranks["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    if replicas > 1:
        fully_shard(model, mesh=ranks["dp"])
    samples = SAMPLES // replicas
    train(directory, model, samples, lambda: model(batch(samples)).sum().backward(), replicated_modules="2")


def pipeline(directory):
    _, stage, replicas = groups(2)
    other = dist.get_rank() ^ 1
    samples = SAMPLES // replicas
    whole = Network()
    model = whole[0] if stage == 0 else nn.Sequential(whole[1], whole[2])

    def forward_backward():
        for _ in range(2):  # micro-batches
            x = batch(samples // 2)
            if stage == 0:
                y = model(x)
                dist.send(y.detach(), other)
                gradient = torch.empty_like(y)
                dist.recv(gradient, other)
                y.backward(gradient)
            else:
                x = torch.empty_like(x)
                dist.recv(x, other)
                x.requires_grad_()
                model(x).sum().backward()
                dist.send(x.grad, other)

    train(directory, model, samples, forward_backward, pipeline_parallel=2)


def context(directory):
    """Each rank of a pair has half of each sequence."""
    group, _, replicas = groups(2)
    samples = SAMPLES // replicas
    model = nn.parallel.DistributedDataParallel(attentive(group))
    part = batch(samples, LENGTH // 2)
    train(directory, model, samples, lambda: model(part).sum().backward(), context_parallel=2)


def experts(directory):
    """Each rank of a pair has half of the experts and all tokens; the other work is replicated."""
    group, place, replicas = groups(2)
    samples = SAMPLES // replicas
    model = mixture(2, place, group)
    options = {"tensor_parallel": 2, "expert_parallel": 2, "replicated_modules": ",".join(REPLICATED["experts"])}
    train(directory, model, samples, lambda: model(batch(samples)).sum().backward(), **options)


def own_experts(directory):
    """Each rank has separate samples and half of the experts."""
    group, place, _ = groups(2)
    samples = SAMPLES // dist.get_world_size()
    model = mixture(2, place, group, True)
    train(directory, model, samples, lambda: model(batch(samples)).sum().backward(), expert_parallel=2)


def late(directory):
    """Rank 1 sleeps inside the backward pass, before the collectives of DDP."""
    plain = Network()
    if dist.get_rank() == 1:
        plain[2].words.weight.register_hook(lambda gradient: time.sleep(0.15))
    model = nn.parallel.DistributedDataParallel(plain)
    monitor = monitored(directory, model, log_interval=2)
    for _ in range(8):
        with monitor.step(samples=SAMPLES):
            model(batch()).sum().backward()
    monitor.finish()


def broadcast(directory):
    """Rank 0 measures for both ranks."""
    samples = SAMPLES if dist.get_rank() == 0 else SAMPLES // 2
    model = nn.parallel.DistributedDataParallel(Network())
    monitor = monitored(directory, model, log_interval=2, broadcast=True, broadcast_deadline=30_000)
    for _ in range(4):
        with monitor.step(samples=samples):
            model(batch(samples)).sum().backward()
    monitor.finish()


def dead(directory):
    """Rank 1 dies; rank 0 continues without collectives and exits."""
    monitor = monitored(directory, None, log_interval=1, broadcast=True, broadcast_deadline=2000)
    times = []
    for step in range(30):
        begin = time.monotonic()
        with monitor.step(samples=1):
            torch.ones(4, 4) @ torch.ones(4, 4)
            time.sleep(0.05)
        times.append(time.monotonic() - begin)
        if step == 3 and dist.get_rank() == 1:
            os._exit(0)
    begin = time.monotonic()
    monitor.finish()
    report = {"notes": monitor.status["notes"], "longest": max(times), "finish": time.monotonic() - begin}
    (Path(directory) / "report.json").write_text(json.dumps(report))
    os._exit(0)


def ends_first(directory):
    """Rank 1 takes no step; rank 0 finishes long before the deadline."""
    monitor = monitored(directory, None, log_interval=1, broadcast=True, broadcast_deadline=200_000)
    if dist.get_rank() == 0:
        for _ in range(5):
            with monitor.step(samples=1):
                torch.ones(4, 4) @ torch.ones(4, 4)
        begin = time.monotonic()
        monitor.finish()
        report = {"notes": monitor.status["notes"], "finish": time.monotonic() - begin}
        (Path(directory) / "report.json").write_text(json.dumps(report))


class Counting(dist.ProcessGroup):
    """Process group for DDP that forwards and counts all calls."""

    def __init__(self, inner):
        super().__init__(inner.rank(), inner.size())
        self.inner, self.calls = inner, Counter()

    def getBackendName(self):
        return "counting"


def _counted(name):
    def call(self, *args):
        self.calls[name] += 1
        return getattr(self.inner, name)(*args)

    return call


for _name in ("allreduce", "broadcast", "allgather", "barrier", "send", "recv", "reduce_scatter", "_allgather_base"):
    setattr(Counting, _name, _counted(_name))


def counted(directory):
    """Number of collectives of DDP, without and with a monitor."""
    seen = []
    for watch in (False, True):
        group = Counting(dist.group.WORLD)
        model = nn.parallel.DistributedDataParallel(Network(), process_group=group)
        before = dist.group.WORLD._get_sequence_number_for_group()
        monitor = monitored(directory, model) if watch else None
        for _ in range(STEPS):
            if monitor is not None:
                monitor.begin_step(samples=SAMPLES)
            model(batch()).sum().backward()
            if monitor is not None:
                monitor.end_step()
        if monitor is not None:
            monitor.finish()
        sequence = dist.group.WORLD._get_sequence_number_for_group() - before
        seen.append({"calls": dict(group.calls), "sequence": sequence, "groups": len(dist.distributed_c10d._world.pg_map)})
    (Path(directory) / f"collectives.{dist.get_rank()}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for name in sys.argv[2:]:
        directory = Path(sys.argv[1]) / name
        directory.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        globals()[name](directory)
        dist.barrier()
    dist.destroy_process_group()
