# SPDX-License-Identifier: Apache-2.0
"""The catalog's parameter counts equal those of the transformers class, for configurations that transformers writes."""

import json
from random import Random

import flopmeter
import peft
import pytest
import torch
import transformers as hf


def parameters_of(family, config):
    """Parameters of the model without duplicates and buffers; allocates no memory."""
    with torch.device("meta"):
        model = family.model(config)
    return sum(parameter.numel() for parameter in model.parameters())


def drop_defaults(entries, defaults):
    """Entries that differ from the defaults of the class, including sub-configurations; type and writer always stay."""
    kept = {}
    for key, value in entries.items():
        default = defaults.get(key)
        if isinstance(value, dict) and isinstance(default, dict):
            value = drop_defaults(value, default)
            if value or key.endswith("_config"):
                kept[key] = value
        elif key in ("model_type", "transformers_version") or key not in defaults or value != default:
            kept[key] = value
    return kept


def test_parameters_equal_the_transformers_class(family, config, tmp_path, estimate):
    config.save_pretrained(tmp_path)
    printed = estimate(tmp_path / "config.json", "--seq-len", 8, "--batch", 1)
    assert printed["model"]["parameters"]["total"] == parameters_of(family, config), (tmp_path / "config.json").read_text()


def test_parameters_are_correct_if_the_configuration_omits_defaults(family, config, tmp_path, estimate):
    config.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    entries = drop_defaults(json.loads(file.read_text()), json.loads(type(config)().to_json_string(use_diff=False)))
    file.write_text(json.dumps(entries))
    same = type(config).from_pretrained(tmp_path)
    printed = estimate(file, "--seq-len", 8, "--batch", 1)
    assert printed["model"]["parameters"]["total"] == parameters_of(family, same), file.read_text()


@pytest.mark.parametrize("auto", [hf.AutoModel, hf.AutoModelForSequenceClassification])
def test_parameters_equal_other_classes_of_the_family(family, auto, tmp_path, estimate):
    config = family.config(Random(family.name))
    try:
        with torch.device("meta"):
            model = auto.from_config(config)
    except ValueError:
        pytest.skip(f"{auto.__name__} has no class for {family.name}")
    config.architectures = [type(model).__name__]
    config.save_pretrained(tmp_path)
    printed = estimate(tmp_path / "config.json", "--seq-len", 8, "--batch", 1)
    total = sum(parameter.numel() for parameter in model.parameters())
    assert printed["model"]["parameters"]["total"] == total, (tmp_path / "config.json").read_text()


def test_a_live_model_is_known_by_its_own_class(family):
    config = family.config(Random(family.name))
    try:
        with torch.device("meta"):
            model = hf.AutoModel.from_config(config)
    except ValueError:
        pytest.skip(f"AutoModel has no class for {family.name}")
    config.architectures = [family.model.__name__]  # as read from a file for another class
    total = sum(parameter.numel() for parameter in model.parameters())
    assert flopmeter.estimate(model, seq_len=8)["model"]["parameters"]["total"] == total


def test_a_wrapped_model_is_known_by_the_class_inside():
    config = hf.LlamaConfig(
        hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        vocab_size=50)
    model = hf.LlamaForSequenceClassification(config)
    total = sum(parameter.numel() for parameter in model.parameters())
    compiled = torch.compile(model)
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="SEQ_CLS"))
    for wrapped in (model, compiled, torch.nn.DataParallel(model), adapted):
        assert flopmeter.estimate(wrapped, seq_len=8)["model"]["parameters"]["total"] == total, type(wrapped)
