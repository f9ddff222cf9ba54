# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the samples of the five source documents. README.md lists the tests and the edits."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import flopmeter
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from seed_samples import HERE, sample  # noqa: E402

collect_ignore = ["fixture"]  # programs of the documents; the tests run them


@pytest.fixture
def execute():
    """Runs a Python sample with the names it expects; ``edits`` replaces placeholders, which must exist."""

    def run(name, names=None, edits=None):
        text = sample(name)
        for old, new in (edits or {}).items():
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new)
        scope = dict(names or {})
        exec(compile(text, name, "exec"), scope)
        return scope

    return run


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    """Runs each test in a temporary folder without measured peaks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return tmp_path


@pytest.fixture
def project(working_folder):
    """A project with the layout that the documents describe."""
    shutil.copytree(HERE / "fixture", working_folder, dirs_exist_ok=True)
    return working_folder


def run_shell(text, folder, check=True, timeout=120):
    """Runs a shell script in a folder, with this Python first in PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    package = str(Path(flopmeter.__file__).parent.parent)
    environment = {**os.environ, "PATH": path, "PYTHONPATH": package, "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    command = ["bash", "-e", "-c", text]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def shell(project):
    """Runs a shell script in the project."""
    return lambda text, **more: run_shell(text, project, **more)


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(HERE / "fixture", folder, dirs_exist_ok=True)
    run_shell("python flagscale/train/train_gpt.py --enable-perf-monitor --train-iters 30", folder)
    return folder


@pytest.fixture
def trained(trained_once, working_folder):
    """Folder logs/perf_monitor of a finished run."""
    shutil.copytree(trained_once, working_folder, dirs_exist_ok=True)
    return working_folder / "logs" / "perf_monitor"
