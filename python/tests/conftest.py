# SPDX-License-Identifier: Apache-2.0
"""What the tests of counting share: torch, one seed, and a brute-force count to set ours against."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

torch = pytest.importorskip("torch")
window = pytest.importorskip("flopmeter.window")
window.Window.metrics.__defaults__ = (10.0,)  # seconds: a machine that is busy with other tests is waited for


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """An offline run of the real W&B."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(project="test", dir=str(tmp_path / "wandb"), settings=wandb.Settings(x_disable_stats=True))
    yield run
    run.finish()
