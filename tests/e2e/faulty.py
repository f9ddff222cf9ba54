# SPDX-License-Identifier: Apache-2.0
"""Runs one rank with an injected fault after ten seconds: faulty.py DIRECTORY stalled|slower|idle|full."""

import itertools
import resource
import sys
import time

import flopmeter

directory, fault = sys.argv[1:]
monitor = flopmeter.Monitor(directory, console=False, peak_tflops=1, log_interval=5)
begin = time.monotonic()
for _ in itertools.count():
    now = fault if time.monotonic() - begin > 10 else None
    if now == "stalled":
        time.sleep(3600)
    if now == "full":  # all writes fail, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    with monitor.step(samples=1, tokens=100, flops=10**9):
        time.sleep(0.06 if now == "slower" else 0.02)
    if now == "idle":
        time.sleep(0.1)
