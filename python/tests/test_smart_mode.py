# SPDX-License-Identifier: Apache-2.0
"""Mode smart on real models with a different shape per batch, compared with counting all steps."""

import itertools
import random

import flopmeter
import pytest
import torch
from run_records import records

transformers = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny models do not benefit from more threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def text_model():
    config = transformers.LlamaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, vocab_size=64
    )
    return transformers.LlamaForCausalLM(config)


def text_batches(steps):
    rng = random.Random(3)
    for _ in range(steps):
        sequences, length = rng.randint(1, 8), rng.randint(4, 40)
        ids = torch.randint(64, (sequences, length))
        yield {"input_ids": ids, "labels": ids}


IMAGE = 2  # the token that represents four patches


def vision_model():
    text = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48,
        "vocab_size": 64, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 1, 1]},
    }
    vision = {
        "depth": 2, "num_heads": 2, "embed_dim": 16, "hidden_size": 32, "mlp_ratio": 2, "in_channels": 3, "patch_size": 4,
        "spatial_merge_size": 2, "temporal_patch_size": 1,
    }
    ids = {"image_token_id": IMAGE, "video_token_id": 1, "vision_start_token_id": 0, "vision_end_token_id": 0}
    return transformers.Qwen2VLForConditionalGeneration(transformers.Qwen2VLConfig(text_config=text, vision_config=vision, **ids))


def vision_batches(steps):
    rng = random.Random(4)
    for _ in range(steps):
        sequences, words = rng.randint(1, 3), rng.randint(6, 24)
        height, width = 2 * rng.randint(1, 4), 2 * rng.randint(1, 4)
        visual = height * width // 4
        ids = torch.randint(3, 64, (sequences, words + visual))
        ids[:, 1 : 1 + visual] = IMAGE
        yield {
            "input_ids": ids,
            "labels": ids,
            "pixel_values": torch.zeros(sequences * height * width, 3 * 4 * 4),
            "image_grid_thw": torch.tensor([(1, height, width)] * sequences),
            "mm_token_type_ids": (ids == IMAGE).long(),
        }


def train(directory, make, batches, steps, known, **options):
    """FLOPs of each step; ``known``: the monitor may read the model configuration."""
    torch.manual_seed(0)
    model = make()
    monitor = flopmeter.Monitor(directory, model=model if known else None, console=False, **options)
    for batch in batches(steps):
        shape = {key: batch[key] for key in ("input_ids", "image_grid_thw") if key in batch}
        with monitor.step(**shape):
            model(**batch).loss.backward()
    measurements = monitor.status["measurements"]
    monitor.finish()
    return records(directory), measurements


def compare(tmp_path, make, batches, steps, known=True):
    """Records of mode smart, the relative error of their FLOPs, and the number of counts."""
    truth, counts = train(tmp_path / "always", make, batches, steps, known, overhead_budget=1)
    assert counts == len(truth) == steps and {row["flops_source"] for row in truth} == {"counted"}
    smart, measurements = train(tmp_path / "smart", make, batches, steps, known, mode="smart")
    assert len(smart) == steps
    exact = sum(row["model_flops"] for row in truth)
    return smart, abs(sum(row["model_flops"] or 0 for row in smart) / exact - 1), measurements


def shapes(rows):
    return len({row["batch"] for row in rows})


def assert_counts_are_shown(rows, measurements):
    counted = [row for row in rows if row["flops_source"] == "counted"]
    assert len(counted) == measurements
    assert all(row["calibration_age"] == 0 for row in counted)
    for before, row in itertools.pairwise(rows):
        if row["flops_source"] == "calibrated" and before["flops_source"] == "counted":
            assert row["calibration_age"] >= 1


def test_two_hundred_steps(tmp_path):
    rows, error, measurements = compare(tmp_path, text_model, text_batches, 200)
    assert shapes(rows) > 100
    assert measurements <= 20
    assert error <= 1e-3
    assert_counts_are_shown(rows, measurements)


@pytest.mark.long
@pytest.mark.parametrize("make, batches", [(text_model, text_batches), (vision_model, vision_batches)], ids=["text", "vision"])
def test_two_thousand_steps_of_hundreds_of_shapes(tmp_path, make, batches):
    rows, error, measurements = compare(tmp_path, make, batches, 2000)
    assert shapes(rows) >= 200
    assert measurements <= 20
    assert error <= 1e-3
    assert_counts_are_shown(rows, measurements)
