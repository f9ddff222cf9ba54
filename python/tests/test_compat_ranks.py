# SPDX-License-Identifier: Apache-2.0
"""flopmeter.compat on two real ranks: one log, one console, and measurements that do not wait for other ranks."""

import json
import os
import subprocess
import sys

import pytest

WIDTH = 16
STEP_FLOPS = 2 * 2 * 4 * WIDTH * WIDTH
PROGRAM = f"""
import sys
import torch, torch.distributed as dist
from flopmeter.compat import TrainingMonitor, _measure_flops_with_profiler
from torch import nn
folder, when = sys.argv[1:]
monitor = TrainingMonitor(folder, flops_profile_freq=2) if when == "before" else None
dist.init_process_group("gloo")
monitor = monitor or TrainingMonitor(folder, flops_profile_freq=2)
rank = dist.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Linear({WIDTH}, {WIDTH}, bias=False))
if rank == 0:  # alone, while the other goes on
    assert _measure_flops_with_profiler(model, 4, 1) == {STEP_FLOPS}
monitor.model_ref, monitor.batch_size, monitor.seq_length = model, 4, 1
for step in range(4):
    model(torch.ones(4, {WIDTH})).sum().backward()
    monitor.log_step(step, 0, rank * 100 + step, 1.0, 1e-3)
monitor.finish()

class Talks(nn.Linear):
    def forward(self, input):
        output = super().forward(input)
        dist.all_reduce(output.detach())
        return output

if rank == 0:
    assert _measure_flops_with_profiler(Talks({WIDTH}, {WIDTH}), 4, 1) == 0.0
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_only_rank_0_writes_and_measures(tmp_path, when):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command += [str(tmp_path / "program.py"), str(tmp_path / "out"), when]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 0, done.stderr
    entries = json.loads((tmp_path / "out" / "training_log.json").read_text())
    assert [(entry["step"], entry["loss"], entry["flops"]) for entry in entries] == [
        (step, step, STEP_FLOPS if step % 2 == 0 else 0) for step in range(4)
    ]
    assert done.stdout.count("MFU by profiler") == 2
    assert "would wait for the other ranks" in done.stdout
    assert len(list((tmp_path / "out" / "perf_monitor").glob("records_*.rank*.jsonl"))) == 2
