# SPDX-License-Identifier: Apache-2.0
"""Fixtures for all tests of the package: torch, one seed, and an offline run of W&B."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

torch = pytest.importorskip("torch")
metrics = pytest.importorskip("flopmeter.metrics")
metrics.Window.metrics.__defaults__ = (10.0,)  # seconds: the machine may be busy with other tests


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """An offline W&B run."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(project="test", dir=str(tmp_path / "wandb"), settings=wandb.Settings(x_disable_stats=True))
    yield run
    run.finish()
