# SPDX-License-Identifier: Apache-2.0
"""Fixtures: start ranks and read their run directory with the CLI."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
LAYOUTS = ("ddp", "fsdp", "tensor", "mesh", "pipeline", "context", "experts", "own_experts")
PROGRAM = os.environ.get("FLOPMETER_BIN", str(HERE.parents[1] / "build" / "flopmeter"))


def output_of(command, directory):
    """Output of `flopmeter COMMAND --json`."""
    done = subprocess.run([PROGRAM, command, str(directory), "--json"], check=True, capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


def ranks_of(directory):
    """Output of `flopmeter ranks --json`."""
    return output_of("ranks", directory)


def launch(directory, ranks, *layouts):
    """Runs worker.py on a number of ranks; returns the run directory of each layout."""
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={ranks}", "--standalone"]
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


def start(directory, rank, world, steps, seconds, slowness=1.0):
    """One rank of loop.py, which has no collectives."""
    command = [sys.executable, str(HERE / "loop.py"), str(directory), str(steps), str(seconds), str(slowness)]
    return subprocess.Popen(
        command, env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(world)), stdout=subprocess.PIPE, text=True
    )


def step_times(directory, rank):
    (file,) = directory.glob(f"records_*.rank{rank}.jsonl")
    whole_lines, _, _ = file.read_text().rpartition("\n")  # the last line may be incomplete
    return [json.loads(line)["step_seconds"] for line in whole_lines.splitlines()]


@pytest.fixture(scope="session")
def two_ranks(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("two"), 2, *LAYOUTS, "late", "counted", "broadcast")


@pytest.fixture(scope="session")
def four_ranks(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("four"), 4, *LAYOUTS)
