# SPDX-License-Identifier: Apache-2.0
"""A disk that is full for some time: the run finishes, reports each output once, and resumes writing."""

import json
import shutil
import subprocess

import pytest
from conftest import find_example, only

# All but 48 KiB are in use; the space is freed during the run.
SCRIPT = """
set -e
mount -t tmpfs -o size=3m none "$1/disk"
head -c 3096576 /dev/zero > "$1/disk/other"
(sleep 1.5; rm "$1/disk/other") &
"$2" --perf-log-dir "$1/disk/run" --steps 1000 --milliseconds 5 --no-perf-console-output --perf-csv 2> "$1/errors"
wait
cp -r "$1/disk/run" "$1/run"
"""


def test_a_full_disk_is_reported_once_and_writing_resumes(tmp_path):
    namespace = ["unshare", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*namespace, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    (tmp_path / "disk").mkdir()
    done = subprocess.run([*namespace, "bash", "-c", SCRIPT, "-", str(tmp_path), str(find_example())], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    errors = (tmp_path / "errors").read_text().splitlines()
    outputs = [line.split()[2] for line in errors]
    assert "jsonl" in outputs and len(outputs) == len(set(outputs))
    assert all("No space left on device" in line for line in errors)
    rows = [json.loads(line) for line in only(tmp_path / "run", "records_*.jsonl").read_text().splitlines()]
    steps = [row["step"] for row in rows]
    assert steps == sorted(steps) and len(steps) < 1000, "some were lost"
    assert steps[-1] == 1000 and rows[-1]["failed_writes"] > 0
    assert json.loads(only(tmp_path / "run", "perf_summary_*.json").read_text())["session_info"]["total_iterations"] == 1000
