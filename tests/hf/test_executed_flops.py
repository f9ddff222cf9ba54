# SPDX-License-Identifier: Apache-2.0
"""The estimate under `executed` equals what a real training step dispatches, to the integer and by component."""

import re
from collections import Counter

import pytest
import torch

from counter import OpCounter

SEQUENCES, LENGTH = 2, 24

# The first pattern that matches a module's path names its component. An operation that attention runs
# outside its projections belongs to the attention module itself: its path ends there.
COMPONENTS = [
    (r"\b(visual|vision_tower|multi_modal_projector)\b", "vision"),
    (r"^lm_head$", "lm_head"),
    (r"\b(project_in|project_out)$", "embedding_projections"),
    (r"\.(router|mlp\.gate|shared_expert_gate)$", "router"),
    (r"\.(attn|self_attn|attention|self_attention)$", "attention_core"),
    (r"\.(attn|self_attn|attention|self_attention)\.", "attention_projections"),
    (r"\.(mlp|ffn|fc1|fc2)\b", "mlp"),
    (r"rotary", "rotary"),
]


def component(path):
    """The component that a module of a transformers model belongs to."""
    for pattern, name in COMPONENTS:
        if re.search(pattern, path):
            return name
    raise AssertionError(f"the module {path} multiplies matrices but belongs to no component: add it to COMPONENTS")


def training_step(family, config, attention):
    """Counts one forward and backward pass of the model with random weights."""
    torch.manual_seed(0)
    model = family.model._from_config(config, attn_implementation=attention).eval()  # eval: no dropout
    inputs = family.batch(config, SEQUENCES, LENGTH)
    with OpCounter(model) as counter:
        model(**inputs, use_cache=False).loss.backward()
    assert not counter.unknown, f"operations without a price: {dict(counter.unknown)}"
    return counter, inputs


def attention_kind(counter):
    """Whether attention ran fused: sdpa falls back to plain products where the kernel cannot serve the shapes."""
    operations = {row.op for row in counter.flops if row.phase == "forward" and component(row.module) == "attention_core"}
    fused = {operation for operation in operations if "scaled_dot_product" in operation}
    assert not fused or fused == operations, f"some layers fused, some not: {operations}"
    return "fused" if fused else "eager"


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_estimate_equals_what_a_training_step_executes(family, config, attention, tmp_path, estimate):
    if attention not in family.attention:
        pytest.skip(f"transformers has no {attention} attention for {family.name}")
    config.save_pretrained(tmp_path)
    counter, inputs = training_step(family, config, attention)
    printed = estimate(
        tmp_path / "config.json", "--seq-len", LENGTH, "--batch", SEQUENCES, "--convention", "executed",
        "--attention", attention_kind(counter), *family.arguments(config, inputs))["flops"]
    by_phase, by_component = Counter(), Counter()
    for row, flops in counter.flops.items():
        by_phase[row.phase] += flops
        by_component[component(row.module)] += flops
    estimated = {name: flops for name, flops in printed["components"].items() if flops}
    assert estimated == dict(by_component), (tmp_path / "config.json").read_text()
    assert (printed["forward"], printed["backward"]) == (by_phase["forward"], by_phase["backward"])
