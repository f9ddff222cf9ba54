# SPDX-License-Identifier: Apache-2.0
"""What a checkpointed training step computes twice: `--recompute full` equals torch's non-reentrant checkpoint."""

from random import Random

import pytest

from families import DENSE
from measure import attention_kind, training_step

# Each stands for a shape of layer: plain, gated, side by side, norms behind, one norm for both, norm last.
NAMES = ["gpt2", "llama", "gpt_neox", "gemma2", "falcon", "opt", "phi", "qwen3"]
DROPOUTS = ["attn_pdrop", "embd_pdrop", "resid_pdrop", "attention_dropout", "dropout", "hidden_dropout"]


def checkpointed(family, config, attention):
    """Counts one step in which every layer is checkpointed."""

    def prepare(model):
        model.train()
        model.gradient_checkpointing_enable({"use_reentrant": False})

    return training_step(family, config, attention, prepare)[0]


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("name", NAMES)
def test_recompute_equals_what_a_checkpoint_runs_again(name, seed, dropout, tmp_path, estimate):
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
