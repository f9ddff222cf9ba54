# SPDX-License-Identifier: Apache-2.0
"""Counts one training step of a transformers model by component."""

import re
from collections import Counter

import flopmeter
import torch

from counter import OpCounter

SEQUENCES, LENGTH = 2, 24

# The first pattern that matches a module path gives its component. Operators that attention runs outside its
# projections belong to the attention module itself, so its path ends there.
COMPONENTS = [
    (r"\b(visual|vision_tower|vision_model|multi_modal_projector)\b", "vision"),
    (r"\.(lora_A|lora_B)\b", "adapters"),
    (r"^(language_model\.)?lm_head$", "lm_head"),
    (r"\b(project_in|project_out)$", "embedding_projections"),
    (r"\.(router(\.layer)?|mlp\.gate|shared_expert_gate)$", "router"),
    (r"\.linear_attn(\.conv1d)?$", "linear_attention"),
    (r"\.linear_attn\.", "attention_projections"),
    (r"\.(attn|self_attn|attention|self_attention)$", "attention_core"),
    (r"\.(attn|self_attn|attention|self_attention)\.", "attention_projections"),
    (r"\.(mlp|ffn|fc1|fc2|feed_forward|block_sparse_moe|shared_mlp)\b", "mlp"),
    (r"rotary", "rotary"),
]


def component(path):
    """Component of a module of a transformers model."""
    path = path.removeprefix("base_model.model.")  # peft's wrapper
    for pattern, name in COMPONENTS:
        if re.search(pattern, path):
            return name
    raise AssertionError(f"module {path} runs matmuls but has no component; add it to COMPONENTS")


def training_step(family, config, attention, prepare=lambda model: None):
    """Counts one forward and backward pass of the model with random weights; `prepare` can change or wrap it.

    The brute-force counter and `flopmeter.count()` count the same step and must agree to the integer, by pass and module.
    """
    torch.manual_seed(0)
    model = family.model._from_config(config, attn_implementation=attention).eval()  # eval: no dropout
    model = prepare(model) or model
    inputs = family.batch(config, SEQUENCES, LENGTH)
    with flopmeter.count(modules=model) as counted, OpCounter(model) as counter:
        loss = model(**inputs, use_cache=False).loss
        if loss.requires_grad:
            loss.backward()
    assert not counter.unknown, f"operators without a cost: {dict(counter.unknown)}"
    assert not counted.unsupported
    by_module = {
        (module, phase): flops
        for module, passes in counted.by_module.items()
        for phase, flops in passes._asdict().items()
        if flops
    }
    assert by_module == dict(counter.total(lambda row: (row.module, row.phase)))
    assert not any(counted.unattributed)
    seen, counter.flops = counter.flops, Counter()
    for row, flops in seen.items():
        counter.flops[row._replace(module=family.rename(config, row.module))] += flops
    return counter, inputs


def attention_kind(counter):
    """Whether attention ran fused; sdpa uses separate matmuls if the kernel does not support the shapes."""
    operations = {row.op for row in counter.flops if row.phase == "forward" and component(row.module) == "attention_core"}
    fused = {operation for operation in operations if "scaled_dot_product" in operation}
    assert not fused or fused == operations, f"some layers fused, some not: {operations}"
    return "fused" if fused else "eager"
