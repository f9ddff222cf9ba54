# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face Trainer with the callback; perf/* reaches every reporter that the Trainer has."""

from flopmeter.integrations import hf
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=32))
rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(100, (64, 32))]
arguments = TrainingArguments("logs/hf", max_steps=8, per_device_train_batch_size=4, logging_steps=4, report_to=[], use_cpu=True)
Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[hf.Callback()]).train()
