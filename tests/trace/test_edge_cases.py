# SPDX-License-Identifier: Apache-2.0
"""Broken and odd files end in a figure or in one clear line, never in a crash."""

import json
import subprocess
import sys

import pytest
from test_real_traces import FOLDER
from trace_cli import run_trace

SCRIPT, BASE = FOLDER / "make_edge_cases.py", FOLDER / "sidnb13_h100_transformer.json"
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="no real traces: set FLOPMETER_TRACES to their folder")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("edges")
    subprocess.run([sys.executable, str(SCRIPT), str(BASE), str(out)], check=True, capture_output=True)
    return out


def figures(rank):
    keys = ("kernels", "memcpys", "memsets", "time", "flops", "coverage", "unsupported", "idle_by_cause")
    return {key: rank[key] for key in keys}


def cases():
    if not SCRIPT.is_file():
        return []
    names = [line.split("'")[1] for line in SCRIPT.read_text().splitlines() if line.startswith("put('")]
    return names


@pytest.mark.parametrize("name", cases())
def test_an_odd_file_gives_a_figure_or_one_line(name, folder):
    case = json.loads((folder / "manifest.json").read_text())[name]
    done = run_trace(folder / name, "--json", timeout=10)
    if case["kind"] == "refuse":
        assert done.returncode == 1 and not done.stdout
        assert len(done.stderr.strip().splitlines()) == 1
        return
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    base = json.loads(run_trace(BASE, "--json").stdout)
    rank = report["ranks"][0]
    assert all(value >= 0 for value in rank["time"].values())
    if case["kind"] == "same":
        assert figures(rank) == figures(base["ranks"][0])
        if "note" not in case:
            assert report["mfu"] == base["mfu"]
        elif report["mfu"] is None:
            assert any("no MFU" in note for note in rank["notes"])
    elif name == "two_devices.json":
        assert [one["time"] for one in report["ranks"]] == [base["ranks"][0]["time"]] * 2
    elif figures(rank) != figures(base["ranks"][0]) or rank["steps"] != base["ranks"][0]["steps"]:
        assert rank["skipped_events"] or rank["notes"], "what was lost must be stated"
