# SPDX-License-Identifier: Apache-2.0
"""A plain loop: ``wrap`` times the wait for data, and each optimizer step becomes a step."""

import flopmeter
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(torch.randn(512, 64), batch_size=16)

monitor = flopmeter.Monitor("logs/plain_loop", model=model)
for batch in monitor.wrap(loader):
    loss = (model(batch) - batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
monitor.finish()
