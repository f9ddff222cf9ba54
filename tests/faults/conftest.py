# SPDX-License-Identifier: Apache-2.0
"""Runs plans of injected.py and asks the real program what it makes of them."""

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
    """Random numbers for this session; FLOPMETER_SEED repeats one."""
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
    """What the program itself measures on one thread, kept where only its tests find it."""
    command = [ROOT / "build" / "flopmeter", "peak", "--seconds", "0.5", "--dtype", *dtypes, "--json"]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=settings)
    return {name: row["flops_per_second"] for name, row in json.loads(done.stdout)["peaks"].items()}


@pytest.fixture(scope="session")
def peak(tmp_path_factory):
    """Peaks of the formats that training is in unless it is told otherwise: fp32 is the fast one."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("flopmeter._torch")
    torch.set_num_threads(1)
    cache = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    return measure_peaks(cache, "fp32", "fp64")


@pytest.fixture(scope="session")
def peak_with_bf16(peak, tmp_path_factory):
    """The cache of peaks where bf16 was measured too, and whether the machine computes it clearly faster."""
    cache = tmp_path_factory.mktemp("cache_bf16")
    peaks = measure_peaks(cache, "fp32", "bf16")
    return cache, peaks["bf16"] > 1.5 * peaks["fp32"]


@pytest.fixture(scope="session")
def awake():
    """Processors that do not fall asleep while the training waits.

    A virtual machine's processor that slept is late when it is called again, now and then by a tenth of a step: that is
    no part of a injected sleep.
    """
    # Not children of this process: those would pass for its loaders.
    start = ["sh", "-c", '"$@" >/dev/null 2>&1 & echo $!', "sh", sys.executable, "-c", _SPIN]
    processors = map(str, os.sched_getaffinity(0))
    spinning = [int(subprocess.check_output([*start, processor])) for processor in processors]
    yield
    for process in spinning:
        os.kill(process, signal.SIGKILL)
