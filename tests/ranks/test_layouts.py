# SPDX-License-Identifier: Apache-2.0
"""However the work is split over ranks, the world's sums are those of one process that does all of it."""

import json

import flopmeter
import pytest
from conftest import ranks_of
from network import SAMPLES, TOKENS, Network, batch
from worker import STEPS

PEAK = 1e12


@pytest.fixture(scope="module")
def alone():
    """One process: FLOPs of a step, and of its head, which tensor parallelism leaves whole on all ranks."""
    model = Network()
    with flopmeter.count(modules=model) as count:
        model(batch()).sum().backward()
    head = sum(sum(flops) for name, flops in count.by_module.items() if name.split(".")[0] == "2")
    return count.model_flops, count.hardware_flops, head


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("layout", ["ddp", "fsdp", "tensor", "pipeline"])
def test_the_world_is_one_process(layout, ranks, alone, request):
    runs = request.getfixturevalue("two_ranks" if ranks == 2 else "four_ranks")
    model_flops, hardware_flops, head = alone
    merged = ranks_of(runs[layout])
    totals = merged["totals"]
    assert merged["world_size"] == ranks
    assert totals["complete_steps"] == STEPS and totals["incomplete_steps"] == 0
    assert totals["model_flops"] == STEPS * model_flops
    # Both ranks of a tensor-parallel group execute the head.
    assert totals["hardware_flops"] == STEPS * (hardware_flops + (head if layout == "tensor" else 0))
    assert totals["samples"] == STEPS * SAMPLES
    assert totals["tokens"] == STEPS * TOKENS
    assert totals["tokens_per_second"] == pytest.approx(STEPS * TOKENS / totals["seconds"])
    assert totals["mfu"] == pytest.approx(STEPS * model_flops / (PEAK * ranks * totals["seconds"]))


def test_run_json_holds_the_layout(two_ranks):
    world = json.loads((two_ranks["tensor"] / "run.json").read_text())["world"]
    assert (world["size"], world["data_parallel"], world["tensor_parallel"]) == (2, 1, 2)


def test_communication_is_seen_in_each_layout(two_ranks):
    for layout in ("ddp", "fsdp", "tensor", "pipeline"):
        for rank in ranks_of(two_ranks[layout])["ranks"]:
            assert rank["waited_seconds"] + rank["overlapped_seconds"] > 0, (layout, rank)


def test_the_late_rank_inside_ddp_is_named(two_ranks):
    merged = ranks_of(two_ranks["late"])
    first, second = merged["ranks"]
    assert first["seconds"] == pytest.approx(second["seconds"], rel=0.3)  # their step times do not tell
    assert first["waited_seconds"] > 8 * 0.1
    assert [rank["verdict"] for rank in merged["ranks"]] == ["normal", "slow"]
    assert second["lead_seconds"] > 0.02
    assert merged["missing_signals"] == []


def test_the_monitor_adds_no_collective(two_ranks):
    for rank in (0, 1):
        without, with_monitor = json.loads((two_ranks["counted"] / f"collectives.{rank}.json").read_text())
        assert without["calls"]["allreduce"] >= STEPS  # the counter counts
        assert with_monitor == without
