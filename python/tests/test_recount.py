# SPDX-License-Identifier: Apache-2.0
"""``flopmeter recount``: a stored run under all other conventions, step by step and to the integer."""

import json
import subprocess
from pathlib import Path

import flopmeter
import pytest
import torch
from run_records import records
from tiny_llama import LLAMA

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "flopmeter"
LENGTHS = [[6, 6], [8, 3, 5], [7], [6, 6]]


def flopmeter_command(*arguments):
    if not PROGRAM.exists():
        pytest.skip("build/flopmeter is not built")
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A real LLaMA training on padded batches, counted in each step."""
    transformers = pytest.importorskip("transformers")
    directory = tmp_path_factory.mktemp("run")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA, attn_implementation="sdpa"))
    with flopmeter.Monitor(directory, model=model, peak_tflops=0.01, console=False) as monitor:
        for lengths in LENGTHS:
            ids = torch.randint(50, (len(lengths), max(lengths)))
            mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
            with monitor.step(attention_mask=mask.long()):
                model(input_ids=ids, attention_mask=mask.long(), labels=ids).loss.backward()
    return directory


def conventions():
    return [row["name"] for row in json.loads(flopmeter_command("conventions", "--json").stdout)]


def test_each_convention_equals_the_estimate_of_each_step(run):
    names = conventions()
    assert len(names) > 15
    for name in names:
        done = flopmeter_command("recount", run, "--convention", name, "--json")
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert (result["from"], result["convention"], result["without_batch"]) == ("model-v1", name, 0)
        expected = [flopmeter.estimate(LLAMA, seq_lens=lengths, convention=name)["flops"]["model"] for lengths in LENGTHS]
        assert [step["recounted"]["model_flops"] for step in result["steps"]] == expected, name
        assert result["recounted"]["model_flops"] == sum(expected)
        for step, row in zip(result["steps"], records(run), strict=True):
            mfu = step["recounted"]["model_flops"] / 1e10 / row["step_seconds"]
            assert step["recounted"]["mfu"] == pytest.approx(mfu, rel=1e-12)


def test_its_own_convention_gives_the_stored_values(run):
    result = json.loads(flopmeter_command("recount", run, "--convention", "model-v1", "--json").stdout)
    rows = records(run)
    for step, row in zip(result["steps"], rows, strict=True):
        assert step["stored"]["model_flops"] == row["model_flops"]
        if row["attention_pairs"] == "exact":
            assert step["recounted"]["model_flops"] == row["model_flops"]
    unpadded = [step for step, lengths in zip(result["steps"], LENGTHS, strict=True) if len(set(lengths)) == 1]
    assert unpadded and all(step["recounted"] == step["stored"] for step in unpadded)


def test_the_text_shows_both_conventions(run):
    done = flopmeter_command("recount", run, "--convention", "kaplan-6n")
    assert done.returncode == 0
    assert "model-v1 (stored)" in done.stdout and "kaplan-6n" in done.stdout and "MFU" in done.stdout


def test_a_failed_recount_is_reported_in_one_line(run, tmp_path):
    done = flopmeter_command("recount", run, "--convention", "palmm")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "palmm" in done.stderr
    with flopmeter.Monitor(tmp_path / "bare", console=False) as monitor, monitor.step(tokens=4, samples=1):
        pass
    done = flopmeter_command("recount", tmp_path / "bare", "--convention", "palm")
    assert done.returncode == 1 and "does not hold the model's configuration" in done.stderr
    assert flopmeter_command("recount", run).returncode == 2


def test_records_without_a_batch_are_empty_and_counted(run, tmp_path):
    (tmp_path / "run.json").write_text((run / "run.json").read_text())
    source = next(run.glob("records_*.jsonl"))
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    rows[1]["batch"] = None
    (tmp_path / source.name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = json.loads(flopmeter_command("recount", tmp_path, "--convention", "palm", "--json").stdout)
    assert result["without_batch"] == 1
    assert result["steps"][1]["recounted"]["model_flops"] is None
    assert result["steps"][0]["recounted"]["model_flops"] is not None


def test_the_trainable_parameters_must_be_known(tmp_path):
    transformers = pytest.importorskip("transformers")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    model.lm_head.weight.requires_grad_(False)
    with flopmeter.Monitor(tmp_path, model=model, console=False) as monitor, monitor.step(tokens=4, samples=1):
        pass
    done = flopmeter_command("recount", tmp_path, "--convention", "palm")
    assert done.returncode == 1 and "which parameters were trained" in done.stderr


def test_ranks_on_different_devices_keep_their_own_peaks(tmp_path):
    for rank, peak in enumerate((0.05, 0.2)):
        options = {"rank": rank, "world_size": 2, "peak_tflops": peak, "mode": "estimate", "console": False}
        with flopmeter.Monitor(tmp_path, model=LLAMA, **options) as monitor:
            for _ in range(3):
                with monitor.step(samples=1, tokens=32, seq_lens=[32]):
                    pass
    own = flopmeter_command("recount", tmp_path, "--convention", "model-v1", "--json")
    for step in json.loads(own.stdout)["steps"]:
        assert step["recounted"]["mfu"] == pytest.approx(step["stored"]["mfu"])
    rows = [json.loads(line) for path in tmp_path.glob("records_*") for line in path.read_text().splitlines()]
    ideal, seconds = (sum(row[name] for row in rows) for name in ("ideal_seconds", "step_seconds"))
    world = json.loads(flopmeter_command("report", tmp_path, "--json").stdout)["mfu"]
    assert world == pytest.approx(ideal / seconds)
