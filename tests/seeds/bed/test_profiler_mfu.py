# SPDX-License-Identifier: Apache-2.0
"""The first document's three checks: MFU by profiler, the TrainingMonitor, and what measuring costs."""

import time

import flopmeter
import torch

flopmeter.compat.install()
from training.utils.monitor import TrainingMonitor, calculate_mfu_with_profiler  # noqa: E402

model = torch.nn.Sequential(torch.nn.Embedding(50, 64), torch.nn.Linear(64, 50))
assert 0 < calculate_mfu_with_profiler(model, batch_size=4, seq_length=32, step_time=0.1) <= 1

monitor = TrainingMonitor("outputs", {}, flops_profile_freq=2)
monitor.model_ref, monitor.batch_size, monitor.seq_length = model, 4, 32
mfus = [monitor.log_step(step, 0, 1.0, 1.0, 1e-3)["perf/mfu"] for step in range(4)]
assert [mfu > 0 for mfu in mfus] == [True, False, True, False], mfus

seconds = {}
for frequency in (0, 1):
    monitor.flops_profile_freq = frequency
    start = time.perf_counter()
    for step in range(20):
        monitor.log_step(step, 0, 1.0, 1.0, 1e-3)
    seconds[frequency] = time.perf_counter() - start
assert seconds[0] < seconds[1], seconds
monitor.finish()
print("ok")
