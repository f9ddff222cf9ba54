# SPDX-License-Identifier: Apache-2.0
"""One of two ranks: python two_ranks.py RANK DIRECTORY. Prints what test_loops.py compares."""

import json
import sys

import torch
import torch.distributed as dist

import simgpu

rank, directory = int(sys.argv[1]), sys.argv[2]
simgpu.configure(values=True)
dist.init_process_group("simccl", store=dist.FileStore(directory + "/store", 2), rank=rank, world_size=2)
model = torch.nn.Linear(4, 1, bias=False, device="simgpu")
parallel = torch.nn.parallel.DistributedDataParallel(model)
simgpu.reset()
parallel(torch.full((1, 4), float(rank + 1), device="simgpu")).sum().backward()
(collective,) = [kernel for kernel in simgpu.truth().kernels if kernel.kind == "communication"]
print(json.dumps({"gradient": model.weight.grad[0, 0].item(), "collective_end": collective.end}))
dist.destroy_process_group()
