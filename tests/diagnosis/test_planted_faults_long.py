# SPDX-License-Identifier: Apache-2.0
"""Thirty runs with faults drawn at random, alone and in pairs, each beside a twin without them."""

import dataclasses

import pytest
from test_planted_faults import SMALL, check_sums, loss_of

planted = pytest.importorskip("planted")
pytestmark = pytest.mark.long

RULES = {
    "sleep": "data_loading",
    "cpu": "cpu_bound",
    "padding": "padding",
    "recompute": "recompute_not_needed",
    "per_head": "poor_implementation",
    "save_every": "checkpoint",
}
TINY = {"width": 64, "heads": 4, "length": 32}  # a model that one sequence does not fill


def draw_fault(draw, kind, step_seconds):
    """The plan's settings that plant a fault of this kind."""
    if kind in ("sleep", "cpu"):
        return {kind: draw.uniform(0.4, 1.5) * max(step_seconds, 0.03)}
    if kind == "padding":
        return {kind: draw.uniform(0.3, 0.7)}
    if kind == "save_every":
        return {kind: draw.randint(1, 4), "save_sleep": draw.uniform(0.5, 2) * step_seconds}
    return {kind: True}


@pytest.mark.parametrize("number", range(26))
def test_faults_are_found_and_sized_beside_a_twin(tmp_path, diagnose, peak, draw, number):
    kinds = draw.sample(sorted(RULES), 1 if number % 2 == 0 else 2)
    sizes = {"seed": draw.randrange(1000), "steps": 40, "layers": draw.randint(2, 4)}
    twin = planted.Plan(**sizes)
    healthy_steps = planted.train(tmp_path / "twin", twin, peak).step_seconds
    plan = twin
    for kind in kinds:
        plan = dataclasses.replace(plan, **draw_fault(draw, kind, healthy_steps))
    planted.train(tmp_path / "planted", plan, peak)
    healthy, found = diagnose(tmp_path / "twin"), diagnose(tmp_path / "planted")
    check_sums(found)
    assert healthy["findings"] == [], plan
    expected = {RULES[kind] for kind in kinds}
    named = [finding["rule"] for finding in found["findings"] if finding["mfu_points"] >= SMALL]
    assert set(named) <= expected, (plan, found["findings"])
    assert found["findings"] and found["findings"][0]["rule"] in expected, (plan, found["waterfall"])
    if len(kinds) == 1:
        within = 0.1 if kinds[0] in ("sleep", "save_every") else 0.2
        planted_loss = healthy["mfu"] - found["mfu"]
        points = found["findings"][0]["mfu_points"]
        assert points == pytest.approx(planted_loss, rel=within, abs=0.01), (plan, healthy["mfu"], found)


@pytest.mark.parametrize("number", range(4))
def test_one_short_sequence_in_a_tiny_model_is_told_from_a_full_batch(tmp_path, diagnose, peak, draw, number):
    plan = planted.Plan(**TINY, batch=1, steps=200, seed=draw.randrange(1000), layers=draw.randint(2, 4))
    planted.train(tmp_path / "planted", plan, peak)
    found = diagnose(tmp_path / "planted")
    check_sums(found)
    assert found["findings"][0]["rule"] in ("launch_overhead", "batch_too_small"), found
    planted.train(tmp_path / "repaired", dataclasses.replace(plan, batch=64, steps=40), peak)
    assert diagnose(tmp_path / "repaired")["mfu"] > 1.5 * found["mfu"]


def test_each_loss_of_a_pair_is_in_the_waterfall(tmp_path, diagnose, peak, draw):
    plan = planted.Plan(seed=draw.randrange(1000), sleep=0.05, padding=0.5)
    outcome = planted.train(tmp_path, plan, peak)
    found = diagnose(tmp_path)
    assert loss_of(found, "data_loading")["seconds"] == pytest.approx(outcome.data_seconds, rel=0.1)
    assert loss_of(found, "padding")["seconds"] > 0
