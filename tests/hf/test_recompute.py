# SPDX-License-Identifier: Apache-2.0
"""`--recompute full` equals what torch's non-reentrant checkpoint recomputes."""

from random import Random

import pytest

from families import DENSE
from measure import attention_kind, training_step
from test_trainable import adapt, freeze

# Each represents a layer structure: plain, gated, parallel, post-norm, shared norm, norm last.
NAMES = ["gpt2", "llama", "gpt_neox", "gemma2", "falcon", "opt", "phi", "qwen3"]
DROPOUTS = ["attn_pdrop", "embd_pdrop", "resid_pdrop", "attention_dropout", "dropout", "hidden_dropout"]


TRAINABLE = [
    ("freeze:model.layers.0.*", freeze("model.layers.0.*")),
    ("freeze:*.down_proj.weight", freeze("*.down_proj.weight")),
    ("freeze:*mlp*", freeze("*mlp*")),
    ("lora:3:*.q_proj", adapt(3, "*.q_proj")),
    ("lora:2:*.down_proj", adapt(2, "*.down_proj")),
]


def checkpointed(family, config, attention, change=lambda model: None):
    """Counts one step with all layers checkpointed; `change` freezes or adapts the model first."""

    def prepare(model):
        changed = change(model) or model
        model.gradient_checkpointing_enable({"use_reentrant": False})
        # transformers requests gradients of the embedding output even if nothing before it is trained. Only the reentrant
        # checkpoint needs that.
        model.disable_input_require_grads()
        return changed.train()

    return training_step(family, config, attention, prepare)[0]


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("name", NAMES)
def test_recompute_equals_what_a_checkpoint_recomputes(name, seed, dropout, tmp_path, estimate):
    family = next(family for family in DENSE if family.name == name)
    config = family.config(Random(f"recompute {name} {seed}"))
    for key in DROPOUTS:
        if hasattr(config, key):
            setattr(config, key, dropout)
    config.save_pretrained(tmp_path)
    counter = checkpointed(family, config, family.attention[-1])
    printed = estimate(
        tmp_path / "config.json", "--seq-len", 24, "--batch", 2, "--convention", "executed", "--recompute", "full",
        "--attention", attention_kind(counter))["flops"]
    phases = counter.by_phase()
    assert printed["recompute"] == phases["recompute"], (tmp_path / "config.json").read_text()
    assert (printed["forward"], printed["backward"]) == (phases["forward"], phases["backward"])


@pytest.mark.parametrize("argument, change", TRAINABLE, ids=[row[0] for row in TRAINABLE])
def test_recompute_with_frozen_parameters_and_adapters(argument, change, seed, tmp_path, estimate):
    family = next(family for family in DENSE if family.name == "llama")
    config = family.config(Random(f"recompute partly {seed}"))
    config.save_pretrained(tmp_path)
    counter = checkpointed(family, config, "sdpa", change)
    printed = estimate(
        tmp_path / "config.json", "--seq-len", 24, "--batch", 2, "--convention", "executed", "--recompute", "full",
        "--attention", attention_kind(counter), "--trainable", argument)["flops"]
    phases = counter.by_phase()
    assert printed["backward"] == phases["backward"], (tmp_path / "config.json").read_text()
    assert printed["recompute"] == phases["recompute"], (tmp_path / "config.json").read_text()
