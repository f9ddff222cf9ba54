# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests against transformers: the CLI and the number of random configurations."""

import json
import os
import subprocess
from pathlib import Path
from random import Random

import pytest
import torch
import transformers

from families import DENSE
from families_encoders import ENCODERS
from families_hybrid import HYBRID
from families_moe import MOE
from families_more import MORE
from families_vision import VISION

FAMILIES = DENSE + MORE + MOE + HYBRID + VISION + ENCODERS
ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    default = 20 if os.environ.get("FLOPMETER_LONG") == "1" else 2
    parser.addoption("--configs", type=int, default=default, help="random configurations per family (2; 20 in the long tests)")


def pytest_configure(config):
    torch.set_num_threads(1)  # tiny models do not benefit from more threads
    transformers.logging.set_verbosity_error()


def pytest_generate_tests(metafunc):
    if "family" in metafunc.fixturenames:
        metafunc.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("configs")))


@pytest.fixture(scope="session")
def program():
    """Path of the CLI: FLOPMETER_BIN, else build/flopmeter."""
    path = Path(os.environ.get("FLOPMETER_BIN", ROOT / "build" / "flopmeter"))
    if not path.is_file():
        pytest.fail(f"{path} does not exist; run `make build` or set FLOPMETER_BIN")
    return path


@pytest.fixture
def config(family, seed):
    """Configuration number `seed` of the family; deterministic."""
    return family.config(Random(f"{family.name} {seed}"))


@pytest.fixture
def estimate(program):
    """Runs `flopmeter estimate FILE … --json` and returns the result."""

    def run(file, *arguments):
        command = [program, "estimate", file, *map(str, arguments), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{file.read_text()}\n{done.stderr}"
        return json.loads(done.stdout)

    return run
