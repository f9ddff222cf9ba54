# SPDX-License-Identifier: Apache-2.0
"""Loops as people write them, under ``flopmeter run``: steps, samples and FLOPs are what the loop did."""

import json

import pytest

pytestmark = pytest.mark.torch2("hooks for optimizers")
PRODUCT = 2 * 8 * 16 * 16  # forward of a batch; as much for the weight's gradient, and for the input's where that needs one


def run(folder, name):
    _, errors, code = folder.python("wild_loops.py", name)
    assert code == 0, errors
    rows = [json.loads(line) for file in sorted(folder.logs.glob("records_*")) for line in file.read_text().splitlines()]
    assert {row["tag"] for row in rows} <= {"train", "profile"}
    return rows, errors


@pytest.mark.parametrize(
    ("name", "steps", "samples", "flops"),
    [
        # critic: three forwards, with gradients of its weight and, for the generator, of its input; generator: two and one
        ("two_networks", 12, 16, {(3 + 2 + 1 + 1 + 2 + 1) * PRODUCT}),
        ("teacher", 12, 8, {3 * PRODUCT, 2 * PRODUCT}),  # before the first step nobody watched
        ("evaluation_mode", 11, 8, {2 * PRODUCT}),  # only the first step tells that this trains
        ("copies", 12, 8, {2 * PRODUCT, 3 * PRODUCT}),  # the copy's forward is work, of the step after it
    ],
)
def test_steps_samples_and_flops_are_those_of_the_loop(folder, name, steps, samples, flops):
    rows, _ = run(folder, name)
    assert len(rows) == steps
    assert {row["samples"] for row in rows} == {samples}
    assert {row["hardware_flops"] for row in rows} == flops
    assert all({"forward", "backward"} <= set(row["phases"]) for row in rows)


def test_a_loop_without_an_optimizer_is_known_by_its_backward(folder):
    rows, _ = run(folder, "no_optimizer")
    assert 30 <= len(rows) <= 40
    assert {(row["samples"], row["hardware_flops"]) for row in rows} == {(8, 2 * PRODUCT)}


def test_each_model_of_a_process_is_found(folder):
    rows, _ = run(folder, "folds")
    assert 12 + 2 * 10 <= len(rows) <= 36
    assert {(row["samples"], row["hardware_flops"]) for row in rows} == {(8, 2 * PRODUCT)}
