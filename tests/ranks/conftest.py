# SPDX-License-Identifier: Apache-2.0
"""Starts real ranks and reads what they wrote with the program."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
MORE = ("context", "experts", "own_experts")
PROGRAM = os.environ.get("FLOPMETER_BIN", str(HERE.parents[1] / "build" / "flopmeter"))


def ranks_of(directory):
    """What `flopmeter ranks --json` says."""
    done = subprocess.run([PROGRAM, "ranks", str(directory), "--json"], check=True, capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


def launch(directory, ranks, *layouts):
    """Runs worker.py on so many ranks; returns where each layout's run directory is."""
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--standalone"]
    done = subprocess.run(
        [*command, str(HERE / "worker.py"), str(directory), *layouts],
        env=dict(os.environ, OMP_NUM_THREADS="1", TORCH_CPP_LOG_LEVEL="ERROR"),
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return {layout: directory / layout for layout in layouts}


@pytest.fixture(scope="session")
def two_ranks(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("two"), 2, "ddp", "fsdp", "tensor", "pipeline", *MORE, "late", "counted", "broadcast")


@pytest.fixture(scope="session")
def four_ranks(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("four"), 4, "ddp", "fsdp", "tensor", "pipeline", *MORE)
