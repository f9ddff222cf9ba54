# SPDX-License-Identifier: Apache-2.0
"""``eval "$(flopmeter env)"`` on several machines: processes with their own host names, folders, and environments."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import PROGRAM, SCRIPTS, environment

pytestmark = pytest.mark.torch2("hooks for optimizers")
STEPS = 5
NODE = """
{hostname}
cd "$NODE_FOLDER"
eval "$("$FLOPMETER" env $OPTIONS)"
exec "$PYTHON" "$SCRIPT" {steps}
"""


def own_hostname(name):
    """The command that gives a process a host name, if this machine allows it; else HOSTNAME alone differs."""
    isolated = shutil.which("unshare") and subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode == 0
    return (["unshare", "--uts"], f"hostname {name}") if isolated else ([], f"HOSTNAME={name}")


def start_node(tmp_path, number, options, **more):
    folder = tmp_path / f"node{number}"
    folder.mkdir()
    front, hostname = own_hostname(f"node{number}")
    variables = {
        "RANK": str(number),
        "WORLD_SIZE": "2",
        "NODE_FOLDER": str(folder),
        "FLOPMETER": str(PROGRAM),
        "OPTIONS": options,
        "PYTHON": sys.executable,
        "SCRIPT": str(SCRIPTS / "plain_loop.py"),
        "HOME": str(folder),
        **more,
    }
    command = [*front, "sh", "-ec", NODE.format(hostname=hostname, steps=STEPS)]
    return subprocess.Popen(command, env=environment(**variables), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(nodes):
    for node in nodes:
        _, errors = node.communicate(timeout=240)
        assert node.returncode == 0, errors


def steps(file):
    return [json.loads(line)["step"] for line in file.read_text().splitlines()]


def test_nodes_with_a_shared_folder_write_one_run(tmp_path):
    shared = tmp_path / "shared"
    finish([start_node(tmp_path, number, f"--dir {shared} --no-console") for number in (0, 1)])
    ranks = {number: list(shared.glob(f"records_*.rank{number}.jsonl")) for number in (0, 1)}
    assert all(len(files) == 1 and steps(files[0]) == list(range(1, STEPS + 1)) for files in ranks.values())
    done = subprocess.run([PROGRAM, "ranks", shared, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["totals"]["complete_steps"] == STEPS


@pytest.mark.parametrize("job", [{"SLURM_JOB_ID": "4711"}, {"TORCHELASTIC_RUN_ID": "job-7"}])
def test_nodes_without_a_shared_folder_name_the_run_by_the_job(tmp_path, job):
    finish([start_node(tmp_path, number, "--no-console", **job) for number in (0, 1)])
    (name,) = job.values()
    for number in (0, 1):
        (file,) = (tmp_path / f"node{number}" / "logs" / "perf_monitor" / name).glob("records_*.jsonl")
        assert f"rank{number}" in file.name and steps(file) == list(range(1, STEPS + 1))
    assert os.listdir(tmp_path / "node1" / "logs" / "perf_monitor") == [name]
