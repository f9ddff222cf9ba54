# SPDX-License-Identifier: Apache-2.0
"""One rank of two, started by torchrun: creates monitors before, during, between, and after process groups."""

import os
import sys
from pathlib import Path

import flopmeter
import torch
import torch.distributed as dist

directory = Path(sys.argv[1])
launched_as = int(os.environ["RANK"])


def monitored(name):
    return flopmeter.Monitor(directory / name, console=False, peak_tflops=1, log_interval=1)


def step(monitor, group=None):
    """Reports its rank as the number of samples."""
    rank = dist.get_rank() if dist.is_initialized() else launched_as
    with monitor.step(samples=rank + 1):
        product = torch.ones(4, 4) @ torch.ones(4, 4)
        if dist.is_initialized():
            dist.all_reduce(product, group=group)


before = monitored("before")
step(before)
dist.init_process_group("gloo")
step(before)
before.finish()

alone = [dist.new_group([rank]) for rank in range(2)][launched_as]
uneven = monitored("uneven")
for _ in range(4 if launched_as == 0 else 2):
    step(uneven, alone)
uneven.finish()

dist.new_group([0, 1], group_desc="PIPELINE_MODEL_PARALLEL_GROUP")  # Megatron's description
described = monitored("described")
step(described)
described.finish()
dist.barrier()
dist.destroy_process_group()

# As after an elastic restart: another group with swapped ranks.
dist.init_process_group("gloo", init_method=f"file://{directory / 'store'}", rank=1 - launched_as, world_size=2)
again = monitored("again")
step(again)
again.finish()
dist.barrier()
dist.destroy_process_group()

after = monitored("after")
step(after)
after.finish()
