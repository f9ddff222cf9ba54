# SPDX-License-Identifier: Apache-2.0
"""Monitors a Lightning Trainer."""

import lightning
import torch

from flopmeter.integrations.lightning import Callback


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def training_step(self, batch, _):
        return (self.layer(batch) - batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


loader = torch.utils.data.DataLoader(torch.randn(256, 64), batch_size=16)
trainer = lightning.Trainer(
    accelerator="cpu", max_epochs=1, default_root_dir="logs/lightning", callbacks=[Callback()]
)
trainer.fit(Regression(), loader)
