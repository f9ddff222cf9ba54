# SPDX-License-Identifier: Apache-2.0
"""The same run gives the same figures in every format that torch has written."""

import gzip
import json
import subprocess

import pytest
from eras import DEVICE_WORK, ERAS, FIGURES, MATMUL_FLOPS, write
from trace_cli import PROGRAM, run_trace, trace_json


def microseconds(seconds):
    return round(seconds * 1e6, 3)


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_every_era_gives_the_same_figures(era, tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(write(era).encode()))
    report = trace_json(path)
    rank = report["ranks"][0]
    for key in ("kernels", "memcpys", "memsets"):
        assert rank[key] == FIGURES[key], key
    time = rank["time"]
    for key in ("window", "compute", "communication", "exposed_communication", "exposed_memcpy", "exposed_memset"):
        assert microseconds(time[key + "_seconds"]) == FIGURES[key], key
    assert rank["flops"]["model"] == rank["flops"]["hardware"] == FIGURES["model"]
    assert [step["name"] for step in rank["steps"]] == ["ProfilerStep#5", "ProfilerStep#6"]
    assert [step["model_flops"] for step in rank["steps"]] == [2 * MATMUL_FLOPS] * 2
    assert [microseconds(step["device_seconds"]) for step in rank["steps"]] == [830, 1000]
    assert rank["collectives"] == [dict(rank["collectives"][0], kind="allreduce", count=2, bytes=None)]
    assert rank["skipped_events"] == 0
    known = not era.array and era.types and era.name != "xpu"  # the catalog has no fp32 peak for that device
    assert (report["mfu"] is not None) == known, rank["notes"]
    shares = {line["cause"]: line["share"] for line in report["budget"]}
    assert sum(shares.values()) == pytest.approx(1)
    assert all(share >= 0 for share in shares.values())
    assert shares.get("useful") == (pytest.approx(report["mfu"], abs=1e-6) if known else None)
    assert shares["communication"] == pytest.approx(2 * 100 / 1830)
    assert "host_to_device" in [finding["rule"] for finding in report["findings"]]


def test_several_files_are_ranks_of_one_run(tmp_path):
    for rank in range(3):
        (tmp_path / f"run_rank{rank}.pt.trace.json").write_text(write(ERAS[-4]))
    report = trace_json(tmp_path)
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1, 2]
    assert report["straggler"] is None  # none waits


def test_a_late_rank_costs_the_others_time(tmp_path):
    for rank, late in ((0, 0), (1, 80)):  # microseconds; both end together
        work = list(DEVICE_WORK)
        work[3] = (work[3][0], 600 + late, 200 - late, 590, 20, "kernel")
        (tmp_path / f"rank{rank}.json").write_text(write(ERAS[6], work))
    report = trace_json(tmp_path)
    assert report["straggler"] == {"rank": 1, "wait_seconds": pytest.approx(2 * 80e-6)}
    assert [rank["collective_wait_seconds"] for rank in report["ranks"]] == [pytest.approx(2 * 80e-6), 0]
    # 100 us of each call are exposed on both ranks; the early rank waits for 80 us of them on average.
    shares = {line["cause"]: line["seconds"] for line in report["budget"]}
    assert shares["straggler"] == pytest.approx(2 * 80e-6 / 2)
    assert shares["communication"] == pytest.approx(2 * 100e-6 - shares["straggler"])
    finding = next(finding for finding in report["findings"] if finding["rule"] == "straggler")
    assert finding["rank"] == 1 and "last at 2 of 2 collectives" in finding["evidence"]


def test_a_named_device_needs_no_bf16_peak(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(write(ERAS[7]))  # it does not name its device
    assert trace_json(path, "--device", "V100 SXM2 32GB")["mfu"] is not None


def test_a_peak_of_another_dtype_than_the_matmuls_is_stated(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(write(ERAS[6]))
    report = trace_json(path, "--peak", "312")  # of bf16; the matmuls are fp32
    assert report["mfu"] is None and "no MFU: no fp32 peak is known for the device" in report["ranks"][0]["notes"]


def test_two_traces_can_be_compared(tmp_path):
    for name, era in (("before", ERAS[1]), ("after", ERAS[6])):
        (tmp_path / name).write_text(write(era))
    done = subprocess.run(
        [str(PROGRAM), "compare", str(tmp_path / "before"), str(tmp_path / "after"), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    changes = json.loads(done.stdout)["changes"]
    assert all(abs(change["seconds_per_step_change"]) < 1e-12 for change in changes)


def test_the_budget_sums_to_100_percent_as_printed(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(write(ERAS[6]))
    table = run_trace(path).stdout.partition("time budget\n")[2].partition("\n\n")[0].splitlines()
    *shares, whole = [float(line.split()[-2]) for line in table]
    assert whole == 100.0 and sum(shares) == pytest.approx(100, abs=0.01), table


def test_the_budget_of_ranks_is_empty_if_one_is_above_its_peak(tmp_path):
    for rank, longer in ((0, 0), (1, 160)):  # microseconds of the last work: the step of rank 1 takes longer
        work = list(DEVICE_WORK)
        work[4] = (*work[4][:2], work[4][2] + longer, *work[4][3:])
        (tmp_path / f"rank{rank}.json").write_text(write(ERAS[6], work))
    report = trace_json(tmp_path, "--peak", "0.0001377", "--dtype", "fp32")
    low, high = sorted(rank["mfu"] for rank in report["ranks"])
    assert low < 1 < high and report["budget"] == []
    assert "mfu_above_100" in [finding["rule"] for finding in report["findings"]]
