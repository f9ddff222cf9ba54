# SPDX-License-Identifier: Apache-2.0
"""Document 3: simplified estimate."""

import inspect
import re
from typing import Dict  # noqa: UP035 (the sample's own spelling)

import pytest
import torch
from flopmeter import compat
from flopmeter._flopmeter import Options
from seed_samples import sample

BATCH = {
    "input_ids": torch.zeros(2, 6, dtype=torch.long),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]]),
}


@pytest.fixture
def model():
    return torch.nn.Linear(10, 10)


def test_line_029_the_signatures_match_and_the_model_does_not_run(execute, model):
    theirs = inspect.signature(execute("s3_line029.py", {"Dict": Dict})["profile_model_flops"])
    assert list(theirs.parameters) == list(inspect.signature(compat.profile_model_flops).parameters)
    model.register_forward_pre_hook(lambda *_: pytest.fail("the model must not run"))
    assert isinstance(compat.profile_model_flops(model, BATCH), theirs.return_annotation)


def test_line_052_the_formulas_match(execute, model):
    names = {"param_count": 110, "batch_size": 2, "seq_length": compat._get_actual_sequence_length(BATCH)}
    scope = execute("s3_line052.py", names)
    assert compat._estimate_forward_flops(model, BATCH) == scope["forward_flops"]
    assert compat.profile_model_flops(model, BATCH) == scope["total_flops"] == scope["forward_flops"] + scope["backward_flops"]


@pytest.mark.parametrize("masked", [True, False])
def test_line_073_the_sequence_lengths_match(execute, masked):
    batch = BATCH if masked else {"input_ids": BATCH["input_ids"]}
    # torch has no mean of integers, so the mask becomes a float first.
    edits = {"attention_mask.sum(dim=1).mean()": "attention_mask.sum(dim=1).float().mean()"}
    scope = execute("s3_line073.py", {"batch_example": batch, **batch}, edits)
    assert float(scope["actual_seq_length"]) == compat._get_actual_sequence_length(batch) == (4 if masked else 6)


def test_line_104_the_tables_estimates_follow_the_formula():
    rows = re.findall(r"7B\D+seq=(\d+)\s*\|\s*([\d.e]+)\s*\|\s*([\d.e]+)\s*\|\s*~(\d+)%", sample("s3_line104.txt"))
    assert len(rows) == 3
    for length, estimated, profiled, error in rows:
        sequences = float(estimated) / (7.5 * 7e9 * int(length))
        assert sequences == pytest.approx(78.1, abs=0.1)  # one batch size explains all three
        assert 100 * (1 - float(estimated) / float(profiled)) == pytest.approx(int(error), abs=1)


def test_line_115_the_test_script(shell):
    assert shell(sample("s3_line115.sh")).stdout.endswith("ok\n")


def test_line_130_use_in_training(execute, model):
    compat.install()
    names = {"model": model, "batch_example": BATCH, "compute_time": 0.1, "gpu_peak_flops": 1e9, "calculate_mfu": compat.calculate_mfu}
    scope = execute("s3_line130.py", names)
    assert scope["flops"] == 7.5 * 110 * 2 * 4
    assert scope["mfu"] == scope["flops"] / 0.1 / 1e9


def test_line_142_the_yaml_sets_the_frequency():
    options = Options()
    options.apply_yaml(sample("s3_line142.yaml"))
    assert options.values()["measure_frequency"] == "50"
