# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts of this folder with and without ``flopmeter run``, in a temporary folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
PROGRAM = ROOT / "build" / "flopmeter"
sys.path[:0] = [str(SCRIPTS), str(Path(__file__).parent)]


def environment(**more):
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("FLOPMETER_", "PYTHONPATH"))}
    return {**bare, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **more}


class Folder:
    """Working folder of the commands and its records."""

    def __init__(self, path):
        self.path = path
        self.logs = path / "logs"

    def start(self, *command, run_options=(), **env):
        """Starts a process; ``run_options``: options of ``flopmeter run``, None to run the command without it."""
        # Count all steps, independent of the measured overhead.
        options = ["--dir", str(self.logs), "--overhead-budget", "1"]
        front = [] if run_options is None else [str(PROGRAM), "run", *options, *map(str, run_options), "--"]
        return subprocess.Popen(
            [*front, *map(str, command)],
            cwd=self.path,
            env=environment(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command, run_options=(), **env):
        """Runs a command; returns stdout, stderr, and exit code."""
        process = self.start(*command, run_options=run_options, **env)
        output, errors = process.communicate(timeout=240)
        return output, errors, process.returncode

    def python(self, script, *arguments, run_options=(), **env):
        return self.run(sys.executable, SCRIPTS / script, *arguments, run_options=run_options, **env)

    def records(self, rank=0, tag="train"):
        (file,) = self.logs.glob(f"records_*.rank{rank}.jsonl")
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        return [row for row in rows if tag in (None, row["tag"].replace("profile", "train"))]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture(scope="session")
def estimated(tmp_path_factory):
    """Function: estimated FLOPs of the tiny GPT under `executed` for a number of sequences per step."""
    from tiny_gpt import CONFIG, LENGTH

    config = tmp_path_factory.mktemp("model") / "config.json"
    config.write_text(json.dumps(CONFIG))

    def estimate(sequences):
        command = [PROGRAM, "estimate", config, "--seq-len", LENGTH, "--batch", sequences, "--convention", "executed", "--json"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["flops"]["model"]

    return estimate
