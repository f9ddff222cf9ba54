# SPDX-License-Identifier: Apache-2.0
"""What the tests of counting share: torch, one seed, and a brute-force count to set ours against."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
