# SPDX-License-Identifier: Apache-2.0
"""flopmeter.compat: measurement on a dummy batch, its side effects, and mode smart."""

import random

import numpy
import pytest
import torch
from flopmeter import compat
from flopmeter.compat import _measure
from torch import nn
from torch.utils.checkpoint import checkpoint

BATCH, LENGTH, WIDTH, WORDS = 2, 8, 16, 11
LINEAR = 3 * 2 * BATCH * LENGTH * WIDTH * WORDS  # forward and both gradients


@pytest.fixture(autouse=True)
def peak(tmp_path, monkeypatch):
    """A peak that makes MFU small on all machines."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("flopmeter.compat._measure.get_gpu_peak_flops", lambda *_: 1e12)


class Tokens(nn.Module):
    """A model that takes input_ids, without masks and labels."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.norm = nn.BatchNorm1d(LENGTH)
        self.layer = nn.Linear(WIDTH, WORDS)
        self.drop = nn.Dropout(0.5)

    def forward(self, input_ids):
        return self.layer(self.drop(self.norm(self.table(input_ids))))


@pytest.fixture
def model():
    return Tokens()


@pytest.fixture
def measured(monkeypatch):
    """The measured shapes."""
    shapes, real = [], _measure._measure_flops_with_profiler
    monkeypatch.setattr(_measure, "_measure_flops_with_profiler", lambda model, *shape: shapes.append(shape) or real(model, *shape))
    return shapes


def test_measuring_preserves_mode_random_state_gradients_and_buffers(model):
    model.train()
    model.drop.eval()
    model(torch.ones(BATCH, LENGTH, dtype=torch.long)).sum().backward()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    state = torch.get_rng_state()
    compat._measure_flops_with_profiler(model, BATCH, LENGTH)
    assert model.training and not model.drop.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), gradients, strict=True))


class Restless(Tokens):
    """Uses all random generators and replaces its buffers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, input_ids):
        random.random()
        numpy.random.rand()
        self.calls = self.calls + 1
        self.register_buffer("cache", torch.ones(1))
        return super().forward(input_ids)


def test_measuring_preserves_the_random_state_of_python_and_numpy_and_new_buffers():
    model = Restless()
    held, states = model.calls, (random.getstate(), numpy.random.get_state()[2])
    assert compat._measure_flops_with_profiler(model, BATCH, LENGTH) == LINEAR
    assert model.calls is held
    assert held.item() == 0
    assert "cache" not in model.state_dict()
    assert (random.getstate(), numpy.random.get_state()[2]) == states


class Checkpointed(Tokens):
    def forward(self, input_ids):
        return checkpoint(self.layer, self.table(input_ids), use_reentrant=True)


@pytest.mark.torch2("register_post_accumulate_grad_hook")
@pytest.mark.parametrize("kind", [Tokens, Checkpointed])
def test_an_optimizer_in_backward_takes_no_step(kind):
    model = kind()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for parameter in model.parameters():
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        parameter.register_post_accumulate_grad_hook(lambda _, optimizer=optimizer: optimizer.step())
    assert compat._measure_flops_with_profiler(model, BATCH, LENGTH) == LINEAR
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    model(torch.zeros(BATCH, LENGTH, dtype=torch.long)).sum().backward()  # and still does in the program
    assert not torch.equal(model.layer.bias, before["layer.bias"])


def test_a_frozen_model_is_counted_forward_only_and_logged(model, capsys):
    model.requires_grad_(False)
    assert compat._measure_flops_with_profiler(model, BATCH, LENGTH) == LINEAR / 3
    assert "No parameter is trained" in capsys.readouterr().out


def test_inference_mode_has_no_effect(model):
    with torch.inference_mode():
        assert compat._measure_flops_with_profiler(model, BATCH, LENGTH) == LINEAR


class OneClass(Tokens):
    """A head with one class per sequence."""

    def forward(self, input_ids, labels=None):
        logits = super().forward(input_ids).mean(1)
        return logits if labels is None else nn.functional.cross_entropy(logits, labels.view(-1))


def test_labels_that_do_not_fit_are_omitted_and_logged(capsys):
    assert compat._measure_flops_with_profiler(OneClass(), BATCH, LENGTH) == LINEAR
    assert "without labels" in capsys.readouterr().out


class Broken(Tokens):
    runs = 0

    def forward(self, input_ids):
        self.runs += 1
        raise RuntimeError("no input fits\nand this is why")


def test_a_model_error_is_logged_in_one_line(capsys):
    assert compat._measure_flops_with_profiler(Broken(), BATCH, LENGTH) == 0.0
    assert capsys.readouterr().out == "FLOPs cannot be measured: RuntimeError: no input fits\n"


def test_a_sharded_model_is_not_run_by_one_rank(capsys):
    class FullyShardedDataParallel(Broken):
        pass

    model = FullyShardedDataParallel()
    assert compat._measure_flops_with_profiler(nn.Sequential(model), BATCH, LENGTH) == 0.0
    assert model.runs == 0
    assert "FullyShardedDataParallel runs on all ranks" in capsys.readouterr().out


def test_smart_does_not_run_a_failing_model_in_each_call():
    model = Broken()
    estimate = compat.calculate_precise_mfu(model, BATCH, LENGTH, 1.0, "estimate")
    assert [compat.calculate_precise_mfu(model, BATCH, LENGTH, 1.0) for _ in range(5)] == [estimate] * 5
    assert model.runs == 1


def smart(model, batch, length):
    return compat.calculate_precise_mfu(model, batch, length, 1.0) * 1e12


def test_smart_calibrates_each_length_separately(measured):
    class Attention(Tokens):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(WIDTH, 1, batch_first=True)

        def forward(self, input_ids):
            hidden = self.table(input_ids)
            return self.layer(self.attention(hidden, hidden, hidden, need_weights=False)[0])

    model = Attention()
    for length in (LENGTH, 32 * LENGTH):
        assert smart(model, BATCH, length) == pytest.approx(compat._measure_flops_with_profiler(model, BATCH, length))
    assert measured == [(BATCH, LENGTH), (BATCH, 32 * LENGTH)]


def test_smart_restarts_if_other_parameters_are_trained(model, measured):
    assert smart(model, BATCH, LENGTH) == pytest.approx(LINEAR)
    model.table.requires_grad_(False)
    model.norm.requires_grad_(False)
    assert smart(model, BATCH, LENGTH) == pytest.approx(LINEAR * 2 / 3)
    assert len(measured) == 2


def test_smart_rarely_measures_if_lengths_keep_changing(measured):
    model = nn.Linear(WIDTH, WORDS)
    for length in range(1, 101):
        assert smart(model, BATCH, length) == pytest.approx(4 * BATCH * length * WIDTH * WORDS)
    assert len(measured) <= 8  # cbrt(3 n), as in the native monitor


def test_smart_measures_once_and_again_after_a_thousand_calls(model, measured):
    for _ in range(1001):
        compat.calculate_precise_mfu(model, BATCH, LENGTH, 1.0)
    assert len(measured) == 2
    twice = compat.calculate_precise_mfu(model, 2 * BATCH, LENGTH, 1.0)  # scaled, not measured
    assert twice == pytest.approx(2 * LINEAR / 1e12)
    assert len(measured) == 2
