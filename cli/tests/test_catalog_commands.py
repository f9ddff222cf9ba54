# SPDX-License-Identifier: Apache-2.0
"""`estimate`, `models`, and `devices`: numbers are numbers, names are accepted in every common form."""
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FLOPMETER_BIN", str(ROOT / "build" / "flopmeter"))


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(*arguments):
    return json.loads(run(*arguments, "--json"))


def test_a_published_number_is_parameters_and_buffers():
    assert ask("estimate", "deepseek-v3")["model"]["parameters"]["total"] == 671026419200
    counts = ask("estimate", "meta-llama/Llama-2-7b-hf")["model"]["parameters"]
    assert counts["total"] + counts["buffers"] == 6738417664
    assert "(published: 2,048 more, of buffers)" in run("estimate", "llama-2-7b")
    assert "published" not in run("estimate", "llama-3-8b")


def test_buffers_of_an_unpublished_configuration_are_unknown(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({
        "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 100}))
    assert ask("estimate", path)["model"]["parameters"]["buffers"] is None


def test_the_selected_device_is_shown():
    assert "on H100 SXM5 80GB: 989 TFLOP/s bf16 (" in run("estimate", "gpt-2", "--device", "h100_80gb")
    assert "on 8 x H100 PCIe: 756 TFLOP/s bf16 each (" in run("estimate", "gpt-2", "--device", "h100_pcie", "--devices", 8)


def test_an_assumed_length_is_shown():
    assert "no --seq-len: assuming 2,048 tokens per sequence" in run("estimate", "gpt-2")
    assert "assuming" not in run("estimate", "gpt-2", "--seq-len", 2048)
    assert "assuming" not in run("estimate", "gpt-2", "--seq-lens", "7,9")


@pytest.mark.parametrize("name", ["llama-3-8b", "LLAMA3_8B", "meta-llama/Meta-Llama-3-8B", "Llama-3/3.1-8B"])
def test_a_model_is_listed_under_every_name(name):
    (row,) = ask("models", name)
    assert (row["name"], row["parameters"]) == ("llama-3-8b", 8030261248)


def test_families_are_listed_with_the_types_they_read():
    rows = {row["name"]: row for row in ask("models", "--families")}
    assert len(rows) >= 67 and "LlamaForCausalLM" in rows["llama"]["types"].split()
    (row,) = ask("models", "llama", "--families")
    assert row == rows["llama"]


def test_run_help_fits_on_one_screen():
    assert len(run("run", "--help").splitlines()) <= 24


def test_numbers_of_devices_are_numbers():
    (row,) = ask("devices", "a100")
    assert (row["bf16 TFLOP/s"], row["memory GB"], row["fp8 TFLOP/s"]) == (312, 80, None)


def test_an_operator_is_found_without_its_namespace():
    assert ask("ops", "mm") == ask("ops", "aten::mm")


def test_a_rule_shows_what_it_recommends():
    assert "num_workers" in run("rules", "data_loading")
    assert all(row["recommendation"] for row in ask("rules"))


def test_a_training_is_planned_from_its_tokens():
    base = ["estimate", "llama-3-8b", "--seq-len", "8192", "--device", "h100", "--devices", "1024", "--train-tokens", "15T", "--json"]
    plan = json.loads(run(*base, "--planned-mfu", "0.4"))
    per_token = plan["flops"]["per_token"]
    assert plan["plan"]["model_flops"] == pytest.approx(15e12 * per_token)
    assert plan["plan"]["ideal_seconds"] == pytest.approx(15e12 * per_token / 1024 / plan["device"]["peak_flops_per_second"], rel=1e-6)
    assert plan["plan"]["seconds"] == pytest.approx(plan["plan"]["ideal_seconds"] / 0.4)
    assert plan["plan"]["device_hours"] == pytest.approx(1024 * plan["plan"]["seconds"] / 3600)
    measured = json.loads(run(*base, "--tokens-per-second", "1e7"))
    assert measured["plan"]["seconds"] == pytest.approx(1.5e6)
    assert measured["plan"]["mfu"] == measured["rates"]["mfu"]
    assert json.loads(run(*base))["plan"]["seconds"] is None
