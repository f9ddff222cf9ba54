# SPDX-License-Identifier: Apache-2.0
"""`flopmeter peak` stores only results that later runs can be measured against."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FLOPMETER_BIN", str(ROOT / "build" / "flopmeter"))


def measure(cache, *arguments):
    if not (Path(PROGRAM).resolve().parent / "flopmeter-peak").exists():
        pytest.skip("flopmeter-peak is not built")
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [PROGRAM, "peak", "--seconds", "0.1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    return done, (cache / "flopmeter" / "peaks.json").exists()


def test_a_dtype_that_cannot_be_measured_stores_nothing(tmp_path):
    done, stored = measure(tmp_path, "--dtype", "fp4")
    assert done.returncode == 1 and "not measured" in done.stderr and not stored


def test_a_peak_that_other_load_disturbed_is_not_stored(tmp_path):
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        done, stored = measure(tmp_path, "--dtype", "fp32")
        assert "the peak is too low, not stored" in done.stderr and not stored
    finally:
        for each in load:
            each.kill()
            each.wait()
