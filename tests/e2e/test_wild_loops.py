# SPDX-License-Identifier: Apache-2.0
"""Uncommon training loops under ``flopmeter run``: steps, samples, and FLOPs are correct."""

import json

import pytest

pytestmark = pytest.mark.torch2("hooks for optimizers")
MATMUL = 2 * 8 * 16 * 16  # forward of a batch; the same for the weight gradient and, if needed, the input gradient


def run(folder, name):
    _, errors, code = folder.python("wild_loops.py", name)
    assert code == 0, errors
    rows = [json.loads(line) for file in sorted(folder.logs.glob("records_*")) for line in file.read_text().splitlines()]
    assert {row["tag"] for row in rows} <= {"train", "profile", "checkpoint"}
    rows = [row for row in rows if row["tag"] != "checkpoint"]  # torch.save() between steps
    return rows, errors


@pytest.mark.parametrize(
    ("name", "steps", "samples", "flops"),
    [
        # critic: three forwards, weight gradients, and one input gradient for the generator; generator: two forwards, one gradient
        ("two_networks", 12, 16, {(3 + 2 + 1 + 1 + 2 + 1) * MATMUL}),
        ("teacher", 12, 8, {3 * MATMUL, 2 * MATMUL}),  # monitoring starts after the first forward pass of the teacher
        ("evaluation_mode", 11, 8, {2 * MATMUL}),  # detected as training after the first step
        ("copies", 12, 8, {2 * MATMUL, 3 * MATMUL}),  # the forward of the copy belongs to the next step
    ],
)
def test_steps_samples_and_flops_match_the_loop(folder, name, steps, samples, flops):
    rows, _ = run(folder, name)
    assert len(rows) == steps
    assert {row["samples"] for row in rows} == {samples}
    assert {row["hardware_flops"] for row in rows} == flops
    assert all({"forward", "backward"} <= set(row["phases"]) for row in rows)


def test_a_loop_without_an_optimizer_is_detected_by_its_backward_passes(folder):
    rows, _ = run(folder, "no_optimizer")
    assert 30 <= len(rows) <= 40
    assert {(row["samples"], row["hardware_flops"]) for row in rows} == {(8, 2 * MATMUL)}


def test_all_models_of_a_process_are_detected(folder):
    rows, _ = run(folder, "folds")
    assert 12 + 2 * 10 <= len(rows) <= 36
    assert {(row["samples"], row["hardware_flops"]) for row in rows} == {(8, 2 * MATMUL)}
