# SPDX-License-Identifier: Apache-2.0
"""Monitors a plain PyTorch loop. ``wrap`` measures the data wait; each optimizer step becomes a step."""

import torch

import flopmeter

model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512))
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(torch.randn(2048, 512), batch_size=64)

monitor = flopmeter.Monitor("logs/plain_loop", model=model)
for batch in monitor.wrap(loader):
    loss = (model(batch) - batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
monitor.finish()
