# SPDX-License-Identifier: Apache-2.0
"""hf_trainer.py OUTPUT [callback]: a Hugging Face Trainer on a tiny GPT-2, with or without the flopmeter callback."""

import sys

import torch
import transformers
from tiny_gpt import CONFIG, LENGTH, VOCABULARY

config = transformers.GPT2Config(**CONFIG, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(VOCABULARY, (64, LENGTH))]
callbacks = []
if len(sys.argv) > 2:
    from flopmeter.integrations import hf

    callbacks = [hf.Callback()]
arguments = transformers.TrainingArguments(
    output_dir=sys.argv[1],
    per_device_train_batch_size=2,
    gradient_accumulation_steps=2,
    max_steps=6,
    logging_steps=1,
    eval_strategy="steps",
    eval_steps=3,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
    dataloader_num_workers=2,
    seed=0,
)
trainer = transformers.Trainer(
    model=transformers.GPT2LMHeadModel(config), args=arguments, train_dataset=rows, eval_dataset=rows[:4], callbacks=callbacks
)
trainer.train()
