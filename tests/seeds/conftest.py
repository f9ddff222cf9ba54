# SPDX-License-Identifier: Apache-2.0
"""Runs the samples of the five source documents; README.md says which test runs which, and what was edited."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import flopmeter
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from seed_samples import HERE, sample  # noqa: E402

collect_ignore = ["bed"]  # programs of the documents, run by the tests


@pytest.fixture
def execute():
    """Runs a Python sample among the names it expects; ``edits`` replace placeholders, each of which must be there."""

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
def elsewhere(tmp_path, monkeypatch):
    """Each test in a folder of its own, with no measured peaks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return tmp_path


@pytest.fixture
def bed(elsewhere):
    """A project laid out as the documents have it."""
    shutil.copytree(HERE / "bed", elsewhere, dirs_exist_ok=True)
    return elsewhere


def run_shell(text, folder, check=True, timeout=120):
    """Runs a shell text in a folder, with this Python first in the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    package = str(Path(flopmeter.__file__).parent.parent)
    environment = {**os.environ, "PATH": path, "PYTHONPATH": package, "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    command = ["bash", "-e", "-c", text]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def shell(bed):
    """Runs a shell text in the bed."""
    return lambda text, **more: run_shell(text, bed, **more)


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(HERE / "bed", folder, dirs_exist_ok=True)
    run_shell("python flagscale/train/train_gpt.py --enable-perf-monitor --train-iters 30", folder)
    return folder


@pytest.fixture
def trained(trained_once, elsewhere):
    """The folder logs/perf_monitor of a finished run."""
    shutil.copytree(trained_once, elsewhere, dirs_exist_ok=True)
    return elsewhere / "logs" / "perf_monitor"
