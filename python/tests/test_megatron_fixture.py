# SPDX-License-Identifier: Apache-2.0
"""A script with Megatron's arguments: its records equal Megatron's formula to the integer."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from megatron_formula import megatron_flops
from run_records import records

SCRIPT = Path(__file__).parent / "megatron_fixture" / "pretrain_gpt.py"
BASE = "--num-layers 4 --hidden-size 64 --num-attention-heads 8 --seq-length 32 --vocab-size 1000 --global-batch-size 16 --bf16"
SWIGLU = "--swiglu --ffn-hidden-size 96"
GQA = f"{SWIGLU} --group-query-attention --num-query-groups 2"
MOE = f"{GQA} --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 48"
MLA = f"{SWIGLU} --multi-latent-attention --q-lora-rank 24 --kv-lora-rank 16 --qk-head-dim 8 --qk-pos-emb-head-dim 4 --v-head-dim 8"
CASES = {  # flags, and the ranks that share the work
    "GQA": (GQA, 1),
    "GQA, context parallel 2, pipeline parallel 2": (f"{GQA} --context-parallel-size 2 --pipeline-model-parallel-size 2", 4),
    "GQA, tensor parallel 2 pads the vocabulary further": (f"{GQA} --tensor-model-parallel-size 2 --context-parallel-size 2", 8),
    "MoE": (f"{MOE} --moe-layer-freq ([0]*1+[1]*3) --expert-model-parallel-size 2", 2),
    "MLA": (MLA, 1),
    "MLA and MoE with a shared expert": (
        f"{MLA} --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 48 --moe-layer-freq ([0]*1+[1]*3) "
        "--moe-shared-expert-intermediate-size 48 --pipeline-model-parallel-size 2",
        2,
    ),
}


def arguments_of(words, ranks):
    """Arguments for Megatron's formula, parsed independently of the code under test."""
    found = dict.fromkeys(("q_lora_rank", "num_experts"))
    key = None
    for word in words:
        if word.startswith("--"):
            key = word[2:].replace("-", "_")
            found[key] = True
        else:
            found[key] = int(word) if word.isdigit() else eval(word)
    multiple = 128 * found.get("tensor_model_parallel_size", 1)
    found["padded_vocab_size"] = (found["vocab_size"] + multiple - 1) // multiple * multiple
    return argparse.Namespace(**found)


@pytest.mark.parametrize("case", CASES)
def test_the_record_is_a_ranks_share_of_megatrons_number(case, tmp_path):
    flags, ranks = CASES[case]
    words = [*BASE.split(), *flags.split()]
    command = [sys.executable, SCRIPT, *words, "--enable-perf-monitor", "--perf-log-dir", tmp_path, "--no-perf-console-output"]
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": str(ranks)}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    expected = megatron_flops(arguments_of(words, ranks), 16)
    rows = records(tmp_path)
    print(f"recorded {rows[0]['model_flops']}, Megatron's formula {expected}")
    assert [(row["model_flops"], row["devices"], row["convention"]) for row in rows] == [(-(-expected // ranks), 1, "megatron")] * 3
    assert json.loads((tmp_path / "run.json").read_text())["world"]["size"] == ranks
