# SPDX-License-Identifier: Apache-2.0
"""A new integration on the public kit, for a trainer that exists only here."""

import pytest
import torch
from flopmeter.integrations import kit
from run_records import records
from torch import nn

pytestmark = pytest.mark.torch2("hooks for optimizers")


class Trainer:
    """Trains with gradient accumulation and evaluates after each epoch."""

    def __init__(self, callback, output_dir, fails=False):
        self.callback, self.output_dir, self.fails = callback, output_dir, fails
        self.model = nn.Linear(8, 8)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.step, self.logs = 0, []

    def fit(self, epochs=2):
        self.callback.on_start(self)
        for epoch in range(epochs):
            for i, batch in enumerate(torch.utils.data.DataLoader(torch.ones(16, 8), batch_size=4)):
                self.callback.on_batch(self, batch, epoch)
                loss = self.model(batch).sum()
                loss.backward()
                if i % 2:
                    self.optimizer.step()
                    self.step += 1
                self.callback.on_batch_done(self, loss)
            self.callback.on_evaluation(self, True)
            self.model(torch.ones(4, 8))
            self.callback.on_evaluation(self, False)
            self.callback.on_log(self)
        self.callback.on_finish(self)


class Callback(kit.Integration):
    """The whole integration."""

    @kit.guarded
    def on_start(self, trainer):
        self.start(trainer.output_dir, model=trainer.model, console=False, profile_freq=0)

    @kit.guarded
    def on_batch(self, trainer, batch, epoch):
        if trainer.fails:
            raise RuntimeError("a bug of the integration")
        self.emit("batch_begin", batch=batch, step=trainer.step + 1, epoch=epoch)

    @kit.guarded
    def on_batch_done(self, trainer, loss):
        self.emit("batch_end", loss=kit.as_float(loss))

    @kit.guarded
    def on_evaluation(self, trainer, begins):
        self.emit("evaluation_begin" if begins else "evaluation_end")

    @kit.guarded
    def on_log(self, trainer):
        trainer.logs.append(self.metrics())

    @kit.guarded
    def on_finish(self, trainer):
        self.stop()


def test_an_integration_of_a_few_lines_gives_steps_phases_and_metrics(tmp_path):
    callback = Callback()
    trainer = Trainer(callback, tmp_path)
    trainer.fit()
    rows = records(callback.monitor.directory)
    assert [(row["tag"], row["step"]) for row in rows] == [
        ("train", 1), ("train", 2), ("evaluation", 2), ("train", 3), ("train", 4), ("evaluation", 4),
    ]  # fmt: skip
    for row in rows:
        if row["tag"] == "train":
            assert (row["micro_batches"], row["samples"]) == (2, 8)
            assert {"data", "forward", "backward", "optimizer"} <= set(row["phases"])
            assert row["loss"] is not None
    assert all(logs["perf/step_time"] > 0 for logs in trainer.logs)
    assert callback.monitor.status["misuse"] == 0


def test_a_bug_of_an_integration_detaches_it_and_the_training_goes_on(tmp_path):
    callback = Callback()
    trainer = Trainer(callback, tmp_path, fails=True)
    trainer.fit()
    assert trainer.step == 4
    assert not trainer.model._forward_hooks
