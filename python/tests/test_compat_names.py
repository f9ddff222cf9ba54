# SPDX-License-Identifier: Apache-2.0
"""flopmeter.compat: estimates, dummy-batch measurements, and the four modes; always a float, never an exception."""

import subprocess
import sys

import flopmeter
import pytest
import torch
from flopmeter import compat
from torch import nn

BATCH, LENGTH = 2, 8


@pytest.fixture(autouse=True)
def peak(tmp_path, monkeypatch):
    """A peak that makes MFU small on all machines."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("flopmeter.compat._measure.get_gpu_peak_flops", lambda *_: 1e12)


@pytest.fixture
def model():
    return Tokens()


class Tokens(nn.Module):
    """A model that takes input_ids, without masks and labels."""

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


def test_the_real_profiler_runs_on_demand(model):
    measured = compat._measure_flops_with_profiler(model, BATCH, LENGTH, flops_backend="torch_profiler")
    # It counts the forward matmul, both gradients, and elementwise operators.
    assert LINEAR <= measured < 2 * LINEAR


def test_plain_modules_get_a_matching_tensor():
    assert compat._measure_flops_with_profiler(nn.Linear(16, 4), BATCH, LENGTH) == 2 * 2 * BATCH * LENGTH * 16 * 4


@pytest.mark.parametrize("model", [nn.Conv2d(1, 1, 3), nn.Identity(), None, object()])
def test_a_failed_measurement_is_zero_and_logged(model, capsys):
    assert compat.calculate_mfu_with_profiler(model, 1, 4, 0.1) == 0.0
    assert compat.calculate_precise_mfu(model, 1, 4, 0.1, "profiler") == 0.0
    assert compat.profile_model_flops(model, None) == 0.0
    assert capsys.readouterr().out


def test_mfu_is_a_float_of_at_most_one(model):
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


def test_the_estimate_is_seven_and_a_half_flops_per_parameter_and_token(model):
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


@pytest.mark.parametrize(
    ("batch", "tokens"),
    [
        ({"input_ids": [[0] * 4] * 2}, 8),
        ({"input_ids": [[0] * 4] * 2, "attention_mask": [[1, 1, 1, 1], [1, 1, 0, 0]]}, 6),
        ({"input_ids": torch.zeros(4)}, 4),
        ({"input_ids": torch.zeros(2, 4), "attention_mask": torch.ones(1, 1, 4, 4)}, 8),
        ({"input_ids": torch.zeros(2, 4), "attention_mask": torch.tensor([[0.0, -1e9, 0.0, 0.0]] * 2)}, 8),
        ({"input_ids": torch.zeros(2, 4).numpy()}, 8),
        ({"inputs_embeds": torch.zeros(2, 4, 16)}, 8),
        ({"labels": torch.zeros(2, 4)}, 8),
        ({"input_ids": torch.zeros(2, 4), "image_grid_thw": (1, 4, 4)}, 12),
        ({"pixel_values": torch.zeros(2, 3, 4, 4)}, 2 * 576),
        ((torch.zeros(2, 4, dtype=torch.long), torch.zeros(2)), 8),
        (torch.zeros(2, 4, dtype=torch.long), 8),
    ],
)
def test_tokens_are_read_from_batches_of_all_forms(model, batch, tokens):
    parameters = sum(p.numel() for p in model.parameters())
    assert compat.profile_model_flops(model, batch) == 7.5 * parameters * tokens


@pytest.mark.parametrize("batch", [{}, None, "text", {"other": 1}, {"attention_mask": "text"}])
def test_a_batch_without_information_is_zero_and_logged_once(model, batch, capsys):
    assert compat.profile_model_flops(model, batch) == 0.0
    assert capsys.readouterr().out.count("\n") == 1
    assert compat._get_actual_sequence_length(batch) == 0.0


@pytest.mark.parametrize("bad", [None, "text", float("nan"), 0, [1.0]])
def test_a_value_that_is_not_a_number_is_zero_and_logged_once(model, bad, capsys):
    for place in range(3):
        numbers = [1e9, 0.1, 1e12]
        numbers[place] = bad
        assert compat.calculate_mfu(*numbers) == 0.0
        assert capsys.readouterr().out.count("\n") == 1
    assert compat.calculate_mfu_with_profiler(model, BATCH, LENGTH, bad) == 0.0
    assert capsys.readouterr().out.count("step_time") == 1
    assert compat.calculate_mfu_with_profiler(model, bad, LENGTH, 0.1) == 0.0
    assert "batch_size" in capsys.readouterr().out


def test_tensors_are_numbers():
    assert compat.calculate_mfu(torch.tensor(5e11, dtype=torch.float64), torch.tensor(1), 1e12) == 0.5


@pytest.mark.parametrize(("device", "dtype"), [("none such", None), ("h100", "int4"), ("cuda:99", None)])
def test_an_unknown_peak_is_zero_and_logged(device, dtype, monkeypatch, capsys):
    monkeypatch.undo()
    assert compat.get_gpu_peak_flops(device, dtype) == 0.0
    assert capsys.readouterr().out.count("\n") == 1


def test_install_makes_the_imports_of_the_samples_work():
    compat.install()
    from training.utils.monitor import TrainingMonitor, calculate_mfu_with_profiler, profile_model_flops

    assert TrainingMonitor is compat.TrainingMonitor
    assert calculate_mfu_with_profiler is compat.calculate_mfu_with_profiler
    assert profile_model_flops is flopmeter.compat.profile_model_flops


@pytest.mark.parametrize(
    ("files", "output"),
    [
        ({"training/data.py": "own = 1"}, "1 True"),  # a folder without __init__.py
        ({"training/__init__.py": "", "training/utils/__init__.py": "", "training/data.py": "own = 2"}, "2 True"),
        ({"training/data.py": "own = 3", "training/utils/monitor.py": "profile_model_flops = None"}, "3 False"),
    ],
)
def test_install_preserves_modules_of_the_program(tmp_path, files, output):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    program = (
        "import sys, importlib.util, flopmeter.compat\n"
        "flopmeter.compat.install()\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"  # later than install(), as programs do
        "from training.utils.monitor import profile_model_flops\n"
        "from training.data import own\n"
        "assert importlib.util.find_spec('training') and importlib.util.find_spec('training.utils.monitor')\n"
        "print(own, profile_model_flops is flopmeter.compat.profile_model_flops)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == output, done.stderr
