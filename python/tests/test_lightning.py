# SPDX-License-Identifier: Apache-2.0
"""The callback for Lightning, with a real Trainer."""

import csv

import flopmeter
import pytest
import torch
from run_records import records

lightning = pytest.importorskip("lightning")
from lightning.pytorch.loggers import CSVLogger  # noqa: E402

WIDTH, BATCH, ACCUMULATED = 16, 4, 2


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, 1)

    def training_step(self, batch, _index):
        return self.layer(batch[0]).pow(2).mean()

    def validation_step(self, batch, _index):
        self.layer(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def test_a_trainer_is_watched_with_gradient_accumulation(tmp_path):
    data = torch.utils.data.TensorDataset(torch.randn(BATCH * ACCUMULATED * 4, WIDTH))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    callback = flopmeter.lightning.Callback(console=False, peak_tflops=1.0)
    trainer = lightning.Trainer(
        default_root_dir=tmp_path,
        max_epochs=2,
        accumulate_grad_batches=ACCUMULATED,
        log_every_n_steps=2,
        callbacks=[callback],
        logger=CSVLogger(tmp_path, name="log"),
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    trainer.fit(Regression(), loader, loader)
    train = records(tmp_path / "perf_monitor", "train")
    assert [row["step"] for row in train] == list(range(1, 9))
    for row in train:
        assert (row["micro_steps"], row["samples"]) == (ACCUMULATED, BATCH * ACCUMULATED)
        assert row["model_flops"] == 4 * BATCH * ACCUMULATED * WIDTH  # forward and the weight's gradient
        assert {"data", "forward", "backward", "optimizer"} <= set(row["phases"])
        assert row["loss"] > 0
    assert len(records(tmp_path / "perf_monitor")) == len(train) + len(records(tmp_path / "perf_monitor", "evaluation")) == 10
    assert callback.monitor.status["misuse"] == 0
    with open(next((tmp_path / "log").rglob("metrics.csv"))) as file:
        logged = [row for row in csv.DictReader(file) if row["perf/mfu"]]
    assert 0 < len(logged) <= 4  # a row takes the figures that have arrived by then
    assert all(0 < float(row["perf/mfu"]) < 1 for row in logged)
