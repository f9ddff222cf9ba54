# SPDX-License-Identifier: Apache-2.0
"""flopmeter.Monitor in plain loops: steps, micro-batches, phases, data wait, and batches."""

import time

import flopmeter
import pytest
import torch
from run_records import records
from torch import nn

WIDTH = 32


@pytest.fixture
def model():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))


@pytest.fixture
def start(tmp_path):
    monitors = []

    def make(**arguments):
        arguments = {"console": False, "peak_tflops": 1.0, **arguments}
        monitors.append(flopmeter.Monitor(tmp_path / "run", **arguments))
        return monitors[-1]

    yield make
    for monitor in monitors:
        monitor.finish()


def train(model, batch, optimizer=None):
    loss = model(batch).pow(2).mean()
    loss.backward()
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad()
    return loss


def linear_flops(rows, steps=1):
    """Two linears forward, three gradients: the first one's input needs none."""
    return steps * rows * WIDTH * WIDTH * 2 * (2 + 3)


@pytest.mark.torch2("hooks for optimizers")
def test_a_loop_of_steps_is_counted_and_timed(start, model, tmp_path):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = start(model=model)
    for batch in monitor.wrap([torch.randn(4, WIDTH) for _ in range(5)]):
        with monitor.step(samples=4, tokens=40):
            monitor.log(loss=train(model, batch, optimizer))
    monitor.finish()
    rows = records(tmp_path / "run")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    for row in rows:
        assert row["model_flops"] == linear_flops(4)
        assert row["flops_source"] == "counted"
        assert (row["samples"], row["tokens"], row["micro_batches"]) == (4, 40, 1)
        # Communication is known, and 0, once any process group was used in this process.
        assert {"data", "forward", "backward", "optimizer", "other"} == set(row["phases"]) - {"communication"}
        assert sum(row["phases"].values()) == pytest.approx(row["step_seconds"], rel=1e-6)
        assert row["mfu"] == pytest.approx(row["model_flops"] / row["step_seconds"] / 1e12)
        assert row["loss"] > 0
    assert monitor.status["misuse"] == 0


@pytest.mark.torch2("hooks for optimizers, and the first wait is not recorded without them")
def test_the_wait_for_data_is_the_data_phase(start, tmp_path):
    def slow():
        for _ in range(3):
            time.sleep(0.02)
            yield torch.zeros(2, 3)

    monitor = start()
    for _ in monitor.wrap(slow()):
        with monitor.step():
            time.sleep(0.001)
    monitor.finish()
    rows = records(tmp_path / "run")
    assert len(rows) == 3
    assert all(0.02 <= row["phases"]["data"] <= row["step_seconds"] for row in rows)


@pytest.mark.torch2("hooks for optimizers")
def test_without_step_marks_each_optimizer_step_is_a_step(start, model, tmp_path):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = start(model=model)
    for i, batch in enumerate(monitor.wrap([torch.randn(4, WIDTH) for _ in range(6)])):
        train(model, batch, optimizer if i % 3 == 2 else None)
    monitor.finish()
    rows = records(tmp_path / "run")
    assert [(row["micro_batches"], row["samples"]) for row in rows] == [(3, 12), (3, 12)]
    assert [row["model_flops"] for row in rows] == [linear_flops(4, 3)] * 2


def test_without_hooks_each_batch_is_a_step(start, model, tmp_path):
    monitor = start(model=model, find_phases=False)
    for batch in monitor.wrap([torch.randn(4, WIDTH) for _ in range(3)]):
        train(model, batch)
    monitor.finish()
    rows = records(tmp_path / "run")
    assert [(row["micro_batches"], row["samples"], row["model_flops"]) for row in rows] == [(1, 4, linear_flops(4))] * 3


def test_breaking_out_of_a_loop_keeps_finished_steps_only(start, model, tmp_path):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = start(model=model)
    for i, batch in enumerate(monitor.wrap([torch.randn(4, WIDTH) for _ in range(6)])):
        if i == 3:
            break
        train(model, batch, optimizer)
    monitor.finish()
    assert len(records(tmp_path / "run")) == 3


def test_micro_batches_are_summed(start, model, tmp_path):
    monitor = start()
    with monitor.step(samples=4, tokens=40):
        train(model, torch.randn(4, WIDTH))
        monitor.micro_batch(samples=2, tokens=20)
        train(model, torch.randn(2, WIDTH))
    monitor.finish()
    (row,) = records(tmp_path / "run")
    assert (row["micro_batches"], row["samples"], row["tokens"]) == (2, 6, 60)
    assert row["model_flops"] == linear_flops(6)


def test_flops_from_the_loop_are_used_unchanged(start, model, tmp_path):
    monitor = start()
    for at_begin in (True, False):
        with monitor.step(samples=4, flops=12345 if at_begin else None):
            train(model, torch.randn(4, WIDTH))
            if not at_begin:
                monitor.micro_batch(flops=12345)
    monitor.finish()
    assert [(row["model_flops"], row["flops_source"]) for row in records(tmp_path / "run")] == [(12345, "user")] * 2


def test_an_attention_mask_gives_real_and_padded_tokens(start, tmp_path):
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]])
    monitor = start()
    with monitor.step(attention_mask=mask):
        pass
    with monitor.step(attention_mask=mask.tolist(), step=7, epoch=2, loss=0.5):
        pass
    monitor.finish()
    rows = records(tmp_path / "run")
    assert [(row["samples"], row["tokens"], row["padded_tokens"]) for row in rows] == [(3, 8, 12)] * 2
    assert [(row["step"], row["epoch"], row["loss"]) for row in rows] == [(1, None, None), (7, 2, 0.5)]


def test_a_step_that_raises_leaves_no_record(start, tmp_path):
    monitor = start()
    with pytest.raises(ZeroDivisionError), monitor.step():
        1 / 0
    with monitor.step():
        pass
    monitor.finish()
    assert len(records(tmp_path / "run")) == 1


def test_phases_of_the_loop_replace_found_ones(start, model, tmp_path):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = start(model=model)
    for _ in range(2):
        with monitor.step():
            with monitor.phase("forward"):
                loss = model(torch.randn(4, WIDTH)).pow(2).mean()
            with monitor.phase("communication"):
                loss.backward()
            optimizer.step()
    monitor.finish()
    assert set(records(tmp_path / "run")[1]["phases"]) == {"forward", "communication", "other"}


def test_an_unknown_phase_is_ignored_and_logged(start, capsys):
    monitor = start()
    with monitor.step(), monitor.phase("froward"):
        pass
    assert monitor.status["dropped_values"] == 2
    assert "expected one of data, forward" in capsys.readouterr().err


def test_a_stage_names_the_records_of_its_steps(start, tmp_path):
    monitor = start()
    with monitor.stage("rollout"):
        with monitor.phase("generation"):
            pass
        with monitor.stage("update"), monitor.step():
            pass
        with monitor.step():
            pass
    with monitor.step(tag="compile"):
        pass
    monitor.finish()
    rows = [(row["tag"], row["stage"]) for row in records(tmp_path / "run")]
    assert rows == [("generation", "rollout"), ("train", "update"), ("train", "rollout"), ("compile", None)]


def test_evaluation_between_steps_is_a_separate_record(start, tmp_path):
    monitor = start()
    with monitor.step():
        pass
    with monitor.phase("evaluation"):
        time.sleep(0.01)
    monitor.finish()
    assert [row["tag"] for row in records(tmp_path / "run")] == ["train", "evaluation"]


@pytest.mark.torch2("torch.compile")
def test_a_compiled_model_runs_with_the_hooks_on_it(start, model, tmp_path):
    monitor = start(model=model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for _ in range(2):
        with monitor.step():
            train(compiled, torch.randn(4, WIDTH))
    monitor.finish()
    assert [row["model_flops"] for row in records(tmp_path / "run")] == [linear_flops(4)] * 2


def test_losses_are_bit_equal_with_and_without(start, tmp_path):
    def losses(monitor):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.1), nn.Linear(WIDTH, 1))
        optimizer = torch.optim.Adam(model.parameters())
        found = []
        if monitor is not None:
            monitor = monitor(model=model)
        for _ in range(20):
            batch = torch.randn(4, WIDTH)
            if monitor is None:
                found.append(train(model, batch, optimizer).item())
            else:
                with monitor.step(samples=4):
                    found.append(train(model, batch, optimizer).item())
        return found

    assert losses(None) == losses(start)


def test_visual_tokens_follow_from_the_image_grids_and_the_model(tmp_path):
    with flopmeter.Monitor(tmp_path, model="qwen2-vl-2b", mode="estimate", device="h100", console=False) as monitor:
        for _ in range(2):
            with monitor.step(seq_lens=[80, 120], image_grid_thw=[[1, 8, 8], [1, 16, 8]]):
                pass
    # Qwen2-VL merges 2 x 2 patches into one token.
    assert [row["visual_tokens"] for row in records(tmp_path)] == [16 + 32] * 2
