# SPDX-License-Identifier: Apache-2.0
"""Published results are reproduced with the names of models, devices, and dtypes as their sources print them."""
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FLOPMETER_BIN", str(ROOT / "build" / "flopmeter"))
DATA = ROOT / "tests" / "data"
ROWS = json.loads((DATA / "published_results.json").read_text())["rows"]
EXCEPTIONS = {line.split('"')[1] for line in (DATA / "published_exceptions.csv").read_text().splitlines()[1:]}


def sample():
    """The first row of each model and source that names its model."""
    seen = {}
    for row in ROWS:
        source = row["id"].split("-")[0]
        if source in ("bridge", "flagperf") and row["id"] not in EXCEPTIONS:
            seen.setdefault((source, row["model"]), row)
    return [pytest.param(row, id=row["id"]) for row in seen.values()]


def rates(*arguments):
    done = subprocess.run([PROGRAM, "estimate", *map(str, arguments), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rates"]


@pytest.mark.parametrize("row", sample())
def test_a_published_result_is_reproduced(row):
    name, _, remark = row["model"].partition(" (")
    tokens = row["tokens_per_s_per_gpu"] * row["device_count"]
    common = ["--seq-len", row["seq_len"] or 4096, "--devices", row["device_count"], "--tokens-per-second", tokens]
    if row["id"].startswith("bridge"):
        ours = rates(name, *common, "--convention", "megatron", *(["--no-mtp"] if "w/o MTP" in remark else []))
        assert ours["tflops_per_device"] == pytest.approx(row["reported_tflops_per_gpu"], rel=0.02)
    else:
        name, _, what = name.partition(" ")  # "LLaVA-1.5-7B pretrain"
        device = row["device"].partition(" (")[0]
        ours = rates(name, *common, "--convention", "flagperf", "--device", device,
                     *(["--forward-only"] if what == "pretrain" else []))
        assert 100 * ours["mfu"] == pytest.approx(row["reported_mfu"], rel=0.02)


def test_a_published_configuration_is_reproduced(tmp_path):
    row = next(row for row in ROWS if row["id"].startswith("mosaic") and row["recompute"] == "full")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({
        "model_type": "gpt2", "n_layer": row["config"]["num_layers"], "n_embd": row["config"]["hidden_size"],
        "n_head": 64, "vocab_size": 50368, "n_positions": row["seq_len"]}))
    ours = rates(config, "--seq-len", row["seq_len"], "--batch", row["global_batch"], "--convention", "mosaic",
                 "--recompute", "full", "--device", row["device"], "--devices", row["device_count"],
                 "--dtype", row["dtype"], "--tokens-per-second", row["tokens_per_s"])
    assert 100 * ours["mfu"] == pytest.approx(row["reported_mfu"], rel=0.001)
    assert 100 * ours["hfu"] == pytest.approx(row["reported_hfu"], rel=0.001)
