# SPDX-License-Identifier: Apache-2.0
"""flopmeter.estimate(): the object of `flopmeter estimate --json`, for all forms of a model."""

import json
import os
import subprocess
from pathlib import Path

import flopmeter
import pytest
from test_monitor_setup import LLAMA


@pytest.fixture
def program():
    root = Path(__file__).resolve().parents[2] / "build"
    found = [Path(os.environ.get("FLOPMETER_BIN", "")), root / "flopmeter", root / "release" / "flopmeter"]
    return next((path for path in found if path.is_file()), None) or pytest.skip("the program is not built")


@pytest.mark.parametrize(
    ("keywords", "flags"),
    [
        ({"seq_len": 8192}, ["--seq-len", "8192"]),
        ({"seq_lens": [100, 7]}, ["--seq-lens", "100,7"]),
        (
            {"seq_len": 64, "batch": 3, "device": "h100", "devices": 8, "step_time": 0.5, "recompute": "full"},
            "--seq-len 64 --batch 3 --device h100 --devices 8 --step-time 0.5 --recompute full".split(),
        ),
        ({"seq_len": 64, "peak_tflops": 3, "convention": "megatron"}, "--seq-len 64 --peak 3 --convention megatron".split()),
        ({"seq_len": 64, "trainable": "lora:8", "attention": "eager"}, "--seq-len 64 --trainable lora:8 --attention eager".split()),
        ({"forward_only": True}, ["--forward-only"]),
    ],
)
def test_it_equals_the_output_of_the_cli(program, keywords, flags):
    printed = subprocess.run([program, "estimate", "llama-3-8b", *flags, "--json"], check=True, capture_output=True, text=True)
    assert flopmeter.estimate("llama-3-8b", **keywords) == json.loads(printed.stdout)


def test_flops_are_exact_integers_of_any_size():
    flops = flopmeter.estimate("llama-3-8b", seq_len=8192, batch=2_000_000)["flops"]["model"]
    assert flops == 421_651_971_833_856 * 2_000_000 > 2**64


def test_images_add_the_vision_tower():
    vision = {"model_type": "qwen2_5_vl", "text_config": LLAMA, "vision_config": {"depth": 2, "hidden_size": 16, "num_heads": 2}}
    with_image = flopmeter.estimate(vision, seq_len=64, image_grid_thw=[(1, 8, 8)])
    assert with_image["flops"]["components"]["vision"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "lama-3-8b"}, "llama-3-8b"),
        ({"model": LLAMA, "seq_len": 4, "recompute": "some"}, "none, selective, full"),
        ({"model": LLAMA, "seq_len": 4, "recompute": "full", "forward_only": True}, "^recompute= cannot be combined with forward_only"),
        ({"model": LLAMA, "seq_len": -1}, "^seq_len= must be between"),
        ({"model": LLAMA, "seq_len": 4, "dtype": "float3"}, "float3"),
        ({"model": LLAMA, "seq_len": 4, "convention": "mine"}, "mine"),
        ({"model": {"model_type": "llama", "hidden_size": 3}}, "num_hidden_layers|num_attention_heads"),
        ({"model": LLAMA, "seq_lens": [3], "batch": 2}, "either seq_lens"),
        ({"model": 3}, "int has no configuration"),
        ({"model": LLAMA, "peak_tflops": -1}, "positive"),
        ({"model": LLAMA, "seq_len": 0}, "seq_len= must be"),
    ],
)
def test_an_invalid_argument_is_a_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        flopmeter.estimate(**arguments)
