# SPDX-License-Identifier: Apache-2.0
"""200 steps per second with all outputs, for a minute or for FLOPMETER_SOAK_SECONDS."""

import os
import pathlib
import time

import pytest
from test_metrics_endpoint import curl, free_port, start, steps

pytestmark = pytest.mark.long
SECONDS = float(os.environ.get("FLOPMETER_SOAK_SECONDS", 60))
DISK_LIMIT_MIB = 16  # of a file, reached within a few minutes
MOST_GROWTH = 2 << 20  # bytes of memory after the first fifth of the run


def usage(pid):
    """Open files, threads, and bytes of memory of a process."""
    folder = pathlib.Path(f"/proc/{pid}")
    resident = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir())), resident


def test_a_long_run_needs_no_more_files_threads_or_memory_than_a_short_one(tmp_path, monkeypatch):
    monkeypatch.setenv("FLOPMETER_DISK_LIMIT_MIB", str(DISK_LIMIT_MIB))
    port = free_port()
    outputs = ["--perf-metrics-address", f"127.0.0.1:{port}", "--perf-breakdown", "--tensorboard", "--perf-csv"]
    process = start(tmp_path, *outputs)
    try:
        begin = time.monotonic()
        rows = []
        while (elapsed := time.monotonic() - begin) < SECONDS:
            time.sleep(0.5)
            status, _, body = curl(port)
            if status == 200:
                rows.append((elapsed, *usage(process.pid), steps(body) if "flopmeter_steps_total" in body else 0))
        begun = [row for row in rows if row[0] < SECONDS / 5]
        warm, last = begun[-1], rows[-1]
        assert last[1] <= max(row[1] for row in begun)
        assert last[2] == warm[2]
        assert last[3] - warm[3] <= MOST_GROWTH
        assert last[4] - warm[4] > 100 * (last[0] - warm[0])  # the machine may be busy, but the run goes on
        assert len(rows) > SECONDS / 2
        assert max(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= DISK_LIMIT_MIB << 20
    finally:
        process.kill()
        process.wait()
