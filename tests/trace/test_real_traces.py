# SPDX-License-Identifier: Apache-2.0
"""`flopmeter trace` against traces of real GPUs with known figures.

The folder that FLOPMETER_TRACES names holds traces and `expected.json`, which was computed by another
program from the same definitions. Times there are in microseconds with three decimals, so they compare as
integer nanoseconds.
"""

import json
import os
from pathlib import Path

import pytest
from trace_cli import run_trace, trace_json

FOLDER = Path(os.environ.get("FLOPMETER_TRACES", Path(__file__).parents[3] / "shared/data/traces"))
EXPECTED = FOLDER / "expected.json"

pytestmark = pytest.mark.skipif(not EXPECTED.is_file(), reason="no real traces: set FLOPMETER_TRACES to their folder")


def expected():
    return json.loads(EXPECTED.read_text())["traces"] if EXPECTED.is_file() else {}


def ns_of_us(us):
    return round(us * 1000)


def ns_of_seconds(seconds):
    return round(seconds * 1e9)


@pytest.fixture(scope="module")
def reports():
    return {name: trace_json(FOLDER / row["file"])["ranks"] for name, row in expected().items()}


@pytest.mark.parametrize("name", expected())
def test_events_and_kernels_are_counted(name, reports):
    row, ranks = expected()[name], reports[name]
    assert len(ranks) == max(len(row["devices_used"]), 1)
    assert ranks[0]["events"] == row["events"] and ranks[0]["skipped_events"] == 0
    assert ranks[0]["rank"] == row["rank"] and ranks[0]["world_size"] == row["world_size"]
    for key in ("kernels", "memcpys", "memsets"):
        assert sum(rank[key] for rank in ranks) == row[key], key
    if row["device_names"] and row["devices_used"]:
        assert ranks[0]["device"]["name"] == (row["device_names"][0] or None)


def assert_split(time, row):
    for ours, theirs in {
        "window_seconds": "window_us",
        "compute_seconds": "compute_us",
        "communication_seconds": "total_comm_us",
        "exposed_communication_seconds": "exposed_comm_us",
        "memcpy_seconds": "total_memcpy_us",
        "exposed_memcpy_seconds": "exposed_memcpy_us",
        "exposed_memset_seconds": "exposed_memset_us",
        "idle_seconds": "idle_us",
    }.items():
        assert ns_of_seconds(time[ours]) == ns_of_us(row[theirs]), ours


@pytest.mark.parametrize("name", expected())
def test_device_time_splits_exactly(name, reports):
    row, ranks = expected()[name], reports[name]
    for rank in ranks:
        if rank["device_index"] is None:
            assert not row["devices_used"]
            continue
        time = rank["time"]
        assert_split(time, row["span"][str(rank["device_index"])])
        parts = ("compute", "exposed_communication", "exposed_memcpy", "exposed_memset", "idle")
        assert sum(ns_of_seconds(time[part + "_seconds"]) for part in parts) == ns_of_seconds(time["window_seconds"])


@pytest.mark.parametrize("name", expected())
def test_idle_time_has_the_expected_causes(name, reports):
    row, ranks = expected()[name], reports[name]
    if len(row["devices_used"]) != 1:
        pytest.skip("the expected causes are for one device")
    host = ("data_loading", "synchronization", "allocation", "launch")
    times = {cause: ns_of_seconds(entry["seconds"]) for cause, entry in ranks[0]["idle_by_cause"].items()}
    ours = {
        "host": sum(times.get(cause, 0) for cause in host),
        "launch_in_flight": times.get("launch_in_flight", 0),
        "queued": times.get("queued", 0),
        "unknown": times.get("unknown", 0),
    }
    theirs = {cause: ns_of_us(row.get("idle_gaps", {}).get(cause, {}).get("us", 0)) for cause in ours}
    assert ours == theirs


@pytest.mark.parametrize("name", expected())
def test_steps_have_the_expected_times_and_flops(name, reports):
    row, ranks = expected()[name], reports[name]
    if len(row["devices_used"]) > 1:
        pytest.skip("the expected steps are for one device")
    steps = ranks[0]["steps"]
    assert [step["name"] for step in steps] == [step["name"] for step in row["steps"]]
    for ours, theirs in zip(steps, row["steps"]):
        assert ns_of_seconds(ours["host_seconds"]) == ns_of_us(theirs["duration_us"])
        period = theirs.get("device_period_us")
        assert (None if ours["device_seconds"] is None else ns_of_seconds(ours["device_seconds"])) == (
            None if period is None else ns_of_us(period)
        )
        assert ours["model_flops"] == theirs.get("model_flops")
        assert ours["hardware_flops"] == theirs.get("hardware_flops")
        if "mfu_percent_device_period" in theirs and ours["mfu"] is not None:
            # The catalog's peaks have more digits than those of the expected figures.
            assert 100 * ours["mfu"] == pytest.approx(theirs["mfu_percent_device_period"], rel=5e-3)


DTYPES = {"c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "double": "fp64"}


@pytest.mark.parametrize("name", expected())
def test_flops_are_exact(name, reports):
    row, ranks = expected()[name], reports[name]
    if "flops" not in row:
        assert all(rank["flops"] is None for rank in ranks)
        return
    flops = row["flops"]
    assert sum(rank["flops"]["model"] for rank in ranks) == flops["model_total"]
    assert sum(rank["flops"]["hardware"] for rank in ranks) == flops["hardware_total"]
    for ours, theirs in (("by_dtype", "hardware_by_math"), ("model_by_dtype", "model_by_math")):
        total = {}
        for rank in ranks:
            for dtype, value in rank["flops"][ours].items():
                total[dtype] = total.get(dtype, 0) + value
        assert total == {DTYPES.get(dtype, dtype): value for dtype, value in flops[theirs].items()}, ours


@pytest.mark.parametrize("name", expected())
def test_coverage_is_the_share_of_supported_operators(name, reports):
    row, ranks = expected()[name], reports[name]
    if len(row["devices_used"]) != 1:
        pytest.skip("the expected share is for one device")
    if name == "sidnb13_h100_transformer":
        pytest.skip("the catalog knows _native_multi_head_attention as a whole, with its softmax and copies")
    span = row["span"][row["devices_used"][0]]
    if len(row["streams"]) > 1:
        pytest.skip("the expected time is a sum over streams")
    # The expected time includes the copies and fills of these operators.
    under = row["linked"]["kernel_time_under_priced_ops_us"]
    ours = ranks[0]["coverage"] * span["compute_us"]
    assert under - span["total_memset_us"] - span["total_memcpy_us"] - 1 <= ours <= under + 1


@pytest.mark.parametrize("name", expected())
def test_collectives_have_their_bytes(name, reports):
    row, ranks = expected()[name], reports[name]
    size = {"Float": 4, "Long": 8}
    theirs = {}
    for one in row.get("collectives", []):
        kind = "send_recv" if "SendRecv" in one["name"] else one["name"]
        count, total = theirs.get(kind, (0, 0))
        known = one["in_nelems"] is not None and total is not None
        theirs[kind] = (
            count + one["count"],
            total + one["count"] * one["in_nelems"] * size[one["dtype"]] if known else None,
        )
    assert {one["kind"]: (one["count"], one["bytes"]) for one in ranks[0]["collectives"]} == theirs


def test_two_ranks_are_compared():
    files = [row["file"] for name, row in expected().items() if name.startswith("hta_sampled_rank")]
    report = trace_json(*[FOLDER / file for file in files])
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert report["straggler"] is None  # only send and receive, so no other rank waits


def test_every_sample_gives_text():
    for row in expected().values():
        done = run_trace(FOLDER / row["file"])
        assert done.returncode == 0 and "MFU" in done.stdout, done.stderr
