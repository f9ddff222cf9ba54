# SPDX-License-Identifier: Apache-2.0
"""One rank (RANK of WORLD_SIZE) of a loop without collectives: steps of unequal work at equal speed.

loop.py DIRECTORY STEPS SECONDS [SLOWNESS]: a step takes about SECONDS; with 0 STEPS, step() is never called.
"""

import os
import sys
import time

import flopmeter

directory, steps, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
slowness = float(sys.argv[4]) if len(sys.argv) > 4 else 1
rank = int(os.environ["RANK"])
monitor = flopmeter.Monitor(directory, console=False, peak_tflops=1, log_interval=5)
print("ready", flush=True)
for step in range(steps):
    work = 0.75 + (7 * step + 3 * rank) % 6 / 10
    with monitor.step(samples=1, tokens=100, flops=int(work * seconds * 1e11)):
        with monitor.phase("forward"):
            time.sleep(work * seconds * slowness)
if steps == 0:
    time.sleep(2)
monitor.finish()
