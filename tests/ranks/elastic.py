# SPDX-License-Identifier: Apache-2.0
"""One rank under torchrun with a checkpoint at step 3; in the first attempt, rank 1 dies after step 5.

elastic.py DIRECTORY FIRST LAST: first and last step of an attempt without failure.
"""

import os
import sys
import time

import flopmeter
import torch
import torch.distributed as dist

directory, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
monitor = flopmeter.Monitor(directory, console=False, peak_tflops=1, log_interval=2)
for step in range(4 if attempt > 0 else first, last + 1):
    with monitor.step(samples=1, tokens=10, step=step):
        dist.all_reduce(torch.ones(4, 4) @ torch.ones(4, 4))
    if step == 5 and attempt == 0 and dist.get_rank() == 1:
        time.sleep(1.5)  # until the records of rank 0 are written
        os._exit(1)
monitor.finish()
dist.destroy_process_group()
