# SPDX-License-Identifier: Apache-2.0
"""All examples run and write the expected records."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BUILD = ROOT / "build" / "release"


def run(folder, *command):
    path = os.pathsep.join([str(ROOT / "build"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def records(folder, directory):
    (file,) = (folder / directory).glob("records_*.rank0.jsonl")
    return [row for row in map(json.loads, file.read_text().splitlines()) if row["tag"] in ("train", "profile")]


def linear(rows, *sizes):
    """FLOPs of forward, weight gradients, and all input gradients except the first."""
    matmuls = [2 * rows * a * b for a, b in zip(sizes, sizes[1:])]
    return 3 * sum(matmuls) - matmuls[0]


def test_the_readme_lists_all_examples():
    listed = (EXAMPLES / "README.md").read_text()
    found = [each for each in EXAMPLES.rglob("*") if each.suffix in (".py", ".sh", ".cpp")]
    assert found
    assert [str(each) for each in found if f"({each.relative_to(EXAMPLES)})" not in listed] == []


def test_command_line(tmp_path):
    assert "MFU 40.3 %" in run(tmp_path, EXAMPLES / "cli" / "estimate.sh")


@pytest.mark.parametrize(
    ("command", "directory"),
    [
        pytest.param([EXAMPLES / "run" / "run.sh"], "logs/run", marks=pytest.mark.torch2("hooks for optimizers")),
        ([sys.executable, EXAMPLES / "python" / "plain_loop.py"], "logs/plain_loop"),
    ],
    ids=["run", "plain loop"],
)
def test_a_plain_loop_with_and_without_code_changes(tmp_path, command, directory):
    pytest.importorskip("torch")
    run(tmp_path, *command)
    rows = records(tmp_path, directory)
    assert [(row["model_flops"], row["samples"]) for row in rows] == [(linear(64, 512, 2048, 512), 64)] * 32


@pytest.mark.long  # python/tests covers the callbacks in detail
def test_hugging_face(tmp_path):
    pytest.importorskip("transformers")
    run(tmp_path, sys.executable, EXAMPLES / "python" / "hf_trainer.py")
    assert [row["tokens"] for row in records(tmp_path, "logs/hf/perf_monitor")] == [4 * 32] * 8


@pytest.mark.long
def test_lightning(tmp_path):
    pytest.importorskip("lightning")
    run(tmp_path, sys.executable, EXAMPLES / "python" / "lightning_trainer.py")
    rows = records(tmp_path, "logs/lightning/perf_monitor")
    assert [row["model_flops"] for row in rows] == [linear(16, 64, 64)] * 16


def test_libtorch(tmp_path):
    program = BUILD / "examples" / "libtorch" / "libtorch_example"
    if not program.exists():
        pytest.skip("built without torch")
    run(tmp_path, program)
    assert [row["model_flops"] for row in records(tmp_path, "logs/libtorch")] == [linear(32, 64, 64)] * 20


def test_cpp_without_torch(tmp_path):
    run(tmp_path, BUILD / "examples" / "cpp_no_torch" / "monitor_example", "--perf-log-dir", "logs", "--steps", 3)
    assert [row["flops_source"] for row in records(tmp_path, "logs")] == ["user"] * 3
