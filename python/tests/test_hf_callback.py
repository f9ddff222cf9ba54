# SPDX-License-Identifier: Apache-2.0
"""The callback for the Hugging Face Trainer, with a real Trainer, a tiny random GPT-2 and real TensorBoard."""

import json

import flopmeter
import pytest
import torch
from run_records import records

transformers = pytest.importorskip("transformers")
pytest.importorskip("tensorboard")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

LENGTH, BATCH, ACCUMULATED, STEPS = 8, 2, 2, 6


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished training run: its folder, callback and Trainer."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("trainer")
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=40, n_positions=16, attn_implementation="sdpa")
    ids = torch.randint(40, (64, LENGTH))
    data = [{"input_ids": row, "labels": row} for row in ids]
    callback = flopmeter.hf.Callback(console=False, peak_tflops=1.0)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=ACCUMULATED,
        max_steps=STEPS,
        logging_steps=2,
        eval_strategy="steps",
        eval_steps=3,
        save_steps=3,
        report_to=["tensorboard"],
        use_cpu=True,
        disable_tqdm=True,
        seed=0,
    )
    trainer = transformers.Trainer(
        model=transformers.GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=data,
        eval_dataset=data[:4],
        callbacks=[callback],
    )
    trainer.train()
    return folder, callback, trainer


def test_each_optimizer_step_is_one_record_with_its_micro_steps(run):
    rows = records(run[1].monitor.directory, "train")
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    for row in rows:
        assert (row["micro_steps"], row["samples"], row["tokens"]) == (2, BATCH * 2, BATCH * 2 * LENGTH)


def test_flops_are_those_of_the_estimate(run):
    config = run[2].model.config.to_dict()
    sequences = BATCH * ACCUMULATED
    expected = flopmeter.estimate(config, seq_lens=[LENGTH] * sequences)["flops"]["model"]
    # GPT-2 trains with dropout in its attention, for which the CPU has no fused kernel: pairs that the mask leaves out
    # are computed, and so counted.
    masked_pairs = LENGTH * LENGTH - LENGTH * (LENGTH + 1) // 2
    masked = 3 * 2 * 2 * masked_pairs * config["n_embd"] * config["n_layer"] * sequences
    for row in records(run[1].monitor.directory, "train"):
        assert row["estimated_flops"] == expected
        assert row["model_flops"] == expected + (masked if row["attention_pairs"] == "full" else 0)


def test_the_stored_estimate_says_how_attention_ran(run):
    stored = json.loads(open(f"{run[1].monitor.directory}/run.json").read())
    assert stored["details"]["estimate"]["attention"] == "eager"


def test_phases_are_found_and_evaluation_and_checkpoints_are_apart(run):
    rows = records(run[1].monitor.directory)
    train = [row for row in rows if row["tag"] == "train"]
    assert all({"data", "forward", "backward", "optimizer"} <= set(row["phases"]) for row in train)
    tags = [row["tag"] for row in rows]
    assert tags.count("evaluation") == 2
    assert tags.count("checkpoint") == 2
    assert run[1].monitor.status["misuse"] == 0


def test_reporters_and_the_log_history_get_the_values(run):
    folder, _, trainer = run
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert len(logged) == 3
    for entry in logged:
        assert 0 < entry["perf/mfu"] < 1
        assert entry["perf/tokens_per_second"] == pytest.approx(entry["perf/samples_per_second"] * LENGTH)
    files = [path for path in folder.rglob("*tfevents*") if "perf_monitor" not in path.parts]
    board = EventAccumulator(str(files[0].parent))
    board.Reload()
    tags = board.Tags()["scalars"]
    for name in ("mfu", "mfu_percent", "step_time", "steps_per_second", "tokens_per_second", "samples_per_second"):
        assert f"train/perf/{name}" in tags
    assert [event.step for event in board.Scalars("train/perf/mfu")] == [2, 4, 6]
