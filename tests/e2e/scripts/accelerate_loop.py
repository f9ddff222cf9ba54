# SPDX-License-Identifier: Apache-2.0
"""A training loop for ``accelerate launch``."""

import torch
from accelerate import Accelerator
from tiny_gpt import LENGTH, VOCABULARY, Gpt

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = Gpt()
loader = torch.utils.data.DataLoader(torch.randint(VOCABULARY, (32, LENGTH + 1)), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), loader)
for batch in loader:
    with accelerator.accumulate(model):
        _, loss = model(batch[:, :-1], batch[:, 1:])
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
