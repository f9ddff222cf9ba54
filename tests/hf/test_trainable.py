# SPDX-License-Identifier: Apache-2.0
"""Frozen parameters and LoRA: the estimated backward pass equals torch's, for each single matmul."""

from fnmatch import fnmatchcase, translate
from random import Random

import peft
import pytest

from families import DENSE
from measure import LENGTH, SEQUENCES, attention_kind, component, training_step

NAMES = ["llama", "gpt2", "qwen2"]
TARGETS = {
    "llama": ["*.q_proj", "*.v_proj", "*_proj", "*.mlp.*_proj", "*layers.[12].*_proj"],
    "gpt2": ["*.c_attn", "*.c_proj", "*.mlp.c_fc", "*.h.[12].attn.c_*"],
    "qwen2": ["*.k_proj", "*self_attn.[qv]_proj", "*.down_proj", "*layers.0.*_proj"],
}


def random_pattern(rng, names):
    """A pattern that matches some parameters: a parameter name with one part replaced by a star."""
    words = rng.choice(names).split(".")
    first = rng.randint(0, len(words) - 1)
    last = rng.randint(first, len(words) - 1)
    pattern = ".".join([*words[:first], "*", *words[last + 1 :]])
    return rng.choice([pattern, pattern, "*" + rng.choice(words) + "*"])


def freeze(pattern):
    """Freezes the parameters that match the pattern."""

    def prepare(model):
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(not fnmatchcase(name, pattern))

    return prepare


def adapt(rank, pattern):
    """Adds peft adapters to the linear layers that match the pattern."""
    targets = translate(pattern).replace("\\Z", "")
    return lambda model: peft.get_peft_model(model, peft.LoraConfig(r=rank, target_modules=targets)).eval()


def draw(name, what, seed):
    """The family and one of its configurations."""
    family = next(family for family in DENSE if family.name == name)
    return family, family.config(Random(f"{what} {name} {seed}"))


def check(family, config, attention, prepare, argument, tmp_path, estimate):
    """Compares phases and components of one step with the estimate for --trainable `argument`."""
    config.save_pretrained(tmp_path)
    trainable = {}

    def count_trainable(model):
        model = prepare(model) or model
        trainable["count"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
        return model

    counter, _ = training_step(family, config, attention, count_trainable)
    printed = estimate(
        tmp_path / "config.json", "--seq-len", LENGTH, "--batch", SEQUENCES, "--convention", "executed",
        "--attention", attention_kind(counter), "--trainable", argument)
    case = f"{argument}\n{(tmp_path / 'config.json').read_text()}"
    parts = dict(counter.total(lambda row: component(row.module)))
    assert printed["flops"]["components"] == parts, case
    phases = counter.by_phase()
    assert (printed["flops"]["forward"], printed["flops"]["backward"]) == (phases["forward"], phases["backward"]), case
    assert printed["model"]["parameters"]["trainable"] == trainable["count"], case


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", [family.name for family in DENSE])
def test_frozen_parameters(name, seed, attention, tmp_path, estimate):
    family, config = draw(name, "freeze", seed)
    if attention not in family.attention:
        pytest.skip(f"transformers has no {attention} attention for {name}")
    names = [name for name, _ in family.model(config).named_parameters()]
    pattern = random_pattern(Random(f"pattern {name} {seed}"), names)
    check(family, config, attention, freeze(pattern), f"freeze:{pattern}", tmp_path, estimate)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", NAMES)
def test_adapters(name, seed, attention, tmp_path, estimate):
    family, config = draw(name, "lora", seed)
    rng = Random(f"target {name} {seed}")
    rank = rng.choice([1, 3, 8])
    modules = [name for name, _ in family.model(config).named_modules()]
    fitting = [target for target in TARGETS[name] if any(fnmatchcase(module, target) for module in modules)]
    target = rng.choice(fitting)
    check(family, config, attention, adapt(rank, target), f"lora:{rank}:{target}", tmp_path, estimate)
