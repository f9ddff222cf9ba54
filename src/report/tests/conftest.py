# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the CLI, and a real Chromium controlled through its debugging pipe."""
import os
import pathlib
import subprocess

import pytest

from chromium import Chromium

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def program():
    path = pathlib.Path(os.environ.get("FLOPMETER_PROGRAM", ROOT / "build" / "flopmeter"))
    if not path.exists():
        pytest.skip("build/flopmeter is missing: run make build")
    return path


@pytest.fixture(scope="session")
def flopmeter(program):
    def run(*arguments, check=True, **more):
        return subprocess.run([program, *map(str, arguments)], check=check, capture_output=True, text=True, timeout=120, **more)

    return run


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("chromium")) as running:
        yield running
