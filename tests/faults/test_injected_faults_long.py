# SPDX-License-Identifier: Apache-2.0
"""Runs with random faults, alone and in pairs, compared with the same run without the fault.

That run is the result of the finding's recommendation, so it gives the expected size and MFU. The slow dtype is fp32 if
the machine computes bf16 much faster, else fp64.
"""

import dataclasses
import json
import os
import shutil

import pytest
from test_injected_faults import SMALL, check_sums, unexplained

injected = pytest.importorskip("injected")
pytestmark = [pytest.mark.long, pytest.mark.torch2("fused AdamW"), pytest.mark.usefixtures("peak", "awake")]

RULES = {
    "sleep": "data_loading",
    "cpu": "cpu_bound",
    "padding": "padding",
    "recompute": "recompute_not_needed",
    "per_head": "poor_implementation",
    "save": "checkpoint",
    "slow_format": "no_mixed_precision",
    "slow_rank": "straggler",
    "link_mbit": "communication",
}
ALONE = ["sleep", "cpu", "padding", "recompute", "per_head", "save", "slow_format"]
TINY = {"width": 64, "heads": 4, "length": 32}  # a model that one sequence does not fill
TUNED_WITHIN = 0.15


def within(kind):
    return 0.1 if kind == "sleep" else 0.2  # a checkpoint also leaves the caches cold


def draw_fault(draw, kind, bf16):
    """Settings of the plan that inject a fault of this kind."""
    if kind in ("sleep", "cpu"):
        return {kind: draw.uniform(0.03, 0.12)}
    if kind == "padding":
        return {kind: draw.uniform(0.3, 0.7)}
    if kind == "save":
        return {"save_every": draw.randint(1, 3), "save_sleep": draw.uniform(0.05, 0.15)}
    if kind == "slow_format":
        return {"autocast": False} if bf16 else {"fp64": True}
    return {kind: True}


def note(**row):
    """Appends one line per run to the file INJECTED_NOTES, if set."""
    if path := os.environ.get("INJECTED_NOTES"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def size_of(kind, found, after, plan, save_seconds):
    """Part of the time that the same samples take less without the fault."""
    before, now = (diagnosis["seconds"] / diagnosis["steps"] for diagnosis in (found, after))
    if kind == "save":  # outside the steps
        before += save_seconds
    if kind == "padding":  # a packed batch contains more samples
        now *= injected.real_tokens(plan) / plan.length
    return 1 - now / before


def judge(found, tuned, plan, save_seconds=0.0):
    """Only the injected causes are reported, with the correct share of the time and what-if MFU.

    `tuned` maps each injected kind to the diagnosis of the run without it; checkpoints take `save_seconds` per step.
    """
    sizes = {RULES[kind]: size_of(kind, found, after, plan, save_seconds) for kind, after in tuned.items()}
    reported = {finding["rule"]: finding for finding in found["findings"]}
    note(
        injected=sizes,
        reported={rule: (finding["share"], finding["mfu_then"]) for rule, finding in reported.items()},
        mfu=found["mfu"],
        unexplained=[unexplained(diagnosis) for diagnosis in (found, *tuned.values())],
    )
    for diagnosis in (found, *tuned.values()):
        check_sums(diagnosis)
        assert unexplained(diagnosis) <= 0.1, (plan, diagnosis["budget"])
    assert {rule for rule, finding in reported.items() if (finding["share"] or 0) >= SMALL} <= set(sizes), (plan, found)
    for kind, after in tuned.items():
        rule = RULES[kind]
        size = pytest.approx(sizes[rule], rel=within(kind), abs=0.01)
        if sizes[rule] < SMALL:
            assert rule not in reported or reported[rule]["share"] == size
            continue
        assert rule in reported, (plan, found)
        assert reported[rule]["share"] == size, (plan, sizes, found)
        assert reported[rule]["mfu_then"] == pytest.approx(after["mfu"], rel=TUNED_WITHIN), (plan, found)
    larger, *rest = sorted(sizes, key=sizes.get, reverse=True)
    if all(sizes[larger] > 1.2 * sizes[other] + 0.01 for other in rest):
        assert found["findings"][0]["rule"] == larger, (plan, sizes, found)


@pytest.mark.parametrize("number", range(28))
def test_faults_are_found_and_sized_against_runs_without_them(
    tmp_path, monkeypatch, diagnose, draw, peak_with_bf16, number
):
    kinds = [ALONE[number // 2 % len(ALONE)]] if number % 2 == 0 else draw.sample(ALONE, 2)
    cache, bf16 = peak_with_bf16
    bf16 = bf16 and "slow_format" in kinds
    if bf16:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    heads = draw.choice([12, 16] if "per_head" in kinds else [6, 12])
    healthy = injected.Plan(seed=draw.randrange(1000), layers=draw.randint(2, 3), heads=heads, autocast=bf16)
    faults = {kind: draw_fault(draw, kind, bf16) for kind in kinds}

    def training(name, present):
        settings = {key: value for kind in present for key, value in faults[kind].items()}
        if "padding" in kinds and "padding" not in present:
            # A packed batch contains more samples; each is loaded, and checkpoints follow the same number of samples.
            for key in settings.keys() & {"sleep", "cpu", "save_sleep"}:
                settings[key] /= 1 - faults["padding"]["padding"]
        return injected.Training(tmp_path / name, dataclasses.replace(healthy, **settings))

    injected_training = training("injected", kinds)
    tuned = {kind: training(f"without_{kind}", [other for other in kinds if other != kind]) for kind in kinds}
    injected.take_turns(injected_training, list(tuned.values()), min(map(within, kinds)))
    after = {kind: diagnose(each.directory) for kind, each in tuned.items()}
    if len(kinds) == 1:
        assert after[kinds[0]]["findings"] == [], healthy
    save_seconds = injected_training.outcome.save_seconds / injected_training.step
    judge(diagnose(injected_training.directory), after, injected_training.plan, save_seconds)


@pytest.mark.parametrize("number", range(4))
def test_one_short_sequence_in_a_tiny_model_is_distinguished_from_a_full_batch(tmp_path, diagnose, draw, number):
    plan = injected.Plan(**TINY, batch=1, seed=draw.randrange(1000), layers=draw.randint(2, 4))
    training = injected.Training(tmp_path / "injected", plan)
    tuned = injected.Training(tmp_path / "tuned", dataclasses.replace(plan, batch=8))  # as recommended
    injected.take_turns(training, [tuned], TUNED_WITHIN, steps=80)
    found, after = diagnose(tmp_path / "injected"), diagnose(tmp_path / "tuned")
    first = found["findings"][0]
    note(
        injected={"batch of 1": after["mfu"] - found["mfu"]},
        reported={first["rule"]: (first["share"], first["mfu_then"])},
        mfu=found["mfu"],
        unexplained=[unexplained(found), unexplained(after)],
    )
    check_sums(found)
    assert max(unexplained(found), unexplained(after)) <= 0.1
    assert first["rule"] in ("launch_overhead", "batch_too_small"), found
    assert "from 1 to 8" in first["recommendation"]
    assert first["mfu_then"] == pytest.approx(after["mfu"], rel=TUNED_WITHIN)


@pytest.mark.skipif(not all(map(shutil.which, ("unshare", "ip", "tc"))), reason="needs unshare, ip and tc")
@pytest.mark.parametrize("number", range(4))
def test_faults_between_ranks_are_found_and_sized_against_a_healthy_run(tmp_path, diagnose, draw, number):
    injected_ranks = pytest.importorskip("injected_ranks")
    kind = "slow_rank" if number % 2 == 0 else "link_mbit"
    size = draw.uniform(0.06, 0.12) if kind == "slow_rank" else draw.randint(60, 150)
    healthy = injected_ranks.RanksPlan(seed=draw.randrange(1000))
    plan = dataclasses.replace(healthy, **{kind: size})
    injected_ranks.run([tmp_path / "twin", tmp_path / "injected"], [healthy, plan])
    healthy_found = diagnose(tmp_path / "twin")
    assert healthy_found["findings"] == []
    judge(diagnose(tmp_path / "injected"), {kind: healthy_found}, plan)
