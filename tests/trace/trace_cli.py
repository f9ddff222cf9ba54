# SPDX-License-Identifier: Apache-2.0
"""Runs `flopmeter trace` as users do."""

import json
import os
import subprocess
from pathlib import Path

PROGRAM = Path(os.environ.get("FLOPMETER_BIN", Path(__file__).parents[2] / "build/flopmeter"))


def run_trace(*arguments, timeout=60):
    return subprocess.run(
        [str(PROGRAM), "trace", *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False
    )


def trace_json(*arguments):
    done = run_trace(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
