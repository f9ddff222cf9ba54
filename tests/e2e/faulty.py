# SPDX-License-Identifier: Apache-2.0
"""One rank that runs well for ten seconds and then has a fault: faulty.py DIRECTORY stalled|slower|gaps|full."""

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
    if now == "full":  # every write fails, as on a disk without space
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    with monitor.step(samples=1, tokens=100, flops=10**9):
        time.sleep(0.06 if now == "slower" else 0.02)
    if now == "gaps":
        time.sleep(0.1)
