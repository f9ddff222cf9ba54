# SPDX-License-Identifier: Apache-2.0
"""Faults injected into a real training are found, named, and sized. Kind, size, and seed are random."""

import json
import os

import pytest

injected = pytest.importorskip("injected")

pytestmark = pytest.mark.torch2("fused AdamW")
LONG = pytest.mark.long
SMALL = 0.05  # share of the time that a finding other than the injected one may have


def line_of(diagnosis, cause):
    return next((line for line in diagnosis["budget"] if line["cause"] == cause), {"seconds": 0.0, "share": 0.0})


def check_sums(diagnosis):
    """The budget sums to the time of the steps, and its useful share is MFU."""
    assert sum(line["share"] for line in diagnosis["budget"]) == pytest.approx(1, abs=1e-9)
    assert sum(line["seconds"] for line in diagnosis["budget"]) == pytest.approx(diagnosis["seconds"], abs=1e-6)
    assert all(line["seconds"] > 0 for line in diagnosis["budget"]), diagnosis["budget"]
    assert line_of(diagnosis, "useful")["share"] == pytest.approx(diagnosis["mfu"], abs=1e-7)


def unexplained(diagnosis):
    """Part of the time, which includes what other programs did to the machine between two profiles."""
    return line_of(diagnosis, "unexplained")["share"]


def check_finding(diagnosis, rule):
    findings = diagnosis["findings"]
    assert findings, f"no finding although {rule} was injected: {diagnosis['budget']}"
    assert findings[0]["rule"] == rule, findings
    assert all((finding["share"] or 0) < SMALL for finding in findings[1:]), findings
    return findings[0]


def run(tmp_path, diagnose, plan, steps=25):
    outcome = injected.train(tmp_path, plan, steps)
    diagnosis = diagnose(tmp_path)
    check_sums(diagnosis)
    return outcome, diagnosis


@pytest.fixture(scope="module")
def twin(peak, tmp_path_factory):
    """A healthy run and its step time, which determines the sizes of the faults."""
    directory = tmp_path_factory.mktemp("twin")
    return directory, injected.train(directory, injected.Plan(), 25).step_seconds


@LONG
def test_a_healthy_run_has_no_finding(diagnose, twin):
    diagnosis = diagnose(twin[0])
    check_sums(diagnosis)
    assert diagnosis["findings"] == []


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=LONG)])
@pytest.mark.parametrize(("fault", "rule"), [("sleep", "data_loading"), pytest.param("cpu", "cpu_bound", marks=LONG)])
def test_data_wait_is_attributed_to_its_reason_and_sized(tmp_path, diagnose, ask, draw, twin, fault, rule, workers):
    size = draw.uniform(0.5, 1.5) * max(twin[1], 0.04)
    if fault == "cpu":  # more would compete with the training for the processors
        workers = min(workers, len(os.sched_getaffinity(0)) - 1)
    if workers:
        size = workers * (size + twin[1])  # workers load while the model computes, one batch each
    plan = injected.Plan(seed=draw.randrange(1000), workers=workers, **{fault: size})
    outcome, diagnosis = run(tmp_path, diagnose, plan)
    check_finding(diagnosis, rule)
    assert line_of(diagnosis, rule)["seconds"] == pytest.approx(outcome.data_seconds, rel=0.1)
    comparison = ask("compare", tmp_path, twin[0])
    changes = comparison["changes"]
    assert next(change for change in changes if change["cause"] == rule)["seconds_per_step_change"] < 0
    assert sum(change["seconds_per_step_change"] for change in changes) == pytest.approx(
        comparison["after"]["step_seconds"] - comparison["before"]["step_seconds"], abs=1e-7
    )


def test_padding_is_found_and_sized(tmp_path, diagnose, peak, draw):
    plan = injected.Plan(seed=draw.randrange(1000), padding=draw.uniform(0.3, 0.7))
    _, diagnosis = run(tmp_path, diagnose, plan)
    finding = check_finding(diagnosis, "padding")
    # Packed, the same samples need fewer steps: everything except loading shrinks to the share of real tokens.
    real = injected.real_tokens(plan) / plan.length
    assert finding["speedup"] == pytest.approx(1 / real, rel=0.05)


@LONG
def test_frequent_checkpoints_are_found_and_sized(tmp_path, diagnose, draw, twin):
    plan = injected.Plan(seed=draw.randrange(1000), save_every=draw.randint(2, 4), save_sleep=twin[1])
    outcome, diagnosis = run(tmp_path, diagnose, plan)
    finding = check_finding(diagnosis, "checkpoint")
    assert finding["seconds"] == pytest.approx(outcome.save_seconds, rel=0.1)


@pytest.mark.parametrize("recompute", [False, True])
def test_recomputation_code_is_distinguished_from_the_model(tmp_path, peak, recompute):
    injected.train(tmp_path, injected.Plan(recompute=recompute), 12)
    (profile, *_) = [json.loads(line) for file in tmp_path.glob("op_profile_*") for line in file.read_text().splitlines()]
    phases = {span["phase"] for span in profile["idle"] if span.get("recompute")}
    assert phases == ({"forward", "backward"} if recompute else set())
