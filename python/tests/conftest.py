# SPDX-License-Identifier: Apache-2.0
"""What the tests of counting share: torch, one seed, and a brute-force count to set ours against."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

torch = pytest.importorskip("torch")
window = pytest.importorskip("flopmeter._window")
window.Window.metrics.__defaults__ = (10.0,)  # seconds: a machine that is busy with other tests is waited for


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
