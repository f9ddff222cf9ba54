# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts beside it with and without ``flopmeter run``, in a folder of their own."""

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
    """Where commands run, and what they leave there."""

    def __init__(self, path):
        self.path = path
        self.logs = path / "logs"

    def start(self, *command, watched=(), **env):
        """A process; ``watched``: options of flopmeter run, None to run the command alone."""
        # Every step is counted, however long the machine takes for it.
        options = ["--dir", str(self.logs), "--overhead-budget", "1"]
        front = [] if watched is None else [str(PROGRAM), "run", *options, *map(str, watched), "--"]
        return subprocess.Popen(
            [*front, *map(str, command)],
            cwd=self.path,
            env=environment(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command, watched=(), **env):
        """The same, finished: output, errors, exit code."""
        process = self.start(*command, watched=watched, **env)
        output, errors = process.communicate(timeout=240)
        return output, errors, process.returncode

    def python(self, script, *arguments, watched=(), **env):
        return self.run(sys.executable, SCRIPTS / script, *arguments, watched=watched, **env)

    def records(self, rank=0, tag="train"):
        (file,) = self.logs.glob(f"records_*.rank{rank}.jsonl")
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        return [row for row in rows if tag in (None, row["tag"].replace("profile", "train"))]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture(scope="session")
def estimated(tmp_path_factory):
    """What the program estimates for the tiny GPT under `executed`, in one step of so many sequences."""
    from tiny_gpt import CONFIG, LENGTH

    config = tmp_path_factory.mktemp("model") / "config.json"
    config.write_text(json.dumps(CONFIG))

    def ask(sequences):
        command = [PROGRAM, "estimate", config, "--seq-len", LENGTH, "--batch", sequences, "--convention", "executed", "--json"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["flops"]["model"]

    return ask
