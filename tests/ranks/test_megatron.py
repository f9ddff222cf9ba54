# SPDX-License-Identifier: Apache-2.0
"""With the Megatron hooks, all ranks together report the global batch once, and so do the files of rank 0."""

import json
import os
import subprocess
import sys

import flopmeter
import pytest
from conftest import HERE, ranks_of
from flopmeter.integrations import megatron
from megatron_rank import GLOBAL_BATCH, LENGTH, STEPS, WORLD, arguments


def test_the_ranks_report_the_global_batch_once(tmp_path):
    command = [sys.executable, str(HERE / "megatron_rank.py"), str(tmp_path)]
    ranks = [subprocess.Popen(command, env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(WORLD))) for rank in range(WORLD)]
    assert [process.wait(60) for process in ranks] == [0] * WORLD
    config = megatron.model_config(arguments(tmp_path, 0))
    model_flops = flopmeter.estimate(config, seq_len=LENGTH, batch=GLOBAL_BATCH)["flops"]["model"]
    assert model_flops % WORLD != 0  # unequal shares still sum to the total
    totals = ranks_of(tmp_path)["totals"]
    assert totals["model_flops"] == STEPS * model_flops
    assert totals["samples"] == STEPS * GLOBAL_BATCH
    assert totals["tokens"] == STEPS * GLOBAL_BATCH * LENGTH
    assert totals["mfu"] == pytest.approx(STEPS * model_flops / (1e12 * WORLD * totals["seconds"]))

    (row,) = json.loads(next(tmp_path.glob("perf_summary_*.json")).read_text())["iteration_logs"]
    seconds = row["step_time_ms"] / 1000
    assert row["TFLOPS_total"] * 1e12 * seconds == pytest.approx(model_flops, rel=1e-3)
    assert row["samples_per_sec"] * seconds == pytest.approx(GLOBAL_BATCH)
    assert row["tokens_per_sec"] * seconds == pytest.approx(GLOBAL_BATCH * LENGTH)
