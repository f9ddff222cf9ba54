# SPDX-License-Identifier: Apache-2.0
"""A typical loop: random batches, gradient accumulation, clipping, periodic evaluation.

plain_loop.py STEPS [ENDING]: prints the losses as hexadecimal floats, then exits as specified by ENDING.
"""

import os
import signal
import sys
import time

import torch
from tiny_gpt import LENGTH, VOCABULARY, Gpt

BATCH, ACCUMULATION = 4, 2
torch.manual_seed(1)
torch.set_num_threads(1)
data = torch.randint(VOCABULARY, (10000,))
model = Gpt()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def get_batch():
    starts = torch.randint(len(data) - LENGTH - 1, (BATCH,))
    return (torch.stack([data[i + shift : i + shift + LENGTH] for i in starts]) for shift in (0, 1))


@torch.no_grad()
def evaluate():
    model.eval()
    loss = sum(model(*get_batch())[1].item() for _ in range(3)) / 3
    model.train()
    return loss


for step in range(int(sys.argv[1])):
    if step % 50 == 0:
        print("evaluation", evaluate().hex())
    for _ in range(ACCUMULATION):
        _, loss = model(*get_batch())
        (loss / ACCUMULATION).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, loss.item().hex())

sys.stdout.flush()
ending = sys.argv[2] if len(sys.argv) > 2 else "return"
if ending != "return":
    time.sleep(1.5)  # records are on disk after one second
if ending == "exit":
    sys.exit(3)
if ending == "_exit":
    os._exit(4)
if ending == "raise":
    raise RuntimeError("injected")
if ending in ("SIGINT", "SIGTERM"):
    os.kill(os.getpid(), getattr(signal, ending))
    time.sleep(5)
