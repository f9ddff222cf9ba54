# SPDX-License-Identifier: Apache-2.0
"""Runs with faults drawn at random, alone and in pairs, each beside a twin without them.

The twin is the run after the remedy: what a finding expects is held against it.  bf16 is slower than fp32 on processors
without instructions for it, so the fault of a slow number format is planted with fp64; a run in fp32 on a device that is
faster in bf16 is shown by the rule's own windows alone.
"""

import dataclasses
import json
import os
import shutil

import pytest
from test_planted_faults import SMALL, check_sums, loss_of

planted = pytest.importorskip("planted")
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("peak")]

RULES = {
    "sleep": "data_loading",
    "cpu": "cpu_bound",
    "padding": "padding",
    "recompute": "recompute_not_needed",
    "per_head": "poor_implementation",
    "save_every": "checkpoint",
    "fp64": "no_mixed_precision",
    "slow_rank": "straggler",
    "link_mbit": "communication",
}
ALONE = ["sleep", "cpu", "padding", "recompute", "per_head", "save_every", "fp64"]
TINY = {"width": 64, "heads": 4, "length": 32}  # a model that one sequence does not fill
REPAIRED_WITHIN = 0.15


def within(kind):
    return 0.1 if kind in ("sleep", "save_every") else 0.2


def draw_fault(draw, kind):
    """The plan's settings that plant a fault of this kind."""
    if kind in ("sleep", "cpu"):
        return {kind: draw.uniform(0.03, 0.12)}
    if kind == "padding":
        return {kind: draw.uniform(0.3, 0.7)}
    if kind == "save_every":
        return {kind: draw.randint(1, 3), "save_sleep": draw.uniform(0.05, 0.15)}
    return {kind: True}


def note(**row):
    """One line for each run, where PLANTED_NOTES names a file."""
    if path := os.environ.get("PLANTED_NOTES"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def judge(healthy, found, kinds, plan):
    """The planted causes and no others, the first of them sized and its remedy's effect foreseen."""
    gap = found["seconds"] - found["ideal_seconds"]
    loss = healthy["mfu"] - found["mfu"]
    first = found["findings"][0] if found["findings"] else {"rule": None, "mfu_points": 0, "expected_mfu": 0}
    note(
        kinds=kinds,
        first=first["rule"],
        planted=loss,
        told=first["mfu_points"],
        expected=first["expected_mfu"],
        repaired=healthy["mfu"],
        unexplained=loss_of(found, "unexplained")["seconds"] / gap,
        others=[[f["rule"], f["mfu_points"]] for f in found["findings"][1:]],
        healthy=[[f["rule"], f["mfu_points"]] for f in healthy["findings"]],
    )
    check_sums(healthy)
    check_sums(found)
    assert healthy["findings"] == [], plan
    expected = {RULES[kind] for kind in kinds}
    named = {finding["rule"] for finding in found["findings"] if finding["mfu_points"] >= SMALL}
    assert first["rule"] in expected, (plan, found["waterfall"])
    assert named <= expected, (plan, found["findings"])
    if len(kinds) == 1:
        assert first["mfu_points"] == pytest.approx(loss, rel=within(kinds[0]), abs=0.01), (plan, healthy["mfu"], found)
        assert first["expected_mfu"] == pytest.approx(healthy["mfu"], rel=REPAIRED_WITHIN), (plan, found)


@pytest.mark.parametrize("number", range(26))
def test_faults_are_found_and_sized_beside_a_twin(tmp_path, diagnose, draw, number):
    kinds = [ALONE[number // 2 % len(ALONE)]] if number % 2 == 0 else draw.sample(ALONE, 2)
    healthy = planted.Plan(seed=draw.randrange(1000), layers=draw.randint(2, 3), heads=draw.choice([6, 12]))
    plan = healthy
    for kind in kinds:
        plan = dataclasses.replace(plan, **draw_fault(draw, kind))
    twin, training = planted.Training(tmp_path / "twin", healthy), planted.Training(tmp_path / "planted", plan)
    planted.take_turns(twin, training, min(within(kind) for kind in kinds))
    judge(diagnose(tmp_path / "twin"), diagnose(tmp_path / "planted"), kinds, plan)


@pytest.mark.parametrize("number", range(4))
def test_one_short_sequence_in_a_tiny_model_is_told_from_a_full_batch(tmp_path, diagnose, draw, number):
    plan = planted.Plan(**TINY, batch=1, seed=draw.randrange(1000), layers=draw.randint(2, 4))
    training = planted.Training(tmp_path / "planted", plan)
    repaired = planted.Training(tmp_path / "repaired", dataclasses.replace(plan, batch=8))  # as the remedy says
    planted.take_turns(training, repaired, REPAIRED_WITHIN, steps=80)
    found, after = diagnose(tmp_path / "planted"), diagnose(tmp_path / "repaired")
    first = found["findings"][0]
    gap = found["seconds"] - found["ideal_seconds"]
    note(
        kinds=["batch of 1"],
        first=first["rule"],
        planted=after["mfu"] - found["mfu"],
        told=first["mfu_points"],
        expected=first["expected_mfu"],
        repaired=after["mfu"],
        unexplained=loss_of(found, "unexplained")["seconds"] / gap,
    )
    check_sums(found)
    assert first["rule"] in ("launch_overhead", "batch_too_small"), found
    assert "from 1 to 8" in first["remedy"]
    assert first["expected_mfu"] == pytest.approx(after["mfu"], rel=REPAIRED_WITHIN)


@pytest.mark.skipif(not all(map(shutil.which, ("unshare", "ip", "tc"))), reason="needs unshare, ip and tc")
@pytest.mark.parametrize("number", range(4))
def test_faults_between_ranks_are_found_and_sized_beside_a_twin(tmp_path, diagnose, draw, number):
    planted_ranks = pytest.importorskip("planted_ranks")
    kind = "slow_rank" if number % 2 == 0 else "link_mbit"
    size = draw.uniform(0.06, 0.12) if kind == "slow_rank" else draw.randint(150, 400)
    healthy = planted_ranks.RanksPlan(seed=draw.randrange(1000))
    plan = dataclasses.replace(healthy, **{kind: size})
    planted_ranks.run([tmp_path / "twin", tmp_path / "planted"], [healthy, plan])
    judge(diagnose(tmp_path / "twin"), diagnose(tmp_path / "planted"), [kind], plan)
