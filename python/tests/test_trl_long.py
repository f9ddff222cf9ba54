# SPDX-License-Identifier: Apache-2.0
"""TRL's GRPOTrainer with a tiny model: rollout, reward, and update are separate records with exact FLOPs."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
from flopmeter.integrations import hf
from run_records import records

transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
from datasets import Dataset  # noqa: E402  (a requirement of trl)
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "flopmeter"
HIDDEN, FFN, LAYERS, VOCABULARY, PROMPT, NEW = 32, 48, 2, 64, 7, 5
PER_BATCH, ACCUMULATED, STEPS = 4, 2, 3


def tokenizer():
    words = {"<pad>": 0, "<eos>": 1, **{str(number): number + 2 for number in range(VOCABULARY - 2)}}
    tokens = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokens, pad_token="<pad>", eos_token="<eos>")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("grpo")
    config = transformers.LlamaConfig(
        hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=LAYERS, vocab_size=VOCABULARY, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=64, pad_token_id=0, eos_token_id=1)
    arguments = trl.GRPOConfig(
        output_dir=str(folder), per_device_train_batch_size=PER_BATCH, gradient_accumulation_steps=ACCUMULATED, num_generations=4,
        max_completion_length=NEW, generation_kwargs={"min_new_tokens": NEW}, max_steps=STEPS, logging_steps=1,
        save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True)
    callback = hf.Callback(peak_tflops=1.0, profile_freq=0)
    trainer = trl.GRPOTrainer(
        model=transformers.LlamaForCausalLM(config),
        args=arguments,
        reward_funcs=lambda completions, **_: [float(len(each)) for each in completions],
        train_dataset=Dataset.from_dict({"prompt": [" ".join(map(str, range(PROMPT)))] * 16}),
        processing_class=tokenizer(),
        callbacks=[callback],
    )
    trainer.train()
    return callback.monitor.directory


def test_each_step_has_a_rollout_a_reward_and_an_update(run):
    stages = [(row["stage"], row["tag"]) for row in records(run)]
    assert stages == [("rollout", "generation"), ("reward", "generation"), ("update", "train")] * STEPS
    assert [row["step"] for row in records(run, "train")] == [1, 2, 3]
    assert all(row["micro_batches"] == ACCUMULATED for row in records(run, "train"))


def test_generation_has_the_flops_of_its_closed_form(run):
    sequences = PER_BATCH * ACCUMULATED
    block = LAYERS * (4 * HIDDEN * HIDDEN + 3 * HIDDEN * FFN)
    matmuls = 2 * sequences * (block * (PROMPT + NEW - 1) + HIDDEN * VOCABULARY * NEW)
    pairs = PROMPT * (PROMPT + 1) // 2 + sum(PROMPT + 1 + i for i in range(NEW - 1))
    expected = matmuls + 2 * 2 * sequences * LAYERS * HIDDEN * pairs
    assert [row["model_flops"] for row in records(run) if row["stage"] == "rollout"] == [expected] * STEPS


def test_the_report_has_the_stages(run):
    done = subprocess.run([PROGRAM, "report", run, "--json"], capture_output=True, text=True, check=True, env=os.environ)
    stages = {stage["name"]: stage for stage in json.loads(done.stdout)["stages"]}
    assert set(stages) == {"rollout", "reward", "update"}
    assert all(stage["records"] == STEPS and stage["seconds"] > 0 for stage in stages.values())
    assert 0 < stages["rollout"]["mfu"] < 1 and 0 < stages["update"]["mfu"] < 1
