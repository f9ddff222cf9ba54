# SPDX-License-Identifier: Apache-2.0
"""A program exits within two seconds, even with blocked outputs, and its records are readable."""

import os
import signal
import subprocess
import sys
import time

import pytest
from run_records import records

PROGRAM = """
import os, signal, sys, threading, time
import flopmeter

ending, directory = sys.argv[1:]
flopmeter.register_sink("stuck", lambda record: threading.Event().wait())
monitor = flopmeter.Monitor(directory, console=False, sinks=["stuck", f"jsonl:{directory}/../fifo"])
for _ in range(400):
    with monitor.step(tokens=10, samples=2):
        pass
while monitor.status["written"] < 400:
    time.sleep(0.01)
print(time.monotonic(), flush=True)
if ending == "finish":
    monitor.finish()
if ending == "exit":
    sys.exit(3)
if ending == "_exit":
    os._exit(4)
if ending == "raise":
    raise RuntimeError("as planned")
if ending.startswith("SIG"):
    os.kill(os.getpid(), getattr(signal, ending))
"""
ENDS = {"finish": 0, "forgotten": 0, "exit": 3, "_exit": 4, "raise": 1, "SIGTERM": -signal.SIGTERM, "SIGINT": -signal.SIGINT}


@pytest.mark.parametrize("ending", ENDS)
def test_the_process_exits_within_two_seconds(tmp_path, ending):
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)  # never read: a pipe holds 64 KiB
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, ending, tmp_path / "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        began = float(process.stdout.readline())
        _, errors = process.communicate(timeout=60)
        taken = time.monotonic() - began
    finally:
        os.close(reader)
    assert process.returncode == ENDS[ending], errors
    assert taken < 2
    assert "fifo" in errors
    assert len(records(tmp_path / "run")) == 400


def test_a_monitor_created_before_torch_reports_why_it_counted_nothing(tmp_path):
    program = "import sys, flopmeter; monitor = flopmeter.Monitor(sys.argv[1], console=False); import torch; monitor.finish()"
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "run"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert "the Monitor was created before torch was imported" in done.stderr
