# SPDX-License-Identifier: Apache-2.0
"""flopmeter.Monitor in uncommon loops: nothing is lost, counted twice, or tagged wrong."""

import copy
import gc
import io
import os
import sys
import threading

import flopmeter
import pytest
import torch
from run_records import records
from torch import nn

WIDTH, ROWS = 32, 4
FLOPS = ROWS * WIDTH * WIDTH * 2 * (2 + 3)  # two linear layers; the first needs no input gradient

pytestmark = pytest.mark.torch2("hooks for optimizers")


class Loop:
    """A model, its optimizer, and a monitor that is finished when its records are read."""

    def __init__(self, folder):
        self.folder = folder
        self.model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.monitor = None

    def start(self, **arguments):
        arguments = {"model": self.model, "console": False, "profile_freq": 0, "peak_tflops": 1.0, **arguments}
        self.monitor = flopmeter.Monitor(self.folder, **arguments)
        return self.monitor

    def train(self, batch):
        self.model(batch).pow(2).mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def evaluate(self, batches):
        self.model.eval()
        with torch.no_grad():
            for batch in batches:
                self.model(batch)
        self.model.train()

    def records(self):
        self.monitor.finish()
        return records(self.folder)

    def check(self, steps):
        rows = [row for row in self.records() if row["tag"] == "train"]
        assert [(row["micro_batches"], row["samples"], row["model_flops"]) for row in rows] == [(1, ROWS, FLOPS)] * steps


def batches(count):
    return [torch.randn(ROWS, WIDTH) for _ in range(count)]


@pytest.fixture
def loop(tmp_path):
    loop = Loop(tmp_path / "run")
    yield loop
    if loop.monitor is not None:
        loop.monitor.finish()


def test_a_monitored_model_can_be_copied_and_saved(loop):
    loop.start()
    loop.train(batches(1)[0])
    handle = loop.model.register_forward_hook(print)
    handle.remove()
    copied = copy.deepcopy(loop.model)
    file = io.BytesIO()
    torch.save(loop.model, file)
    assert b"flopmeter" not in file.getvalue()
    file.seek(0)
    for model in (copied, torch.load(file, weights_only=False)):
        assert not model._forward_hooks and not model._forward_pre_hooks
        assert torch.equal(model(torch.ones(1, WIDTH)), loop.model(torch.ones(1, WIDTH)))


def test_a_loop_with_an_unknown_model_is_counted(loop):
    for batch in loop.start(model=None).wrap(batches(3)):
        loop.train(batch)
    loop.check(3)


def test_evaluation_inside_the_loop_is_a_separate_record(loop):
    monitor = loop.start()
    for i, batch in enumerate(monitor.wrap(batches(6))):
        if i == 2:
            loop.evaluate(monitor.wrap(batches(2)))  # before the step
        loop.train(batch)
        if i == 4:
            loop.evaluate(batches(2))  # after it
    loop.check(6)
    assert [row["tag"] for row in records(loop.folder)].count("evaluation") == 2


def test_an_evaluation_phase_keeps_the_finished_step(loop):
    monitor = loop.start()
    for batch in monitor.wrap(batches(3)):
        loop.train(batch)
        with monitor.phase("evaluation"):
            loop.evaluate(batches(1))
    loop.check(3)
    assert [row["tag"] for row in records(loop.folder)].count("evaluation") == 3


def test_an_iterator_held_by_hand_loses_no_step(loop):
    kept = []
    monitor = loop.start()
    for _ in range(2):
        kept.append(iter(monitor.wrap(batches(5))))
        for _ in range(3):
            loop.train(next(kept[-1]))
    loop.check(6)


def test_step_without_with_marks_where_a_step_begins(loop):
    monitor = loop.start()
    for batch in batches(3):
        monitor.step(samples=ROWS)
        loop.train(batch)
    loop.check(3)
    assert monitor.status["misuse"] == 0


def test_the_loop_may_run_in_another_thread_than_the_one_that_created_the_monitor(loop):
    monitor = loop.start()

    def run():
        for batch in monitor.wrap(batches(3)):
            loop.train(batch)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    loop.check(3)


def test_matmuls_of_an_optimizer_are_not_work_of_the_model(loop):
    loop.optimizer = torch.optim.Muon([layer.weight for layer in loop.model if isinstance(layer, nn.Linear)])
    for batch in loop.start().wrap(batches(3)):
        loop.train(batch)
    loop.check(3)
    assert all(row["hardware_flops"] > 2 * FLOPS for row in records(loop.folder))


def test_a_dropped_monitor_frees_its_thread_and_hooks(loop):
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
    threads, before = len(os.listdir("/proc/self/task")), len(hooks)
    for _ in range(5):
        loop.start()
        loop.monitor = None
        gc.collect()
    loop.start()
    assert len(os.listdir("/proc/self/task")) < threads + 5
    assert len(hooks) <= before + 1
    assert len(loop.model._forward_hooks) == 1


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(8, 4)

    def forward(self, input_ids, position_ids):
        return self.table(input_ids)


def test_packed_documents_are_found_by_their_positions(loop):
    ids = torch.zeros(2, 6, dtype=torch.long)
    positions = torch.tensor([[0, 1, 2, 0, 1, 2], [0, 1, 2, 3, 4, 5]])
    model = Packed()
    with loop.start(model=model).step():
        model(input_ids=ids, position_ids=positions).sum().backward()
    (row,) = loop.records()
    assert (row["samples"], row["tokens"], row["batch"]) == (3, 12, "2x3,1x6")
