# SPDX-License-Identifier: Apache-2.0
"""Wrong usage: exit code 2 and one line that names the thing, the place, and what to do; 1 for what cannot be read."""
import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FLOPMETER_BIN", str(ROOT / "build" / "flopmeter"))
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 128, "vocab_size": 100}


def run(*arguments, stdin=""):
    return subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, text=True)


def assert_refused(done, *words, code=2):
    assert done.returncode == code, done
    assert done.stdout == ""
    assert done.stderr.startswith("flopmeter: ") and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize("arguments, words", [
    (["estimate"], ["model", "--help"]),
    (["estimate", "llama-3-9b"], ["llama-3-9b", "did you mean llama-3-8b"]),
    (["estimate", "llama-3-8b", "--seq-len", "0"], ["--seq-len", "'0'", "positive integer"]),
    (["estimate", "llama-3-8b", "--seq-len", "99999999999"], ["99999999999", "2^31"]),
    (["estimate", "llama-3-8b", "--seq-len", "8192", "--batch", "999999999999"], ["2^44 tokens"]),
    (["estimate", "llama-3-8b", "--batch", "1.5"], ["--batch", "1.5"]),
    (["estimate", "llama-3-8b", "--seq-len", "8", "--seq-lens", "1,2"], ["--seq-lens", "--seq-len"]),
    (["estimate", "llama-3-8b", "--seq-lens", "1,x"], ["--seq-lens", "'x'"]),
    (["estimate", "llama-3-8b", "--device", "h1000"], ["h1000", "flopmeter peak"]),
    (["estimate", "llama-3-8b", "--device", "v100 sxm2 32gb", "--dtype", "bf16"], ["bf16", "V100", "fp16"]),
    (["estimate", "llama-3-8b", "--dtype", "bf17"], ["bf17", "fp8"]),
    (["estimate", "llama-3-8b", "--peak", "fast"], ["--peak", "fast", "TFLOP/s"]),
    (["estimate", "llama-3-8b", "--step-time", "-1"], ["--step-time", "-1"]),
    (["estimate", "llama-3-8b", "--step-time", "1", "--tokens-per-second", "5"], ["--tokens-per-second"]),
    (["estimate", "llama-3-8b", "--convention", "megatrom"], ["megatrom", "did you mean megatron"]),
    (["estimate", "llama-3-8b", "--trainable", "lora"], ["--trainable is 'lora'", "lora:RANK"]),
    (["estimate", "llama-3-8b", "--image-grid-thw", "1,2"], ["--image-grid-thw", "t,h,w"]),
    (["estimate", "llama-3-8b", "--image-grid-thw", "1,32,32"], ["--image-grid-thw does not apply", "no vision tower"]),
    (["estimate", "llama-3-8b", "--recompute", "some"], ["--recompute", "selective"]),
    (["estimate", "llama-3-8b", "--sparse"], ["--sparse", "--device"]),
    (["estimate", "llama-3-8b", "--sparse", "--device", "v100 sxm2 32gb", "--dtype", "fp16"], ["--sparse", "V100", "fp16"]),
    (["estimate", "llama-3-8b", "--device", ""], ["--device", "empty"]),
    (["estimate", "llama-3-8b", "--seq-lens", ""], ["--seq-lens", "empty"]),
    (["estimate", "llama-3-8b", "--trainable", "lora:8:nothing*"], ["--trainable", "nothing*", "*q_proj*"]),
    (["estimate", "llama-3-8b", "--trainable", "freeze:nothing*"], ["--trainable", "nothing*"]),
    (["estimate", "llama-3-8b", "--forward-only", "--recompute", "full"], ["--recompute", "--forward-only"]),
    (["estimate", "llama-3-8b", "--mtp"], ["--mtp", "llama-3-8b"]),
    (["estimate", "meta-llama/Llama-3-9B"], ["did you mean llama-3-8b"]),
    (["conventions", "palmm"], ["palmm", "did you mean palm"]),
    (["ops", "aten::mmm"], ["'aten::mmm'", "did you mean aten::mm"]),
    (["models", "lama", "--families"], ["did you mean llama"]),
    (["fly"], ["fly", "--help"]),
])
def test_wrong_use_is_refused_in_one_line(arguments, words):
    assert_refused(run(*arguments), *words)


@pytest.mark.parametrize("arguments", [
    ["diagnose"], ["watch", "--once"], ["report", "-o", "-"], ["ranks"], ["recount", "--convention", "palm"], ["compare", "other.json"],
    ["serve", "--port", "0"], ["trace"], ["estimate"], ["published"]], ids=lambda arguments: arguments[0])
def test_a_missing_file_or_directory_is_a_failure(arguments):
    assert_refused(run(*arguments, "missing.json"), ".json", "No such file", code=1)


@pytest.mark.parametrize("command", ["diagnose", "watch", "report", "ranks"])
def test_a_directory_without_a_run_is_a_failure(tmp_path, command):
    assert_refused(run(command, tmp_path), "is not a run directory", code=1)


@pytest.mark.parametrize("change, words", [
    ({"hidden_size": None}, ["hidden_size", "missing"]),
    ({"hidden_size": -4}, ["hidden_size", "-4"]),
    ({"num_attention_heads": 0}, ["num_attention_heads", "0"]),
    ({"vocab_size": 1e99}, ["vocab_size"]),
    ({"vocab_size": "many"}, ["vocab_size", "many"]),
])
def test_a_wrong_configuration_is_refused_by_its_key(tmp_path, change, words):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, **change}))
    assert_refused(run("estimate", path), "config.json", *words)


@pytest.mark.parametrize("text", ["", "{", "[]", "nul", "{" * 500, '{"a":' * 300, "\x00\xff", '"x"'])
def test_text_that_is_not_a_configuration_is_refused(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    assert_refused(run("estimate", path), "config.json")


def test_an_unknown_convention_is_named_before_the_run_is_read(tmp_path):
    (tmp_path / "run.json").write_text('{"schema": "flopmeter.run/2", "run_id": "00c0ffee00c0ffee"}')
    assert_refused(run("recount", tmp_path, "--convention", "megatrom"), "megatrom", "did you mean megatron")
    without = run("recount", tmp_path, "--convention", "megatron")
    assert without.returncode == 1 and "does not hold the model's configuration" in without.stderr


@pytest.mark.parametrize("command", ["ranks", "diagnose"])
def test_a_damaged_run_json_is_reported_in_one_line(tmp_path, command):
    (tmp_path / "run.json").write_text('{"schema": "flopmeter.run/2", ')
    (tmp_path / "records_20240129_103000.rank0.jsonl").touch()
    lines = run(command, tmp_path).stderr.splitlines()
    assert lines[0].startswith(f"flopmeter: {tmp_path}/run.json is damaged")


@pytest.mark.parametrize("arguments", [["estimate", "pipe"], ["run", "--config", "pipe", "--", "true"],
                                       ["run", "--config", ".", "--", "true"], ["run", "--config", "list", "--", "true"], ["run", "--", "./pipe"]])
def test_an_input_that_is_not_usable_is_refused_at_once(tmp_path, arguments):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "list").write_text("- a\n- b\n")
    done = subprocess.run([PROGRAM, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert done.returncode in (1, 2, 126) and done.stdout == "", done
    assert done.stderr.startswith("flopmeter: ") and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("limit_mib", [430, 460, 500, 540])
def test_a_lack_of_memory_is_reported_in_one_line(tmp_path, limit_mib):
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents":[')
    os.truncate(path, 400 << 20)
    limit = limit_mib << 20
    done = subprocess.run([PROGRAM, "trace", path], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert_refused(done, "not enough memory", code=1)


def test_hostile_names_reach_the_terminal_as_text():
    done = run("estimate", "a\x1b[2Jb\nc")
    assert "\x1b" not in done.stderr and done.stderr.count("\n") == 1


def test_a_configuration_is_read_from_standard_input():
    done = run("estimate", "-", "--json", stdin=json.dumps(LLAMA))
    assert done.returncode == 0 and json.loads(done.stdout)["model"]["family"] == "llama"


def test_counts_beyond_64_bits_are_exact_integers():
    done = run("estimate", "llama-3-8b", "--seq-len", 8192, "--batch", 1000000, "--json")
    one = run("estimate", "llama-3-8b", "--seq-len", 8192, "--json")
    many = json.loads(done.stdout)["flops"]
    assert many["model"] > 2**64
    assert many["model"] == 1000000 * json.loads(one.stdout)["flops"]["model"]


def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "estimate", "llama-3-8b"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "standard output" in done.stderr


def test_a_reader_that_has_enough_is_not_a_failure():
    with subprocess.Popen([PROGRAM, "devices"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.wait() == 0 and process.stderr.read() == ""
