# SPDX-License-Identifier: Apache-2.0
"""The recipes of docs/how-to/clusters.md as written, with stubs in place of the launchers.

``torchrun`` records the variables of its process.  ``srun`` and ``ssh`` start it on two nodes: processes with their own folders.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FLOPMETER_BIN", str(ROOT / "build" / "flopmeter"))
STUBS = {
    "flopmeter": f'exec "{PROGRAM}" "$@"',
    "torchrun": 'printf "%s\\n%s" "$PYTHONPATH" "$FLOPMETER_CONFIG" >"$RECORDS/$(basename "$PWD")"',
    "srun": 'for node in node0 node1; do (mkdir -p "$RECORDS/../$node" && cd "$RECORDS/../$node" && "$@") || exit 1; done',
    # A login shell of another machine: its environment, and its folder.
    "ssh": 'mkdir -p "$RECORDS/../$1" && cd "$RECORDS/../$1" && exec env -i PATH="$PATH" RECORDS="$RECORDS" sh -c "cd() { :; }; $2"',
    "ray.py": """
        import os, subprocess
        def init(runtime_env):
            for node in ("node0", "node1"):
                os.makedirs(node)
                subprocess.run("torchrun", env={**os.environ, **runtime_env["env_vars"]}, cwd=node, check=True)
        """,
}


@pytest.fixture
def run(tmp_path):
    """Runs a command in an empty folder; returns the directories of the run and the Python paths that torchrun had, by node."""
    stubs, records = tmp_path / "stubs", tmp_path / "records"
    stubs.mkdir()
    records.mkdir()
    for name, body in STUBS.items():
        text = re.sub("^ {8}", "", body, flags=re.M) if name.endswith(".py") else f"#!/bin/sh\n{body}\n"
        (stubs / name).write_text(text)
        (stubs / name).chmod(0o755)

    def run(command, **variables):
        path = f"{stubs}:{os.environ['PATH']}"
        bare = {key: value for key, value in os.environ.items() if not key.startswith(("FLOPMETER", "PYTHONPATH"))}
        done = subprocess.run(command, cwd=tmp_path, env={**bare, "PATH": path, "RECORDS": str(records), **variables}, capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        seen = {}
        for record in records.iterdir():
            python_path, config = record.read_text().split("\n")
            assert (Path(python_path.split(":")[0]) / "sitecustomize.py").exists()
            seen[record.name] = json.loads(config)["flopmeter"]["directory"]
        return seen

    run.stubs = stubs
    return run


def recipe(section):
    """The first sample below a heading."""
    text = (ROOT / "docs/how-to/clusters.md").read_text(encoding="utf-8")
    return re.search(rf"^## {section}$.*?^```\w*\n(.*?)^```$", text, re.M | re.S)[1]


def expanded(text, variables):
    """As Kubernetes expands arguments: $(NAME) if the container has NAME, else unchanged."""
    return re.sub(r"\$\(([^)]*)\)", lambda found: variables.get(found[1], found[0]), text)


def test_slurm(run, tmp_path):
    directory = str(tmp_path / "logs" / "4711")
    assert run(["bash", "-c", recipe("Slurm")], SLURM_JOB_ID="4711") == {"node0": directory, "node1": directory}


def test_kubernetes(run, tmp_path):
    container = yaml.safe_load(recipe("Kubernetes"))
    arguments = [expanded(each, {"JOB_NAME": "job-7"}) for each in container["args"]]
    assert run([*container["command"], *arguments], JOB_NAME="job-7") == {tmp_path.name: "/shared/logs/job-7"}


def test_ray(run):
    seen = run([sys.executable, "-c", recipe("Ray")], PYTHONPATH=str(run.stubs))
    assert seen == {"node0": "/shared/logs/run", "node1": "/shared/logs/run"}


def test_ssh(run):
    assert run(["bash", "-c", recipe("ssh")]) == {"node0": "/shared/logs/run", "node1": "/shared/logs/run"}
