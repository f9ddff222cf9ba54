# SPDX-License-Identifier: Apache-2.0
"""Fixtures: run the plans of injected.py and analyze them with the CLI."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
_SPIN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while True:
    pass
"""


@pytest.fixture(scope="session")
def draw():
    """Random generator of this session; set FLOPMETER_SEED to repeat a session."""
    seed = int(os.environ.get("FLOPMETER_SEED", random.SystemRandom().randrange(2**32)))
    print(f"FLOPMETER_SEED={seed}")
    return random.Random(seed)


@pytest.fixture(scope="session")
def ask():
    program = ROOT / "build" / "flopmeter"
    if not program.exists():
        pytest.skip("build/flopmeter is not built")

    def run(command, *arguments):
        done = subprocess.run(
            [program, command, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def diagnose(ask):
    return lambda directory: ask("diagnose", directory)


def measure_peaks(cache, *dtypes):
    """Measures the peaks on one thread and stores them in a cache for these tests only."""
    command = [ROOT / "build" / "flopmeter", "peak", "--seconds", "0.5", "--dtype", *dtypes, "--json"]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=settings)
    return {name: row["flops_per_second"] for name, row in json.loads(done.stdout)["peaks"].items()}


@pytest.fixture(scope="session")
def peak(tmp_path_factory):
    """Peaks of fp32 and fp64: without bf16, fp32 is the fastest dtype."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("flopmeter._torch_build")
    torch.set_num_threads(1)
    cache = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    return measure_peaks(cache, "fp32", "fp64")


@pytest.fixture(scope="session")
def peak_with_bf16(peak, tmp_path_factory):
    """Cache of peaks with bf16, and whether bf16 is much faster than fp32 on this machine."""
    cache = tmp_path_factory.mktemp("cache_bf16")
    peaks = measure_peaks(cache, "fp32", "bf16")
    return cache, peaks["bf16"] > 1.5 * peaks["fp32"]


@pytest.fixture(scope="session")
def awake():
    """Keeps all processors awake while the training waits.

    A virtual processor that slept can wake up late by a tenth of a step, which is not part of an injected sleep.
    """
    # Not children of this process: they would count as its loader workers.
    start = ["sh", "-c", '"$@" >/dev/null 2>&1 & echo $!', "sh", sys.executable, "-c", _SPIN]
    processors = map(str, os.sched_getaffinity(0))
    spinning = [int(subprocess.check_output([*start, processor])) for processor in processors]
    yield
    for process in spinning:
        os.kill(process, signal.SIGKILL)
