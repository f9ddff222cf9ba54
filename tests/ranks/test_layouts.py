# SPDX-License-Identifier: Apache-2.0
"""The totals over all ranks equal those of one process, for each parallel layout."""

import json
import time

import flopmeter
import pytest
from conftest import LAYOUTS, launch, output_of, ranks_of
from network import SAMPLES, TOKENS, Network, attentive, batch, mixture
from worker import REPLICATED, STEPS

pytestmark = pytest.mark.torch2("device meshes")

PEAK = 1e12


def single(model, replicated=()):
    """One process: FLOPs per step, and FLOPs of the modules that a layout replicates."""
    with flopmeter.count(modules=model) as count:
        model(batch()).sum().backward()
    inside = tuple(f"{name}." for name in replicated)
    twice = sum(sum(flops) for name, flops in count.by_module.items() if f"{name}.".startswith(inside))
    return count.model_flops, count.hardware_flops, twice


@pytest.fixture(scope="module")
def alone():
    return single(Network())


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_totals_equal_one_process(layout, ranks, request):
    runs = request.getfixturevalue("two_ranks" if ranks == 2 else "four_ranks")
    whole = {"context": attentive, "experts": mixture, "own_experts": mixture}.get(layout, Network)()
    model_flops, hardware_flops, twice = single(whole, REPLICATED.get(layout, ()))
    merged = ranks_of(runs[layout])
    totals = merged["totals"]
    assert merged["world_size"] == ranks
    assert totals["complete_steps"] == STEPS and totals["incomplete_steps"] == 0
    assert totals["model_flops"] == STEPS * model_flops
    assert (twice > 0) == (layout in REPLICATED)
    assert totals["hardware_flops"] == STEPS * (hardware_flops + twice)  # both ranks of a pair execute the replicated modules
    assert totals["samples"] == STEPS * SAMPLES
    assert totals["tokens"] == STEPS * TOKENS
    assert totals["tokens_per_second"] == pytest.approx(STEPS * TOKENS / totals["seconds"])
    assert totals["mfu"] == pytest.approx(STEPS * model_flops / (PEAK * ranks * totals["seconds"]))
    assert totals["mfu"] == output_of("diagnose", runs[layout])["mfu"]


@pytest.mark.parametrize("layout", ["tensor", "mesh"])
def test_run_json_contains_the_layout(layout, two_ranks):
    world = json.loads((two_ranks[layout] / "run.json").read_text())["world"]
    assert (world["size"], world["data_parallel"], world["tensor_parallel"]) == (2, 1, 2)


def test_communication_is_recorded_in_each_layout(two_ranks):
    for layout in LAYOUTS:
        for rank in ranks_of(two_ranks[layout])["ranks"]:
            assert rank["waited_seconds"] + rank["overlapped_seconds"] > 0, (layout, rank)


def test_the_slow_rank_inside_ddp_is_reported(two_ranks):
    merged = ranks_of(two_ranks["late"])
    first, second = merged["ranks"]
    assert first["seconds"] == pytest.approx(second["seconds"], rel=0.3)  # the step times do not show it
    assert first["waited_seconds"] > 8 * 0.1
    assert [rank["verdict"] for rank in merged["ranks"]] == ["normal", "slow"]
    assert second["lead_seconds"] > 0.02
    assert merged["missing_signals"] == []


def records(directory, rank):
    (file,) = directory.glob(f"records_*.rank{rank}.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_rank_0_measures_for_all(two_ranks, alone):
    for record in records(two_ranks["broadcast"], 0):
        assert (record["flops_source"], record["model_flops"]) == ("counted", alone[0])
    for record in records(two_ranks["broadcast"], 1):  # has half the work and does not count
        assert (record["flops_source"], record["model_flops"]) == ("broadcast", alone[0])
        assert record["calibration_age"] == record["process_step"] % 2
    names = {path.name.split("_2")[0] for path in two_ranks["broadcast"].iterdir()}
    assert names == {"records", "run.json", "perf_metrics", "perf_summary", "perf_realtime.log"}


def test_a_dead_rank_costs_the_others_one_deadline(tmp_path):
    directory = launch(tmp_path, 2, "dead")["dead"]
    report = json.loads((directory / "report.json").read_text())
    assert [note for note in report["notes"] if "a rank is late or gone" in note and "within 2000 ms" in note] == report["notes"]
    assert len(report["notes"]) == 1
    assert report["longest"] < 1.5  # no step waits for it
    assert report["finish"] < 2.5
    assert len(records(directory, 0)) == 30
    assert ranks_of(directory)["behind"] == [1]


def test_a_run_that_ends_before_the_deadline_reports_the_late_rank(tmp_path):
    begin = time.monotonic()
    directory = launch(tmp_path, 2, "ends_first")["ends_first"]
    assert time.monotonic() - begin < 100  # nothing blocks the exit of the program
    report = json.loads((directory / "report.json").read_text())
    (note,) = report["notes"]
    assert note.startswith("a rank is late or gone") and "run ended, and the deadline of 200000 ms" in note
    assert report["finish"] < 10  # far less than the deadline
    assert len(records(directory, 0)) == 5


def test_the_monitor_adds_no_collectives(two_ranks):
    for rank in (0, 1):
        without, with_monitor = json.loads((two_ranks["counted"] / f"collectives.{rank}.json").read_text())
        assert without["calls"]["allreduce"] >= STEPS  # the counter works
        assert with_monitor == without


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_files_of_rank_0_have_the_total_or_null(layout, two_ranks):
    (row,) = json.loads(next(two_ranks[layout].glob("perf_summary_*.json")).read_text())["iteration_logs"]
    seconds = row["step_time_ms"] / 1000
    assert row["tokens_per_sec"] * seconds == pytest.approx(TOKENS)
    if layout in REPLICATED or layout in ("pipeline", "own_experts"):  # the other rank does different work
        assert row["TFLOPS_total"] is None
    else:
        whole = single((attentive if layout == "context" else Network)())[0]
        assert row["TFLOPS_total"] * 1e12 * seconds == pytest.approx(whole, rel=1e-6)
