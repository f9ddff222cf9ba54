# SPDX-License-Identifier: Apache-2.0
"""`flopmeter trace --model`: MFU by the formula of a model."""

import json
import subprocess

import pytest
from eras import ERAS, write
from trace_cli import PROGRAM, run_trace, trace_json


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(write(ERAS[-1]).encode())
    return path


def estimate(*options):
    done = subprocess.run([str(PROGRAM), "estimate", *options, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_flops_of_a_step_are_those_of_the_estimate(trace):
    options = ("--device", "h100", "--model", "gpt2", "--tokens", "2500", "--seq-len", "1000")
    rank = trace_json(trace, *options)["ranks"][0]
    expected = estimate("gpt2", "--seq-lens", "1000,1000,500")["flops"]["model"]
    assert rank["formula"] == {"model": "gpt-2", "tokens": 2500, "seq_len": 1000, "model_flops": expected, "dtype": "bf16"}
    peak = rank["device"]["peak_flops_per_second"]["bf16"]
    for step in rank["steps"]:
        assert step["model_flops"] == expected
        assert step["mfu"] == pytest.approx(expected / peak / step["device_seconds"])
    assert rank["flops"]["model"] != expected  # the operators of the trace have others
    assert any("by the formula of gpt-2" in note for note in rank["notes"])


@pytest.mark.parametrize("options", [("--model", "gpt2"), ("--tokens", "8"), ("--model", "no-such-model", "--tokens", "8")])
def test_an_incomplete_model_is_refused(trace, options):
    done = run_trace(trace, *options)
    assert done.returncode == 2 and done.stdout == "" and done.stderr
