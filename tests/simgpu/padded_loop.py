#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on padded batches that are moved to the device; prints the real tokens of each step.

Two batches are fetched before the first is used, and every third step an evaluation runs with its own loader.
"""

import random

import simgpu
import torch
from model import GPT
from torch.utils.data import DataLoader

LENGTH, ROWS = 32, 4


def padded(lengths):
    mask = (torch.arange(LENGTH) < torch.tensor(lengths)[:, None]).long()
    ids = torch.ones(len(lengths), LENGTH, dtype=torch.long)
    return {"input_ids": ids, "labels": ids, "attention_mask": mask}


def loader(batches):
    return DataLoader([[random.randint(1, LENGTH) for _ in range(ROWS)] for _ in range(batches)], None, collate_fn=padded)


def on_device(batch):
    return {name: tensor.to(simgpu.NAME, non_blocking=True) for name, tensor in batch.items()}


def main():
    random.seed(0)
    model = GPT(1, 32, 2, 64, LENGTH, True).to(simgpu.NAME)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches, true = iter(loader(24)), []
    for step in range(12):
        fetched = [next(batches), next(batches)]
        true.append(sum(int(batch["attention_mask"].sum()) for batch in fetched))
        for batch in fetched:
            model(**on_device(batch)).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 3 == 2:
            model.eval()
            with torch.no_grad():
                for batch in loader(3):
                    model(**on_device(batch))
            model.train()
    print(true)


if __name__ == "__main__":
    main()
