# SPDX-License-Identifier: Apache-2.0
"""The four configurations of examples/configs: loads each and trains a model with it."""

from pathlib import Path

import flopmeter
import pytest
import torch
from run_records import records
from tiny_llama import LLAMA

CONFIGS = Path(__file__).resolve().parents[2] / "examples" / "configs"


def test_all_configurations_are_tested():
    assert sorted(path.stem for path in CONFIGS.glob("*.yaml")) == sorted(EXPECTED)


def counted(at):
    """FLOPs source per step: counted at the given steps, none in others."""
    return ["counted" if step in at else "none" for step in range(60)]


EXPECTED = {
    "production_smart": ["counted"] + ["calibrated"] * 59,
    "research_profiler": counted({0, 50}),
    "prototype_estimate": ["estimate"] * 60,
    "counters_hybrid": None,  # by hardware, or counted with the reason
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_training_follows_the_configuration(name, tmp_path):
    transformers = pytest.importorskip("transformers")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ids = torch.randint(50, (2, 6))
    with flopmeter.Monitor(tmp_path, model=model, config=CONFIGS / f"{name}.yaml", console=False) as monitor:
        for _ in range(60):
            with monitor.step(input_ids=ids):
                model(input_ids=ids, labels=ids).loss.backward()
                optimizer.step()
                optimizer.zero_grad()
    rows = records(tmp_path)
    expected = flopmeter.estimate(LLAMA, seq_lens=[6, 6])["flops"]["model"]
    assert {row["model_flops"] for row in rows} <= {None, expected}
    sources = [row["flops_source"] for row in rows]
    if name == "counters_hybrid":
        if "hardware" in sources:
            assert all(row["hardware_flops"] > 0 for row in rows if row["flops_source"] == "hardware")
        else:
            assert sources[0] == "counted"
            assert all(row["flops_note"].startswith("no hardware counters: ") for row in rows)
    else:
        assert sources == EXPECTED[name]
