# SPDX-License-Identifier: Apache-2.0
"""The torch adapter compiles for the supported PyTorch releases, by their headers."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_torch_versions.py"


def check(*arguments):
    done = subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True)
    if "skipped" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_adapter_compiles_for_an_old_and_a_new_release_in_the_cache():
    check()


@pytest.mark.long
def test_the_adapter_compiles_for_every_supported_release():
    check("--all")
