# SPDX-License-Identifier: Apache-2.0
"""The estimate under `executed` equals a real training step, to the integer and by component."""

import pytest

from measure import LENGTH, SEQUENCES, attention_kind, component, training_step


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_the_estimate_equals_an_executed_training_step(family, config, attention, tmp_path, estimate):
    if attention not in family.attention:
        pytest.skip(f"transformers has no {attention} attention for {family.name}")
    config.save_pretrained(tmp_path)
    counter, inputs = training_step(family, config, attention)
    printed = estimate(
        tmp_path / "config.json", "--seq-len", LENGTH, "--batch", SEQUENCES, "--convention", "executed",
        "--attention", attention_kind(counter), *family.arguments(config, inputs))["flops"]
    by_phase, by_component = counter.by_phase(), counter.total(lambda row: component(row.module))
    estimated = {name: flops for name, flops in printed["components"].items() if flops}
    for part in family.by_kernel:
        assert estimated.pop(part) > 0 and by_component.pop(part) > 0
    assert estimated == dict(by_component), (tmp_path / "config.json").read_text()
    if not family.by_kernel:
        assert (printed["forward"], printed["backward"]) == (by_phase["forward"], by_phase["backward"])
