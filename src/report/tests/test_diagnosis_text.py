# SPDX-License-Identifier: Apache-2.0
"""The text of `flopmeter diagnose`, `compare` and `ranks` fits the width there is."""
import json

import pytest

import synthetic_runs


@pytest.fixture(scope="module")
def starved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("starved")
    synthetic_runs.describe(directory)
    synthetic_runs.write_stream(synthetic_runs.stream(directory), (synthetic_runs.starved(step) for step in range(400)))
    return directory


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_findings_wrap_between_words(flopmeter, starved, columns):
    finding = json.loads(flopmeter("diagnose", starved, "--json").stdout)["findings"][0]
    shown = flopmeter("diagnose", starved, "--price-per-device-hour", 2, env={"COLUMNS": str(columns)}).stdout
    assert max(map(len, shown.split("\n"))) <= columns
    together = " ".join(shown.split())
    for part in ("summary", "evidence", "recommendation"):
        assert finding[part] in together


def test_without_a_width_a_recommendation_is_one_line(flopmeter, starved):
    finding = json.loads(flopmeter("diagnose", starved, "--json").stdout)["findings"][0]
    assert len(finding["recommendation"]) > 100
    assert f"    Try: {finding['recommendation']}\n" in flopmeter("diagnose", starved, env={}).stdout


def test_without_a_peak_the_reason_is_stated_and_nothing_is_computed_from_it(flopmeter, tmp_path):
    synthetic_runs.describe(tmp_path, device={"name": "TPU v5e", "peak_flops_per_second": {"int8": 3.94e14}})
    steps = (dict(synthetic_runs.starved(step), mfu=None, hfu=None) for step in range(400))
    synthetic_runs.write_stream(synthetic_runs.stream(tmp_path), steps)
    reason = "the bf16 peak of TPU v5e is not known"
    shown = flopmeter("diagnose", tmp_path, "--price-per-device-hour", 2, env={}).stdout
    assert shown.startswith("Verdict: MFU is not known: " + reason) and "faster)" in shown and ", )" not in shown
    cost = json.loads(flopmeter("diagnose", tmp_path, "--price-per-device-hour", 2, "--json").stdout)["cost"]
    assert cost["lost_per_hour"] is None and cost["saved_per_hour_by_first_recommendation"] > 0
    assert reason in json.loads(flopmeter("report", tmp_path, "--json").stdout)["headline"]["no_mfu_reason"]


def test_a_budget_row_has_the_number_of_its_finding(flopmeter, tmp_path):
    # The fix of padding saves more time of other causes than of the cause padding.
    synthetic_runs.describe(tmp_path)
    steps = (dict(synthetic_runs.noisy(step), mfu=0.05, padded_tokens=32768, run_queue_seconds=0.35) for step in range(50))
    synthetic_runs.write_stream(synthetic_runs.stream(tmp_path), steps)
    _, *budget = flopmeter("diagnose", tmp_path, env={}).stdout.partition("where the time went")[2].splitlines()
    number = next(line.split()[0] for line in budget if line.strip().startswith("[") and " padding " in line)
    assert number in next(line for line in budget if "work on padding" in line)


def test_all_commands_write_one_budget(flopmeter, starved):
    budget = json.loads(flopmeter("diagnose", starved, "--json").stdout)["budget"]
    assert all(set(line) == {"cause", "seconds", "share"} for line in budget)
    assert json.loads(flopmeter("report", starved, "--json").stdout)["budget"] == budget
    before = json.loads(flopmeter("compare", starved, starved, "--json").stdout)["before"]
    per_step = [line["seconds_per_step"] * before["steps"] for line in before["budget"]]
    assert per_step == pytest.approx([line["seconds"] for line in budget])


def test_comparison_lines_up(flopmeter, starved):
    lines = flopmeter("compare", starved, starved, env={"COLUMNS": "80"}).stdout.split("\n")[3:-1]
    assert len(lines) > 3 and len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("columns", [60, 80])
def test_verdicts_on_ranks_wrap_between_words(flopmeter, tmp_path, columns):
    synthetic_runs.describe(tmp_path, ranks=6)
    for rank in range(5):  # rank 5 is missing
        speed = {"mfu": 0.23, "seconds": 0.9} if rank == 3 else {"mfu": 0.41, "seconds": 0.5}
        records = (synthetic_runs.record(step, rank, world_size=6, **speed) for step in range(60))
        synthetic_runs.write_stream(synthetic_runs.stream(tmp_path, rank), records)
    whole = flopmeter("ranks", tmp_path, env={}).stdout
    verdict = next(line for line in whole.splitlines() if "slow:" in line).partition("slow:")[2]
    shown = flopmeter("ranks", tmp_path, env={"COLUMNS": str(columns)}).stdout
    assert max(map(len, whole.splitlines())) > 80 >= columns >= max(map(len, shown.splitlines()))
    assert verdict in " ".join(shown.split()) and "missing: no records" in " ".join(shown.split())
