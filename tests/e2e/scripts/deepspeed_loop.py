# SPDX-License-Identifier: Apache-2.0
"""A training loop for the DeepSpeed launcher: ten micro-batches, two per step."""

import argparse

import deepspeed
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int)
parser.parse_args()
torch.manual_seed(0)
deepspeed.init_distributed("gloo")
model = torch.nn.Sequential(torch.nn.Linear(16, 32, bias=False), torch.nn.ReLU(), torch.nn.Linear(32, 16, bias=False))
config = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "optimizer": {"type": "SGD", "params": {"lr": 0.1}},
}
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
for _ in range(10):
    engine.backward(engine(torch.ones(4, 16)).sum())
    engine.step()
