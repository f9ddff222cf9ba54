# SPDX-License-Identifier: Apache-2.0
"""lightning_fit.py OUTPUT: a Lightning Trainer; the forward pass runs inside the optimizer step."""

import sys

import lightning
import torch
from tiny_gpt import LENGTH, VOCABULARY, Gpt


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.gpt = Gpt()

    def training_step(self, batch, _):
        return self.gpt(batch[:, :-1], batch[:, 1:])[1]

    def validation_step(self, batch, _):
        self.log("loss", self.gpt(batch[:, :-1], batch[:, 1:])[1])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


rows = torch.randint(VOCABULARY, (16, LENGTH + 1))
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=1,
    max_epochs=2,
    accumulate_grad_batches=2,
    default_root_dir=sys.argv[1],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
loader = torch.utils.data.DataLoader(rows, batch_size=2)
trainer.fit(Module(), loader, torch.utils.data.DataLoader(rows[:4], batch_size=2))
