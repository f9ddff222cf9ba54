# SPDX-License-Identifier: Apache-2.0
"""The callback for the Hugging Face Trainer, with a real Trainer, a tiny random GPT-2 and real TensorBoard."""

import json
import time

import flopmeter
from flopmeter.integrations import hf
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
    callback = hf.Callback(console=False, peak_tflops=1.0)
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


def test_each_optimizer_step_is_one_record_with_its_micro_batches(run):
    rows = records(run[1].monitor.directory, "train")
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    for row in rows:
        assert (row["micro_batches"], row["samples"], row["tokens"]) == (2, BATCH * 2, BATCH * 2 * LENGTH)


def test_flops_are_those_of_the_estimate(run):
    config = run[2].model.config.to_dict()
    sequences = BATCH * ACCUMULATED
    expected = flopmeter.estimate(config, seq_lens=[LENGTH] * sequences)["flops"]["model"]
    # GPT-2 trains with dropout in its attention, for which the CPU has no fused kernel: pairs that the mask excludes
    # are computed, and so counted.
    masked_pairs = LENGTH * LENGTH - LENGTH * (LENGTH + 1) // 2
    masked = 3 * 2 * 2 * masked_pairs * config["n_embd"] * config["n_layer"] * sequences
    for row in records(run[1].monitor.directory, "train"):
        assert row["estimated_flops"] == expected
        assert row["model_flops"] == expected + (masked if row["attention_pairs"] == "full" else 0)


def test_the_planned_steps_are_known(run):
    assert json.loads(open(f"{run[1].monitor.directory}/run.json").read())["total_steps"] == STEPS


def test_the_stored_estimate_states_how_attention_ran(run):
    stored = json.loads(open(f"{run[1].monitor.directory}/run.json").read())
    assert stored["model_source"]["attention"] == "eager"


def test_phases_are_found_and_evaluation_and_checkpoints_are_separate(run):
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


class Slow(transformers.TrainerCallback):
    """A reporter that takes its time."""

    def on_log(self, *_args, **_kwargs):
        time.sleep(0.3)


class Referring(transformers.Trainer):
    """Runs the model again without gradients, as a preference loss does with its reference."""

    def compute_loss(self, model, inputs, *args, **kwargs):
        with torch.no_grad():
            model(**inputs)
        return super().compute_loss(model, inputs, *args, **kwargs)


@pytest.fixture(scope="module")
def by_epoch(tmp_path_factory):
    """Two epochs of three steps, the second after a train() that failed; evaluation at the start and after each epoch."""
    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, vocab_size=40
    )
    data = [{"input_ids": row, "labels": row} for row in torch.randint(40, (12, LENGTH))]
    callback = hf.Callback(console=False, peak_tflops=1.0, profile_freq=0)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path_factory.mktemp("epochs")),
        per_device_train_batch_size=4,
        num_train_epochs=2,
        logging_steps=1,
        eval_strategy="epoch",
        save_strategy="epoch",
        eval_on_start=True,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    model = transformers.LlamaForCausalLM(config)
    trainer = Referring(model, arguments, train_dataset=data, eval_dataset=data[:4], callbacks=[callback, Slow()])
    forward, model.forward = model.forward, None
    with pytest.raises(TypeError):
        trainer.train()
    model.forward = forward
    trainer.train()
    return callback, trainer


def test_the_end_of_an_epoch_is_separate_and_a_slow_reporter_is_not_data_wait(by_epoch):
    rows = records(by_epoch[0].monitor.directory)
    tags = [row["tag"] for row in rows]
    assert tags == ["evaluation", *["train"] * 3, "evaluation", "checkpoint", *["train"] * 3, "evaluation", "checkpoint"]
    train = [row for row in rows if row["tag"] == "train"]
    assert all(row["phases"]["data"] < 0.3 for row in train)
    assert [row["step"] for row in train if row["phases"]["other"] > 0.3] == [2, 3, 5, 6]
    assert by_epoch[0].monitor.status["misuse"] == 0


def test_a_forward_without_gradients_is_work_but_not_a_micro_batch(by_epoch):
    config = by_epoch[1].model.config.to_dict()
    flops = flopmeter.estimate(config, seq_lens=[LENGTH] * 4, convention="executed")["flops"]
    for row in records(by_epoch[0].monitor.directory, "train"):
        assert (row["micro_batches"], row["samples"], row["tokens"]) == (1, 4, 4 * LENGTH)
        assert row["hardware_flops"] == flops["model"] + flops["forward"]


def test_a_logged_row_shows_its_own_steps(by_epoch):
    logged = [entry["perf/step_time"] for entry in by_epoch[1].state.log_history if "loss" in entry]
    assert logged == [row["step_seconds"] for row in records(by_epoch[0].monitor.directory, "train")]
