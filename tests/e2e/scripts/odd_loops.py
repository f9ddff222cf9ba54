# SPDX-License-Identifier: Apache-2.0
"""Two loops in one program: two optimizers per step on a compiled model, then another model with a loader."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
first = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in first]
compiled = torch.compile(first, backend="eager")
for _ in range(6):
    compiled(torch.ones(4, 8)).sum().backward()
    for optimizer in optimizers:
        optimizer.step()

second = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(second.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(torch.ones(120, 16), batch_size=3):
    second(batch).sum().backward()
    optimizer.step()
