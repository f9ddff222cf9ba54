# SPDX-License-Identifier: Apache-2.0
"""The callback for Lightning, with a real Trainer."""

import copy
import csv
import json
import pickle
import time

import pytest
import torch
from run_records import records

lightning = pytest.importorskip("lightning")
from flopmeter import log  # noqa: E402
from flopmeter.integrations.lightning import Callback as MonitorCallback  # noqa: E402
from lightning.pytorch.callbacks import Callback, ModelCheckpoint  # noqa: E402
from lightning.pytorch.loggers import CSVLogger  # noqa: E402

WIDTH, BATCH, ACCUMULATED, PAUSE = 16, 4, 2, 0.5
FLOPS = 4 * BATCH * WIDTH  # of one batch: forward and the weight's gradient


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, 1)
        self.losses = []

    def loss(self, batch):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("loss", loss, batch_size=BATCH)
        self.losses.append(loss.item())
        return loss

    def training_step(self, batch, _index):
        return self.loss(batch)

    def validation_step(self, batch, _index):
        self.layer(batch[0])
        time.sleep(PAUSE)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def batches(count):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(BATCH * count, WIDTH)), batch_size=BATCH)


def fit(folder, module, loader, validation=None, callbacks=(), monitor=None, **options):
    """Train, and return the callback."""
    monitor = monitor or MonitorCallback(console=False, peak_tflops=1.0, profile_freq=0)
    options = {"max_epochs": 1, "enable_checkpointing": False, "logger": False, **options}
    trainer = lightning.Trainer(
        default_root_dir=folder,
        callbacks=[monitor, *callbacks],
        accelerator="cpu",
        devices=1,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        **options,
    )
    trainer.fit(module, loader, validation)
    return monitor


def rows(callback, tag=None):
    """Records of a fit in which no call was out of order."""
    assert callback.monitor.status["misuse"] == 0
    return records(callback.monitor.directory, tag)


def logged(folder, name):
    """Steps and values of a metric."""
    with open(next(folder.rglob("metrics.csv"))) as file:
        return [(int(row["step"]), float(row[name])) for row in csv.DictReader(file) if row[name]]


def test_a_trainer_is_monitored_with_gradient_accumulation(tmp_path):
    module = Regression()
    callback = fit(
        tmp_path,
        module,
        batches(ACCUMULATED * 4),
        batches(1),
        max_epochs=2,
        accumulate_grad_batches=ACCUMULATED,
        log_every_n_steps=2,
        logger=CSVLogger(tmp_path),
    )
    train = rows(callback, "train")
    assert [row["step"] for row in train] == list(range(1, 9))
    for row in train:
        assert (row["micro_batches"], row["samples"]) == (ACCUMULATED, BATCH * ACCUMULATED)
        assert row["model_flops"] == FLOPS * ACCUMULATED
        assert {"data", "forward", "backward", "optimizer"} <= set(row["phases"])
        assert row["phases"]["data"] + row["phases"]["other"] < PAUSE
    assert [row["loss"] for row in train] == pytest.approx(module.losses[ACCUMULATED - 1 :: ACCUMULATED])
    assert len(rows(callback)) == len(train) + len(rows(callback, "evaluation")) == 10
    assert [step for step, _ in logged(tmp_path, "loss")] == [1, 3, 5, 7]
    assert json.loads((tmp_path / "perf_monitor" / "run.json").read_text())["total_steps"] == 8
    assert [step for step, mfu in logged(tmp_path, "perf/mfu") if 0 < mfu < 1] == [1, 3, 5, 7]


def test_a_trainer_that_never_logs_is_monitored(tmp_path):
    callback = fit(tmp_path, Regression(), batches(3), log_every_n_steps=0, logger=CSVLogger(tmp_path))
    assert len(rows(callback, "train")) == 3


def test_a_step_with_a_validation_inside_gets_no_record_and_this_is_logged(tmp_path, capsys):
    log._logged.clear()
    callback = fit(tmp_path, Regression(), batches(8), batches(1), val_check_interval=3, accumulate_grad_batches=2)
    assert "a validation began inside a gradient accumulation: that step gets no record" in capsys.readouterr().err
    assert [(row["tag"], row["step"]) for row in rows(callback)] == [
        ("train", 1),
        ("evaluation", 1),  # after batch 3, in the middle of step 2
        ("train", 3),
        ("evaluation", 3),
        ("train", 4),
    ]
    assert {row["model_flops"] for row in rows(callback, "train")} == {FLOPS * 2}
    assert all(row["step_seconds"] < PAUSE for row in rows(callback, "train"))


class Itself(Regression):
    """Optimizes itself."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False


class WithTwo(Itself):
    def training_step(self, batch, _index):
        for optimizer in self.optimizers():
            loss = self.loss(batch)
            time.sleep(PAUSE / 2)
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1), torch.optim.Adam(self.parameters())


def test_a_batch_with_two_optimizers_is_one_step(tmp_path):
    callback = fit(tmp_path, WithTwo(), batches(4), log_every_n_steps=2, logger=CSVLogger(tmp_path))
    train = rows(callback, "train")
    assert [row["step"] for row in train] == [1, 2, 3, 4]
    for row in train:
        assert (row["micro_batches"], row["model_flops"]) == (1, FLOPS * 2)
        assert row["phases"]["forward"] > PAUSE
        assert all(0 < row["phases"][name] < PAUSE / 2 for name in ("backward", "optimizer"))
    assert [[step for step, _ in logged(tmp_path, name)] for name in ("loss", "perf/mfu")] == [[1, 3], [1, 3]]


class Unwrapped(Itself):
    """Calls torch, not Lightning, and steps with every second batch."""

    def training_step(self, batch, index):
        self.loss(batch)
        loss = self.layer(batch[0]).pow(2).mean()
        loss.register_hook(lambda _gradient: time.sleep(PAUSE))
        loss.backward()
        optimizer = self.optimizers(use_pl_optimizer=False)
        if index % 2:
            optimizer.step()
            optimizer.zero_grad()


def test_steps_and_backward_that_lightning_does_not_report_are_found(tmp_path):
    call = torch.Tensor.backward
    train = rows(fit(tmp_path, Unwrapped(), batches(4)), "train")
    assert torch.Tensor.backward is call
    assert [(row["step"], row["micro_batches"], row["samples"]) for row in train] == [(1, 2, 8), (2, 2, 8)]
    for row in train:
        assert row["phases"]["backward"] > 2 * PAUSE
        assert 0 < row["phases"]["optimizer"] < PAUSE
        assert 0 < row["phases"]["forward"] < PAUSE


class Slow(Callback):
    def on_save_checkpoint(self, _trainer, _module, _checkpoint):
        time.sleep(PAUSE)

    def on_train_epoch_end(self, _trainer, _module):
        time.sleep(PAUSE)


def test_checkpoints_are_separate_and_the_end_of_an_epoch_is_not_data_wait(tmp_path):
    saving = ModelCheckpoint(tmp_path, every_n_train_steps=2)
    callback = fit(tmp_path, Regression(), batches(3), callbacks=[saving, Slow()], max_epochs=2, enable_checkpointing=True)
    train, saved = rows(callback, "train"), rows(callback, "checkpoint")
    assert [(row["step"], row["phases"]["checkpoint"] > PAUSE) for row in saved] == [(2, True), (4, True), (6, True)]
    assert all(row["phases"]["data"] < PAUSE for row in train)
    assert [row["step"] for row in train if row["phases"]["other"] > PAUSE] == [4]


class Combined(Regression):
    def training_step(self, batch, _index):
        return self.loss(batch["left"]) + self.loss(batch["right"])


def test_a_batch_of_several_loaders_has_the_samples_of_all(tmp_path):
    train = rows(fit(tmp_path, Combined(), {"left": batches(2), "right": batches(2)}), "train")
    assert [(row["samples"], row["model_flops"]) for row in train] == [(2 * BATCH, 2 * FLOPS)] * 2


def test_a_batch_of_an_unknown_type_is_logged(tmp_path, capsys):
    class Hidden(Regression):
        def training_step(self, batch, _index):
            return self.loss(batch())

    log._logged.clear()
    loader = torch.utils.data.DataLoader([0], collate_fn=lambda _rows: lambda: [torch.ones(BATCH, WIDTH)])
    (row,) = rows(fit(tmp_path, Hidden(), loader), "train")
    assert (row["samples"], row["model_flops"]) == (None, FLOPS)
    assert "samples and tokens of the batches are not known" in capsys.readouterr().err


def test_a_skipped_rest_of_an_epoch_leaves_no_open_step(tmp_path):
    class Skipping(Regression):
        def on_train_batch_start(self, _batch, index):
            return -1 if index == 3 else None

    train = rows(fit(tmp_path, Skipping(), batches(6), max_epochs=2, accumulate_grad_batches=2), "train")
    assert [(row["step"], row["epoch"], row["micro_batches"]) for row in train] == [(1, 0, 2), (2, 1, 2)]


class Failing(Regression):
    """Fails once, in the second batch; the trainer is copied before."""

    copied = None

    def training_step(self, batch, index):
        if index == 1 and self.copied is None:
            self.copied = pickle.loads(pickle.dumps(self.trainer))
            raise ValueError("out of luck")
        return super().training_step(batch, index)


def test_a_callback_can_be_copied_and_monitors_again_after_a_failure(tmp_path):
    module = Failing()
    fetch = torch.utils.data.dataloader._BaseDataLoaderIter.__next__
    callback = MonitorCallback(console=False, peak_tflops=1.0, profile_freq=0)
    with pytest.raises(ValueError, match="out of luck"):
        fit(tmp_path, module, batches(3), monitor=callback)
    assert len(rows(callback, "train")) == 1
    fit(tmp_path, module, batches(3), monitor=callback)
    assert [row["step"] for row in rows(callback, "train")] == [1, 2, 3]
    for other in (copy.deepcopy(callback), module.copied.callbacks[0]):
        assert other.monitor is None
        fit(tmp_path, module, batches(2), monitor=other)
        assert len(rows(other, "train")) == 2
    assert torch.utils.data.dataloader._BaseDataLoaderIter.__next__ is fetch
