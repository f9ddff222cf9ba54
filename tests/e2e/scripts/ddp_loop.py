# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training over gloo, for torchrun. Loader workers are spawned, so they start as separate Python processes."""

import os

import torch
import torch.distributed as dist
from tiny_gpt import LENGTH, VOCABULARY, Gpt

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rows = torch.randint(VOCABULARY, (40, LENGTH + 1))
    workers = 1 if os.environ["RANK"] == "0" else 0
    loader = torch.utils.data.DataLoader(
        rows, batch_size=4, num_workers=workers, multiprocessing_context="spawn" if workers else None
    )
    model = torch.nn.parallel.DistributedDataParallel(Gpt())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        _, loss = model(batch[:, :-1], batch[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()
