# SPDX-License-Identifier: Apache-2.0
"""Monitors a Hugging Face Trainer. All reporters of the Trainer receive perf/*."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from flopmeter.integrations import hf

model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=32))
rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(100, (64, 32))]
arguments = TrainingArguments("logs/hf", max_steps=8, per_device_train_batch_size=4, logging_steps=4, report_to=[], use_cpu=True)
Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[hf.Callback()]).train()
