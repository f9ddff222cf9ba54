# SPDX-License-Identifier: Apache-2.0
"""Trains two gloo ranks with DistributedDataParallel in a network namespace, with injected faults.

The kernel's traffic shaper slows down the loopback device of the namespace; extra work on one rank makes it slow.
Healthy and faulty trainings alternate on the same ranks.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import pathlib
import subprocess
import sys

import injected
import torch
import torch.distributed as dist
from torch import nn

RANKS = 2


@dataclasses.dataclass
class RanksPlan(injected.Plan):
    width: int = 128  # few parameters, many tokens: little communication in a healthy run
    heads: int = 4
    layers: int = 2
    batch: int = 128
    slow_rank: float = 0.0  # extra seconds of CPU time per forward pass on the last rank
    link_mbit: int = 0  # rate of the loopback device; 0: unlimited


class Slowed(nn.Module):
    """A model with extra CPU time per forward pass."""

    def __init__(self, model: nn.Module, seconds: float) -> None:
        super().__init__()
        self.model, self.seconds = model, seconds

    def forward(self, x, y):
        injected.burn(self.seconds)
        return self.model(x, y)


def shape_link(mbit: int) -> None:
    subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], capture_output=True, check=False)
    if mbit:
        shaper = ["tbf", "rate", f"{mbit}mbit", "burst", "128kb", "latency", "1s"]
        subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", *shaper], check=True)


def take_turns(directories: list[str], plans: list[RanksPlan], rounds: int, steps: int) -> None:
    rank = dist.get_rank()
    trainings = []
    for directory, plan in zip(directories, plans, strict=True):
        training = injected.Training(directory, plan)
        slow = plan.slow_rank if rank == RANKS - 1 else 0.0
        training.model = nn.parallel.DistributedDataParallel(Slowed(training.model, slow), gradient_as_bucket_view=True)
        trainings.append(training)
    for number in range(rounds):
        for training in trainings if number % 2 == 0 else reversed(trainings):
            dist.barrier()
            if rank == 0:
                shape_link(training.plan.link_mbit)
            dist.barrier()
            training.resume(steps)


def run(directories: list[pathlib.Path], plans: list[RanksPlan], rounds: int = 6, steps: int = 14) -> None:
    """Trains the plans, one directory each; raises if a rank fails or the namespace cannot be created."""
    task = json.dumps([[str(d) for d in directories], [dataclasses.asdict(p) for p in plans], rounds, steps])
    python = [sys.executable, __file__, task]
    start = 'ip link set lo up && for r in 0 1; do RANK=$r "$@" & pids="$pids $!"; done; for p in $pids; do wait $p || exit 1; done'
    settings = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "WORLD_SIZE": str(RANKS), "GLOO_SOCKET_IFNAME": "lo"}
    subprocess.run(["unshare", "-rn", "sh", "-c", start, "sh", *python], check=True, timeout=300, env={**os.environ, **settings})


if __name__ == "__main__":
    directories, plans, rounds, steps = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[int(os.environ["RANK"]) % len(cpus)]})
    dist.init_process_group("gloo")
    take_turns(directories, [RanksPlan(**plan) for plan in plans], rounds, steps)
    gc.collect()  # models keep the group, whose threads abort the process (torch 2.13) if they outlive the interpreter
    dist.destroy_process_group()
