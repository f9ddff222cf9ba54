# SPDX-License-Identifier: Apache-2.0
"""flopmeter.compat: estimates, dummy-batch measurements and the four modes; always a float, never an exception."""

import flopmeter
import pytest
import torch
from flopmeter import compat
from torch import nn

BATCH, LENGTH = 2, 8


@pytest.fixture(autouse=True)
def peak(tmp_path, monkeypatch):
    """A peak that makes MFU small, whatever the machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("flopmeter.compat._measure.get_gpu_peak_flops", lambda *_: 1e12)


@pytest.fixture
def model():
    return Tokens()


class Tokens(nn.Module):
    """A model that takes input_ids and knows neither masks nor labels."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 16)
        self.norm = nn.BatchNorm1d(LENGTH)
        self.layer = nn.Linear(16, 11)
        self.drop = nn.Dropout(0.5)

    def forward(self, input_ids):
        return self.layer(self.drop(self.norm(self.table(input_ids))))


LINEAR = 3 * 2 * BATCH * LENGTH * 16 * 11  # forward and both gradients


def test_a_dummy_batch_is_measured_forward_and_backward(model):
    assert compat._measure_flops_with_profiler(model, BATCH, LENGTH) == LINEAR
    assert compat._measure_flops_with_profiler(model, BATCH, LENGTH, forward_only=True) == LINEAR / 3
    assert compat.calculate_mfu_with_profiler(model, batch_size=BATCH, seq_length=LENGTH, step_time=0.1) == LINEAR / 0.1 / 1e12


def test_measuring_leaves_mode_random_numbers_gradients_and_buffers_alone(model):
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


def test_the_real_profiler_runs_on_demand(model):
    measured = compat._measure_flops_with_profiler(model, BATCH, LENGTH, flops_backend="torch_profiler")
    # It prices the forward's product and both gradients' as well, and elementwise work beside them.
    assert LINEAR <= measured < 2 * LINEAR


def test_plain_modules_get_a_tensor_that_fits():
    assert compat._measure_flops_with_profiler(nn.Linear(16, 4), BATCH, LENGTH) == 2 * 2 * BATCH * LENGTH * 16 * 4


@pytest.mark.parametrize("model", [nn.Conv2d(1, 1, 3), nn.Identity(), None, object()])
def test_what_cannot_be_measured_is_zero_and_said(model, capsys):
    assert compat.calculate_mfu_with_profiler(model, 1, 4, 0.1) == 0.0
    assert compat.calculate_precise_mfu(model, 1, 4, 0.1, "profiler") == 0.0
    assert compat.profile_model_flops(model, None) == 0.0
    assert capsys.readouterr().out


def test_mfu_is_a_float_at_most_one(model):
    for time in (1e-12, 0.0, -1.0):
        for mode in ("smart", "profiler", "estimate", "hybrid", "none such"):
            mfu = compat.calculate_precise_mfu(model, BATCH, LENGTH, time, mode)
            assert isinstance(mfu, float)
            assert 0.0 <= mfu <= 1.0
    assert compat.calculate_mfu(5e12, 1.0, 1e12) == 1.0
    assert compat.calculate_mfu(5e11, 1.0, 1e12) == 0.5
    assert compat.calculate_mfu(1.0, 1.0, 0) == 0.0


def test_the_four_modes(model):
    parameters = sum(p.numel() for p in model.parameters())
    estimate = 7.5 * parameters * BATCH * LENGTH / 1e12
    assert compat.calculate_precise_mfu(model, BATCH, LENGTH, 1.0, "estimate") == pytest.approx(estimate)
    assert compat.calculate_precise_mfu(model, BATCH, LENGTH, 1.0, "profiler") == LINEAR / 1e12
    assert compat.calculate_precise_mfu(model, BATCH, LENGTH, 1.0, "hybrid") == LINEAR / 1e12
    assert compat.calculate_precise_mfu(model, BATCH, LENGTH, 1.0) == pytest.approx(LINEAR / 1e12)
    assert compat.calculate_precise_mfu(model, BATCH, LENGTH, 1.0, actual_flops=2e11) == 0.2


def test_smart_measures_once_and_again_after_a_thousand_calls(monkeypatch):
    from flopmeter.compat import _measure

    model, measured = Tokens(), []
    real = _measure._measure_flops_with_profiler
    monkeypatch.setattr(_measure, "_measure_flops_with_profiler", lambda *a: measured.append(1) or real(*a))
    for _ in range(1001):
        compat.calculate_precise_mfu(model, BATCH, LENGTH, 1.0)
    assert len(measured) == 2
    twice = compat.calculate_precise_mfu(model, 2 * BATCH, LENGTH, 1.0)  # scaled, not measured
    assert twice == pytest.approx(2 * LINEAR / 1e12)
    assert len(measured) == 2


def test_the_estimate_is_seven_and_a_half_flops_a_parameter_and_token(model):
    parameters = sum(p.numel() for p in model.parameters())
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    batch = {"input_ids": torch.zeros(2, 4, dtype=torch.long), "attention_mask": mask}
    assert compat._get_actual_sequence_length(batch) == 3.0
    assert compat._estimate_forward_flops(model, batch) == 2.5 * parameters * 2 * 3
    assert compat.profile_model_flops(model, batch) == compat._estimate_flops_fallback(model, batch) == 7.5 * parameters * 2 * 3


def test_visual_tokens_come_from_the_grid_else_576():
    ids = torch.zeros(2, 10, dtype=torch.long)
    grid = torch.tensor([[1, 16, 16], [1, 8, 8]])
    assert compat._get_actual_sequence_length({"input_ids": ids}) == 10
    assert compat._get_actual_sequence_length({"input_ids": ids, "image_grid_thw": grid}) == 10 + (64 + 16) / 2
    assert compat._get_actual_sequence_length({"input_ids": ids, "pixel_values": torch.zeros(2, 3, 4, 4)}) == 10 + 576


def test_install_makes_the_samples_import_lines_work():
    compat.install()
    from training.utils.monitor import TrainingMonitor, calculate_mfu_with_profiler, profile_model_flops

    assert TrainingMonitor is compat.TrainingMonitor
    assert calculate_mfu_with_profiler is compat.calculate_mfu_with_profiler
    assert profile_model_flops is flopmeter.compat.profile_model_flops
