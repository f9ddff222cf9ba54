# SPDX-License-Identifier: Apache-2.0
"""Published results are reproduced with the names of models, devices, and dtypes as their sources print them."""
import csv
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FLOPMETER_BIN", str(ROOT / "build" / "flopmeter"))
TABLE = (ROOT / "src" / "catalog" / "published_results.csv").read_text()
ROWS = list(csv.DictReader(line for line in TABLE.splitlines() if not line.startswith("#")))


def sample():
    """The first row of each model and source that names its model."""
    seen = {}
    for row in ROWS:
        source = row["id"].split("-")[0]
        if source in ("bridge", "flagperf") and not row["check"]:
            seen.setdefault((source, row["model"], row["variant"]), row)
    return [pytest.param(row, id=row["id"]) for row in seen.values()]


def rates(*arguments):
    done = subprocess.run([PROGRAM, "estimate", *map(str, arguments), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rates"]


@pytest.mark.parametrize("row", sample())
def test_a_published_result_is_reproduced(row):
    name = row["model"]
    tokens = float(row["tokens_per_second_per_device"]) * int(row["devices"])
    common = ["--seq-len", row["seq_len"] or 4096, "--devices", row["devices"], "--tokens-per-second", tokens]
    if row["id"].startswith("bridge"):
        ours = rates(name, *common, "--convention", row["convention"], *(["--no-mtp"] if row["variant"] == "w/o MTP" else []))
        assert ours["tflops_per_device"] == pytest.approx(float(row["tflops_per_device"]), rel=0.02)
    else:
        ours = rates(name, *common, "--convention", "flagperf", "--device", row["device"],
                     *(["--forward-only"] if row["training"] == "forward" else []))
        assert 100 * ours["mfu"] == pytest.approx(float(row["mfu_percent"]), rel=0.02)


def test_a_published_configuration_is_reproduced(tmp_path):
    row = next(row for row in ROWS if row["id"].startswith("mosaic") and row["recompute"] == "full")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({
        "model_type": "gpt2", "n_layer": int(row["layers"]), "n_embd": int(row["hidden"]),
        "n_head": int(row["heads"]), "vocab_size": int(row["vocab"]), "n_positions": int(row["seq_len"])}))
    ours = rates(config, "--seq-len", row["seq_len"], "--convention", "mosaic", "--recompute", "full",
                 "--device", row["device"], "--dtype", row["dtype"],
                 "--tokens-per-second", row["tokens_per_second_per_device"])
    assert 100 * ours["mfu"] == pytest.approx(float(row["mfu_percent"]), rel=0.001)
    assert 100 * ours["hfu"] == pytest.approx(float(row["hfu_percent"]), rel=0.001)


def published(*arguments):
    done = subprocess.run([PROGRAM, "published", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_published_lists_similar_models_with_links():
    text = published("llama-3-8b", "--device", "h100", "--dtype", "bf16")
    assert text.startswith("published for ") and "dense, H100" in text.splitlines()[0]
    assert "https://" in text
    listed = json.loads(published("llama-3-8b", "--device", "h100", "--dtype", "bf16", "--json"))
    assert listed["text"] == text.splitlines()[0]
    assert f'{len(listed["results"])} results' in listed["text"]
    assert all(row["kind"] == "dense" and row["dtype"] == "bf16" and row["url"] for row in listed["results"])


def test_published_lists_all_rows():
    assert len(json.loads(published("--json"))["results"]) == len(ROWS)


def test_published_of_an_unknown_architecture_is_one_line(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "never-heard-of", "num_parameters": 7_000_000_000}))
    assert published(config) == "architecture not known: no comparison with published results\n"


def test_estimate_names_published_results():
    done = subprocess.run([PROGRAM, "estimate", "llama-3-8b", "--device", "h100"], capture_output=True, text=True)
    assert "published for " in done.stdout and "https://github.com/" in done.stdout
