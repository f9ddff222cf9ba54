# SPDX-License-Identifier: Apache-2.0
"""Records are complete regardless of when the monitor is created and how often the ranks restart."""

import json
import os
import subprocess
import sys

import pytest
from conftest import HERE, ranks_of

RUNNER = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


def run(*command):
    # torchrun keeps its store over a restart, and gloo may find addresses of the previous attempt: use separate stores.
    environment = dict(os.environ, OMP_NUM_THREADS="1", TORCH_CPP_LOG_LEVEL="ERROR", TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.torch2("a launcher for Python 3.11")
def test_the_monitor_can_be_created_before_between_and_after_process_groups(tmp_path):
    run(*RUNNER, "--nproc_per_node=2", HERE / "orders.py", tmp_path)
    expected = {"before": (2, 0), "uneven": (2, 2), "described": (1, 0), "again": (1, 0), "after": (1, 0)}
    for name, (complete, incomplete) in expected.items():
        merged = ranks_of(tmp_path / name)
        assert (merged["world_size"], merged["missing"]) == (2, []), name
        assert (merged["totals"]["complete_steps"], merged["totals"]["incomplete_steps"]) == (complete, incomplete), name
        for rank in range(2):
            (file,) = (tmp_path / name).glob(f"records_*.rank{rank}.jsonl")
            assert {json.loads(line)["samples"] for line in file.read_text().splitlines()} == {rank + 1}, name
    layouts = {name: json.loads((tmp_path / name / "run.json").read_text())["world"] for name in expected}
    assert {name: layout["pipeline_parallel"] for name, layout in layouts.items()} == {**dict.fromkeys(expected, 1), "described": 2}
    assert layouts["described"]["pipeline_stride"] == 1


@pytest.mark.long
def test_a_restarted_and_enlarged_run_is_read_as_one(tmp_path):
    run(*RUNNER, "--nproc_per_node=2", "--max-restarts=1", HERE / "elastic.py", tmp_path, 1, 8)
    merged = ranks_of(tmp_path)
    assert [start["world_size"] for start in merged["starts"]] == [2, 2]
    assert [rank["repeated_steps"] for rank in merged["ranks"]] == [2, 2]  # steps 4 and 5
    assert merged["totals"]["complete_steps"] == 8 and merged["totals"]["incomplete_steps"] == 0
    assert merged["totals"]["tokens"] == 8 * 2 * 10

    run(*RUNNER, "--nproc_per_node=4", HERE / "elastic.py", tmp_path, 9, 12)
    merged = ranks_of(tmp_path)
    assert [start["world_size"] for start in merged["starts"]] == [2, 2, 4]
    assert (merged["world_size"], merged["missing"], merged["behind"]) == (4, [], [])
    assert merged["totals"]["complete_steps"] == 12
    assert merged["totals"]["tokens"] == (8 * 2 + 4 * 4) * 10
